"""rankdrift report"""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.artefacts import ResultKind
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import many

MOST_NAMED = 10
"""Files of one kind that are named each."""


@click.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULTS...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the page goes.")
@click.option("--title", metavar="TEXT", help="What to call it.")
@click.option(
    "--queries/--no-queries",
    default=True,
    show_default=True,
    help="Show what the log says. With --no-queries segments are numbered, and row "
    "conditions and reasons that may quote a row are left out.",
)
@talking
def report(
    screen: Screen, results: tuple[str, ...], output: str, title: str | None, queries: bool
) -> int:
    """Tell all that was found on one page, for people who have not seen it before.

    RESULTS are files that rankdrift wrote, or folders of them: counts (which are diagnosed, and
    estimated from if there are no propensities), propensities, the JSON of compare and evaluate,
    the truth of a simulation. Counts of several days that are given apart, such as the folder that
    harvest --by day writes, also tell whether the curve stays the same. The page needs neither a
    network nor anything else than a browser. Names of files and of columns are shown in any case.
    Exits with 1, like diagnose, if something serious was found.

    \b
        rankdrift report counts.parquet -o report.html
        rankdrift report days/ -o report.html
        rankdrift report counts.parquet propensities.json methods.json \\
            rankers.json -o report.html
    """
    refuse_input(output, (), more=results)
    check_file(output)
    from rankdrift.pipeline import make_report

    page = make_report(list(results), title=title, queries=queries)
    page.save(output)
    given = [{"file": name, "kind": kind} for name, kind in page.results.given]
    screen.answer({"file": output, "results": given, "verdict": page.verdict})
    screen.show(*_lines(page.results.given))
    screen.say("", f"The report is in {output}. Open it in a browser.")
    if command := _next(results, _by_kind(page.results.given)):
        screen.next(*command)
    return Exit.UNFIT if page.verdict == Verdict.SERIOUS else Exit.GOOD


def _by_kind(given: Sequence[tuple[str, ResultKind]]) -> dict[ResultKind, list[str]]:
    found: dict[ResultKind, list[str]] = {}
    for name, kind in given:
        found.setdefault(kind, []).append(name)
    return found


def _lines(given: Sequence[tuple[str, ResultKind]]) -> list[str]:
    """What was reported on; of a year of days the first and the last."""
    wide, lines = max(len(kind) for _, kind in given), list[str]()
    for kind, names in _by_kind(given).items():
        if len(names) > MOST_NAMED:
            names = [f"{names[0]} to {names[-1]}, {many(len(names), 'file')}"]
        lines += (f"{kind:{wide}}  {name}" for name in names)
    return lines


def _next(results: tuple[str, ...], given: dict[ResultKind, list[str]]) -> list[str]:
    """Use the propensities; estimate them where they are missing. Nothing once rankers that
    used them were compared."""
    if ResultKind.RANKERS in given:
        return []
    curve = "propensities.json"
    if ResultKind.PROPENSITIES in given:
        curve = _typed(results, given[ResultKind.PROPENSITIES][-1])
    if ResultKind.PROPENSITIES in given or os.path.exists(curve):
        return ["rankdrift", "train", "LOG", "--propensities", curve, "-o", "ranker.txt"]
    counts = given.get(ResultKind.COUNTS, [])
    if len(counts) > 1 and len(results) == 1:
        return ["rankdrift", "estimate", *results, "-o", curve]
    named = _typed(results, counts[0]) if len(counts) == 1 else "COUNTS"
    return ["rankdrift", "estimate", named, "-o", curve]


def _typed(results: tuple[str, ...], name: str) -> str:
    """The path of the file of this name, given itself or with its folder."""
    paths = [Path(path) / name if os.path.isdir(path) else Path(path) for path in results]
    return str(next(path for path in paths if path.name == name and path.exists()))
