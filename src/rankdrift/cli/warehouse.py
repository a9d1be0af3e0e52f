"""rankdrift sql and rankdrift import-counts"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from rankdrift.cli.counts import end, show_counts
from rankdrift.cli.exits import Exit
from rankdrift.cli.harvest import given_sizes, size_options
from rankdrift.cli.options import COUNTING, ENGINE, Sections, given, log_options, read
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many

# Dialects whose text the tests run where it belongs; that of the others they parse, or run on what
# is closest.
RUN = ("duckdb", "spark", "clickhouse", "postgres")
_CHECKED = {
    "bigquery": "run such statements on Google's reference implementation of its SQL",
    "databricks": "run this statement on Spark",
}
RUN_BY_DBT = ("duckdb",)


@click.command(cls=Sections, first=("dialect", "table", *COUNTING))
@click.argument("sample", required=False, metavar="[LOG]")
@click.option("--dialect", required=True, metavar="NAME", help=f"{', '.join(DIALECTS)}.")
@click.option("--table", required=True, metavar="NAME", help="The table in the warehouse.")
@click.option(
    "--types",
    multiple=True,
    metavar="NAME=TYPE,…",
    help="int, float, bool, text, json, date, timestamp, instant or list. Taken for granted: rank, "
    "click, doc, search, page, same int; day date; the rest text.",
)
@click.option("--appearances", is_flag=True, help="What `judge` takes, instead of counts.")
@click.option("--dbt", metavar="FOLDER", help="Write a package for dbt there instead.")
@size_options
@log_options(without=(*ENGINE, "table"))
@talking
def sql(
    screen: Screen,
    sample: str | None,
    dialect: str,
    table: str,
    types: tuple[str, ...],
    appearances: bool,
    dbt: str | None,
    buckets: int | None,
    max_shown: int | None,
    **options: Any,
) -> int:
    """Print the harvest as SQL, to run where the log is: one statement, or a script.

    Only counts come out of the warehouse: export the statement's result and take it in with
    import-counts; with --appearances, with judge. Name the columns, or give a LOG, a small sample
    of the table, to find names and types in.

    \b
        rankdrift sql --dialect bigquery --table shop.events \\
            --query keywords --doc item --rank position --click clicked \\
            --day date > harvest.sql
    """
    from rankdrift.harvesting.warehouse import warehouse_sql

    more: dict[str, Any] = {**given_sizes(buckets, max_shown)}
    if types:
        more["types"] = _types(types)
    if sample is not None:
        log = read([sample], options)
        screen.note(log.remarks)
        more["log"] = log
    else:
        more |= given(options)
    if dbt is not None:
        return _write_dbt(screen, dbt, table, dialect=dialect, appearances=appearances, **more)
    text = warehouse_sql(table, dialect=dialect, appearances=appearances, **more)
    screen.text(text)
    screen.answer({"dialect": dialect, "table": table, "sql": text})
    if dialect not in RUN:
        checked = _CHECKED.get(dialect, f"parse this statement as {dialect}")
        screen.say(
            f"Checked: the tests {checked}; in the warehouse itself they have never run it. Try it "
            "on a small table first."
        )
    screen.say("", f"Run it, and export its result with column names: {_EXPORTS[dialect]}")
    if appearances:
        screen.next("rankdrift", "judge", "result.csv", "--propensities", "propensities.json")
    else:
        screen.next("rankdrift", "import-counts", "result.csv", "-o", "counts.parquet")
    return Exit.GOOD


def _begun(folder: str, files: Iterable[str]) -> bool:
    """Whether all that is there is of a package that was not written to its end."""
    below = (path for path in Path(folder).rglob("*") if path.is_file())
    left = (path for path in below if not path.name.startswith(".rankdrift-"))
    return {path.relative_to(folder).as_posix() for path in left} <= set(files)


def _write_dbt(screen: Screen, folder: str, table: str, **more: Any) -> int:
    from rankdrift.core.files import together, write_text
    from rankdrift.harvesting.dbt import PACKAGE, dbt_package

    files = dbt_package(table, **more)
    there = os.listdir(folder) if os.path.isdir(folder) else []
    if there and "macros" not in there and not _begun(folder, files):
        raise BadOption(
            f"The folder {folder!r} has files of its own. Name one that is empty, or that has such "
            "a package, which is then replaced."
        )
    with together():
        for name, text in files.items():
            write_text(os.path.join(folder, name), text)
    screen.answer({"dialect": more["dialect"], "table": table, "dbt": sorted(files)})
    models = [name for name in files if name.endswith(".sql") and name.startswith("models")]
    last = os.path.basename(models[-1]).removesuffix(".sql")
    screen.say(
        f"A package for dbt is in {folder}: {many(len(models), 'model')} and a macro. Its profile "
        f"is {PACKAGE}; or name the folder in packages.yml of a project of yours (local:).",
        f"After `dbt run`, export the table {last} with its column names.",
    )
    if more["dialect"] not in RUN_BY_DBT:
        screen.say(f"Checked: the tests run it with dbt on DuckDB, not on {more['dialect']}.")
    screen.command("Next:", "dbt", "run", "--project-dir", folder)
    return Exit.GOOD


_EXPORTS = {
    "duckdb": "COPY (…) TO 'result.csv' (HEADER)",
    "spark": "spark-sql, or spark.sql(…).coalesce(1).write.csv('result.csv', header=True)",
    "bigquery": "bq query --use_legacy_sql=false --format=csv --max_rows=100000000 "
    "< harvest.sql > result.csv",
    "snowflake": "snowsql -f harvest.sql -o output_format=csv -o header=true "
    "-o friendly=false -o timing=false > result.csv",
    "trino": "trino --file harvest.sql --output-format CSV_HEADER > result.csv",
    "databricks": "in a notebook, spark.sql(…).coalesce(1).write.csv('result.csv', header=True)",
    "clickhouse": "clickhouse client --multiquery --format CSVWithNames < harvest.sql > result.csv",
    "postgres": "psql -X -q --csv -v ON_ERROR_STOP=1 -f harvest.sql > result.csv",
}


def _types(typed: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in typed[0].split(",") if len(typed) == 1 else typed:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name.strip():
            raise BadOption(f"--types takes NAME=TYPE, such as clicked=bool, not {pair!r}.")
        found[name.strip()] = kind.strip()
    return found


@click.command("import-counts")
@click.argument("result", metavar="RESULT")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the counts go.")
@click.option("--format", metavar="FORMAT", help="csv, json or parquet, where names do not tell.")
@talking
def import_counts(screen: Screen, result: str, output: str, format: str | None) -> int:
    """Take in the result of a statement that `rankdrift sql` printed.

    RESULT is what the warehouse exported, as CSV, JSON lines or Parquet: a file, a folder or a
    glob in quotes. Exits with 1 if there is no usable pair in it.

    \b
        rankdrift import-counts result.csv -o counts.parquet
    """
    from rankdrift.harvesting.warehouse import import_counts

    refuse_input(output, [result], format)
    check_file(output)
    counts = import_counts(result, format=format)
    counts.save(output)
    show_counts(screen, counts, output)
    screen.say("", f"The counts are in {output}.")
    return end(screen, counts, output)
