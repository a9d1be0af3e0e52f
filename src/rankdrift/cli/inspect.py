"""rankdrift inspect"""

from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import COUNTING, Sections, log_options, read, shorter, typed
from rankdrift.cli.output import check_file, outside, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, join, talking

if TYPE_CHECKING:
    from rankdrift.diagnosis.inspection import Inspection

BY_DAY = 10_000_000  # rows from which on a file a day is worth while


@click.command(cls=Sections, first=("html", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--html", metavar="FILE", help="Also write the findings as a page to keep.")
@log_options()
@talking
def inspect(screen: Screen, logs: tuple[str, ...], html: str | None, **options: Any) -> int:
    """Look a log over: what is in it, and will it do?

    LOG is a file, a folder or a glob in quotes: Parquet, CSV or JSON lines, compressed or not, or
    a DuckDB file. Several are read as one.

    Tells which column is what, how often each rank is clicked, what becomes of the rows on their
    way to usable pairs, which ranks can be compared and how well. Exits with 1 if the log will
    not do.

    \b
        rankdrift inspect 'logs/*.parquet'
        rankdrift inspect searches.csv --query keywords --segment platform
    """
    log = read(logs, options)
    if html:
        refuse_input(html, logs, options["format"])
        check_file(html)
    screen.note(log.remarks)
    from rankdrift.diagnosis.inspection import inspect

    with bar(screen, log) as progress:
        found = inspect(log, progress=progress)
    screen.note(remark for remark in found.remarks if remark not in log.remarks)
    command = _next(found, logs, options)
    if html:
        from rankdrift.core.files import write_text
        from rankdrift.report.page.inspection import inspection_page

        write_text(html, inspection_page(found, next_commands=[join(command)] if command else []))
    from rankdrift.report.terminal.inspection import inspection_report

    screen.show(inspection_report(found))
    screen.answer({**found.to_dict(), "html": html})
    if html:
        screen.say("", f"The page is in {html}.")
    if command:
        screen.next(*command)
    else:
        screen.say("", "Follow the advice above, then look again.")
    return Exit.UNFIT if found.verdict == "unfit" else Exit.GOOD


def _next(found: "Inspection", logs: tuple[str, ...], options: dict[str, Any]) -> list[str]:
    """The harvest as it was asked for, or by a way that was tried and gives more; nothing if none
    of them will do."""
    best = found.ways.best
    if best is None and found.verdict == "unfit":
        return []
    changed = dict(options)
    for name, value in best.options.items() if best else ():
        changed[name] = (tuple(value) or ("",)) if isinstance(value, list) else value
    command = ["rankdrift", "harvest", *shorter(logs), *typed(changed)]
    days = found.sizes.get("days")
    several = isinstance(days, int) and days > 1 and not best
    # Checks that look at other days need them counted together, as long as that is no trouble.
    several = several and found.counts.funnel.rows >= BY_DAY
    place = outside("counts/" if several else "counts.parquet", logs)
    return [*command, *(["--by", "day"] if several else []), "-o", place]
