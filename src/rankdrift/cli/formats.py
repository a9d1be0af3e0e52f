"""rankdrift formats"""

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.screen import Screen, talking


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@talking
def formats(screen: Screen, name: str | None) -> int:
    """List the formats of logs that are recognised, and what each needs.

    With the NAME of one, tell what becomes of its fields.

    \b
        rankdrift formats
        rankdrift formats ubi
    """
    from rankdrift.log.formats import FORMATS
    from rankdrift.report.terminal.tables import empty_table, heading, indent, line

    chosen = [FORMATS.get(name)] if name else list(FORMATS)
    if name:
        [known] = chosen
        table = empty_table(["column", "kind", "from"])
        for column, kind in known.columns.items():
            table.add_row(line(column), kind, line(known.origins[column]))
        about = (f"Read: {known.schema}.", f"Needs: {known.needs}.", known.remark)
        screen.show(
            heading(known.title), indent(table), *(indent(line(said)) for said in about if said)
        )
    else:
        table = empty_table(["format", "of", "needs"])
        table.columns[0].no_wrap = True
        for known in chosen:
            table.add_row(known.name, line(known.title), line(known.needs))
        screen.show(heading("Formats that are recognised"), indent(table))
    screen.answer(
        {
            "formats": [
                {
                    "name": known.name,
                    "title": known.title,
                    "schema": known.schema,
                    "needs": known.needs,
                    "columns": {
                        column: {"kind": kind, "from": known.origins[column]}
                        for column, kind in known.columns.items()
                    },
                }
                for known in chosen
            ]
        }
    )
    more = ["--format", name] if name else []
    screen.next("rankdrift", "inspect", "LOG", *more)
    return Exit.GOOD
