"""rankdrift models"""

from typing import Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import (
    READING,
    SEED,
    LateHelp,
    Sections,
    guesses,
    log_options,
    read,
    shorter,
    typed,
)
from rankdrift.cli.output import check_chart, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.train import split as split_names

# Of a log: a pair is a query and a doc, whatever else was the same.
UNUSED = (
    "same", "window", "score", "ranker", "user", "outcome", "outcome_at_least",
)  # fmt: skip


def _models() -> str:
    from rankdrift.clickmodels.models import MODELS

    return f"Only these beside pbm and rcm: {', '.join(MODELS.names)}."


@click.command(
    cls=Sections,
    first=("models", "split", "chart", *READING),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--models", cls=LateHelp, listed=_models, metavar="NAME,…", help="Only some of them.")
@click.option(
    "--split",
    type=click.Choice(["search", "time"]),
    default="search",
    show_default=True,
    help="Hold out searches at random, or those of the last days.",
)
@click.option("--held-out", default=0.2, show_default=True, help="The share that is held out.")
@click.option(
    "--searches",
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Read so many at most, about, of queries drawn at random; 0: all.",
)
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all that is random.")
@click.option("--chart", metavar="FILE", help="Also draw the models: .png, .svg or .html.")
@log_options(without=UNUSED)
@talking
def models(
    screen: Screen,
    logs: tuple[str, ...],
    models: str | None,
    split: Any,
    held_out: float,
    searches: int,
    level: float,
    seed: int,
    chart: str | None,
    **options: Any,
) -> int:
    """See whether the position-based model, on which propensities rest, is good enough.

    Fits click models to some of the searches and tells how well each forecasts the others. The log
    must tell searches apart.

    \b
        rankdrift models 'logs/*.parquet'
        rankdrift models 'logs/*.parquet' --models ubm,dbn --split time
    """
    if chart:
        check_chart(chart)
        refuse_input(chart, logs, options["format"])
    from rankdrift.clickmodels.comparing import REFERENCE, compare_models
    from rankdrift.report.terminal.clickmodels import models_report

    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    with bar(screen, log) as progress:
        found = compare_models(
            log,
            models=split_names(models) if models else None,
            split=split,
            held_out=held_out,
            searches=searches or None,
            level=level,
            seed=seed,
            progress=progress,
        )
    screen.note(found.remarks)
    drawn = chart if found.scores[REFERENCE].more is not None else None
    if drawn:
        found.plot().save(drawn)
    screen.show(models_report(found))
    screen.answer({**found.to_dict(), "chart": drawn})
    if chart:
        screen.say("", f"The chart is in {drawn}." if drawn else "There is nothing to draw.")
    read_as = (*shorter(logs), *typed(options))
    if found.to_judge_by:
        model = ("--model", found.to_judge_by)
        screen.next("rankdrift", "judge", *read_as, *model, "-o", "judgments.parquet")
    else:
        screen.next("rankdrift", "estimate", *read_as, "-o", "propensities.json")
    return Exit.GOOD
