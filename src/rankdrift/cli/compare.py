"""rankdrift compare"""

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.estimate import counts_of
from rankdrift.cli.options import (
    COUNTING,
    SEED,
    LateHelp,
    Sections,
    guesses,
    log_options,
    randomised_words,
    read,
    shorter,
    typed,
)
from rankdrift.cli.output import check_chart, check_folder, outside, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.estimators.drift import FAMILY as CURVES

if TYPE_CHECKING:
    from rankdrift.counts.counts import Counts
    from rankdrift.log.engines.engine import Progress
    from rankdrift.log.log import Log
    from rankdrift.propensities.propensities import Propensities


def methods_help() -> str:
    """The names of all methods, family by family."""
    words = []
    for family, methods in groupby(METHODS, key=lambda method: method.family):
        names = ", ".join(method.name for method in methods)
        words.append(f"{names} or any curve" if family == CURVES else names)
    default = ",".join(method.name for method in METHODS if method.default)
    return f"One or several of {'; '.join(words)}. [default: {default}]"


@click.command(cls=Sections, first=("methods", "output", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG|COUNTS...")
@click.option(
    "--methods",
    cls=LateHelp,
    listed=methods_help,
    metavar="NAME,…",
    help=methods_help(),
)
@click.option(
    "--reference",
    type=int,
    show_default="1, or the best supported",
    help="The rank whose propensity is 1.",
)
@click.option("--features", metavar="NAME,…", help="Of em and dual: columns or patterns, 'f_*'.")
@click.option("--original", metavar="NAME", help="Of swaps: the rank before the swap.")
@click.option(
    "--bootstrap",
    default=10,
    show_default=True,
    help="Refits for the intervals of em and dual; 0: none.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of em, dual and bayes.")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "-o", "--output", metavar="FOLDER", help="Also save the curve of each method, a file each."
)
@click.option("--chart", metavar="FILE", help="Also draw all curves: .png, .svg or .html.")
@log_options()
@talking
def compare(
    screen: Screen,
    logs: tuple[str, ...],
    methods: str | None,
    reference: int | None,
    features: str | None,
    original: str | None,
    bootstrap: int,
    seed: int,
    level: float,
    output: str | None,
    chart: str | None,
    **options: Any,
) -> int:
    """Estimate the same curve by several methods and tell how far they are apart.

    Curves, ratio, bayes and ctr need no log: counts will do. Exits with 1 if a method is left out
    because the log does not allow it.

    \b
        rankdrift compare 'logs/*.parquet' --methods auto,ctr --max-rank 20
        rankdrift compare counts.parquet --methods auto,loglog,ratio
    """
    if output:
        check_folder(output)
    if chart:
        refuse_input(chart, logs, options["format"])
        check_chart(chart)
    from rankdrift.harvesting.taking import counts_files
    from rankdrift.methods.comparing import compare
    from rankdrift.report.terminal.methods import methods_report

    source: Log | Counts
    place: AbstractContextManager[Progress | None]
    if counts_files(logs):
        source, place = counts_of(screen, logs, options), nullcontext()
    else:
        source = log = read(logs, options)
        screen.say(*guesses(log), *randomised_words(log.describe()))
        screen.note(log.remarks)
        place = bar(screen, log)
    with place as progress:
        found = compare(
            source,
            methods=_split(methods) if methods else None,
            reference=reference,
            features=_split(features) if features else None,
            original=original,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            progress=progress,
            say=screen.say,
        )
    saved = _save(found.curves, output) if output else {}
    if chart:
        found.plot().save(chart)
    screen.show(methods_report(found))
    screen.answer({**found.to_dict(), "chart": chart, "files": saved})
    if output:
        screen.say("", f"The curves are in {output}: {', '.join(saved.values())}.")
    if chart:
        screen.say("", f"The chart is in {chart}.")
    result = outside("propensities.json", logs)
    screen.next("rankdrift", "estimate", *shorter(logs), *typed(options), "-o", result)
    return 1 if found.left_out else 0


def _save(curves: Mapping[str, "Propensities"], folder: str) -> dict[str, str]:
    """A file for each method; its name by the method's."""
    names = {name: re.sub(r"[^\w.+-]+", "-", name).strip("-") + ".json" for name in curves}
    for name, curve in curves.items():
        curve.save(os.path.join(folder, names[name]))
    return names


def _split(text: str) -> list[str]:
    """At commas, but not those inside brackets: "direct,loglog(1,2,5)" is two methods."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]
