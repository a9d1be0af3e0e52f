"""rankdrift compare"""

import re
from itertools import groupby
from typing import Any

import click

from rankdrift.cli.options import (
    COUNTING,
    SEED,
    Sections,
    guesses,
    log_options,
    read,
    shorter,
    typed,
)
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.estimators.drift import FAMILY as CURVES


class MethodsOption(click.Option):
    """Its help lists the methods that there are when it is asked for."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = methods_help()
        return super().get_help_record(ctx)


def methods_help() -> str:
    """The names of all methods, family by family."""
    words = []
    for family, methods in groupby(METHODS, key=lambda method: method.family):
        names = ", ".join(method.name for method in methods)
        words.append(f"{names} or another curve" if family == CURVES else names)
    return f"{'; '.join(words)}."


@click.command(cls=Sections, first=("methods", "chart", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--methods",
    cls=MethodsOption,
    default=",".join(method.name for method in METHODS if method.default),
    show_default=True,
    metavar="NAME,…",
    help=methods_help(),
)
@click.option("--reference", default=1, show_default=True, help="The rank whose propensity is 1.")
@click.option("--features", metavar="NAME,…", help="Of em: columns or patterns, such as 'f_*'.")
@click.option("--randomised", metavar="NAME", help="Of experiment: says which rows are in it.")
@click.option("--original", metavar="NAME", help="Of swaps: the rank before the swap.")
@click.option(
    "--bootstrap", default=10, show_default=True, help="Refits for the intervals of em; 0: none."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of em and its bootstrap.")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--chart", metavar="FILE", help="Also draw all curves: .png, .svg or .html.")
@log_options()
@talking
def compare(
    screen: Screen,
    logs: tuple[str, ...],
    methods: str,
    reference: int,
    features: str | None,
    randomised: str | None,
    original: str | None,
    bootstrap: int,
    seed: int,
    level: float,
    chart: str | None,
    **options: Any,
) -> int:
    """Estimate the same curve by several methods and tell how far they are apart.

    Tells which agree, and what a disagreement usually means. A method that the log does not allow
    is left out, with the reason; exits with 1 if any is.

    \b
        rankdrift compare 'logs/*.parquet' --methods auto,all-pairs,ctr --max-rank 20
        rankdrift compare 'logs/*.parquet' --methods auto,em,experiment \\
            --features 'f_*' --randomised is_random --chart curves.html
    """
    if chart:
        refuse_input(chart, logs, options["format"])
        check_file(chart)
    from rankdrift.methods.comparing import compare
    from rankdrift.report.terminal.methods import methods_report

    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    with bar(screen, log) as progress:
        found = compare(
            log,
            methods=_split(methods),
            reference=reference,
            features=_split(features) if features else None,
            randomised=randomised,
            original=original,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            progress=progress,
            say=screen.say,
        )
    if chart:
        found.plot().save(chart)
    screen.show(methods_report(found))
    screen.answer({**found.to_dict(), "chart": chart})
    if chart:
        screen.say("", f"The chart is in {chart}.")
    screen.next("rankdrift", "estimate", *shorter(logs), *typed(options), "-o", "propensities.json")
    return 1 if found.left_out else 0


def _split(text: str) -> list[str]:
    """At commas, but not those inside brackets: "direct,loglog(1,2,5)" is two methods."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]
