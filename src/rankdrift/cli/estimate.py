"""rankdrift estimate and rankdrift diagnose"""

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import (
    COUNTING,
    SEED,
    LateHelp,
    Sections,
    given,
    guesses,
    log_options,
    randomised_words,
    read,
    shorter,
    typed,
)
from rankdrift.cli.output import check_file, outside, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.settings import from_settings
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many, verb

if TYPE_CHECKING:
    from rankdrift.clickmodels.comparing import ModelComparison
    from rankdrift.core.types import Clicks, Errors
    from rankdrift.counts.counts import Counts

# As in core.types and ADJUSTMENTS, which take longer to load than a help; a test compares them.
ADJUST = click.Choice(["score", "ranker", "trust"])
CLICKS = click.Choice(["every", "single"])
ERRORS = click.Choice(["buckets", "model", "bootstrap"])
METHOD = click.Choice(["likelihood", "bayes"])
RELEVANCE = click.Choice(["rank", "column", "same"])


def _curves() -> str:
    from rankdrift.estimation.curves import examples

    return examples()


@click.command(
    cls=Sections,
    first=("output", "curve", "by", "adjust", "clicks", "extrapolate_to", "level"),
)
@click.argument("inputs", nargs=-1, required=True, metavar="COUNTS_OR_LOG...")
@click.option(
    "-o", "--output", metavar="FILE", help="Where the propensities go: .csv, .parquet or .json."
)
@click.option("--curve", cls=LateHelp, listed=_curves, default="auto", show_default=True)
@click.option(
    "--clicks",
    type=CLICKS,
    default="every",
    show_default=True,
    help="Every click, or only pairs with a single one, as in the paper.",
)
@click.option(
    "--shown-below",
    type=int,
    metavar="RANK",
    help="Only pairs shown below it at least once: advised in the paper where clicks are many.",
)
@click.option(
    "--reference",
    type=int,
    show_default="1, or the best supported",
    help="The rank whose propensity is 1.",
)
@click.option(
    "--errors",
    type=ERRORS,
    default="buckets",
    show_default=True,
    help="What the intervals rest on.",
)
@click.option("--samples", default=1000, show_default=True, help="Samples of the bootstrap.")
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Of the bootstrap, and of bayes."
)
@click.option("--by", metavar="NAME,…", help="Segment columns: a curve for each segment too.")
@click.option(
    "--extrapolate-to", type=int, metavar="N", help="Draw the curve on to this rank, as thin."
)
@click.option(
    "--adjust",
    type=ADJUST,
    help="Correct the curve for why docs moved: by the score in the log, or by the arms of an A/B "
    "test of rankers; or for trust, clicks that need no relevance (from a log, or counts harvested "
    "with --trust). The plain curve is shown beside it.",
)
@click.option(
    "--method",
    type=METHOD,
    default="likelihood",
    show_default=True,
    help="The most likely curve, or its posterior given a prior of relevance.",
)
@click.option(
    "--relevance",
    type=RELEVANCE,
    default="rank",
    show_default=True,
    help="Of bayes: what the prior mean of a pair's relevance depends on.",
)
@click.option("--draws", default=2000, show_default=True, help="Of bayes, of the posterior.")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--simultaneous", is_flag=True, help="Intervals for the whole curve at once.")
@click.option(
    "--full",
    is_flag=True,
    help="Write all: each segment's own curve beside the shrunk one, and every digit; smallest as "
    ".parquet.",
)
@log_options()
@talking
def estimate(
    screen: Screen,
    inputs: tuple[str, ...],
    output: str | None,
    curve: str,
    clicks: "Clicks",
    shown_below: int | None,
    reference: int | None,
    errors: "Errors",
    samples: int,
    seed: int,
    by: str | None,
    extrapolate_to: int | None,
    adjust: str | None,
    method: str,
    relevance: str,
    draws: int,
    level: float,
    simultaneous: bool,
    full: bool,
    **options: Any,
) -> int:
    """Estimate propensities: how likely a result at each rank is looked at.

    COUNTS_OR_LOG are files of counts (a folder or a glob of them is added up), or a log, which is
    then counted first, with the options of harvest.

    \b
        rankdrift estimate counts.parquet -o propensities.csv
        rankdrift estimate counts.parquet --by platform -o propensities.json
        rankdrift estimate counts.parquet --curve loglog
        rankdrift estimate counts.parquet --adjust score -o propensities.json
    """
    if output:
        refuse_input(output, inputs, options["format"])
        check_file(output)
    from rankdrift.estimation import estimate
    from rankdrift.propensities.summary import says_nothing
    from rankdrift.report.terminal.curve import curve_report

    counts = counts_of(screen, inputs, options, trust=adjust == "trust")
    screen.say(*randomised_words(counts.options))
    if shown_below is not None:
        every, counts = counts, counts.restrict(shown_below=shown_below)
        pairs = f"{counts.n_pairs:,} of {many(every.n_pairs, 'pair')}"
        used = verb(counts.n_pairs, "is used: the one", "are used: those")
        screen.say(f"{pairs} {used} known to have been shown below rank {shown_below}.")
    estimated = partial(
        estimate,
        counts,
        curve=curve,
        clicks=clicks,
        reference=reference,
        errors=errors,
        samples=samples,
        seed=seed,
        by=[name.strip() for name in by.split(",")] if by else None,
        extrapolate_to=extrapolate_to,
        method=method,
        relevance=relevance,
        draws=draws,
    )
    found = estimated(adjust=adjust)
    plain = estimated() if adjust else None
    if output:
        found.save(output, level, simultaneous, full)
    screen.show(curve_report(found, level, simultaneous, plain))
    screen.answer(
        {
            "file": output,
            "table": found.table(level, simultaneous, full),
            "plain": plain.table(level, simultaneous, full) if plain else None,
            "level": level,
            "simultaneous": simultaneous,
            "gaps": {str(r): why for r, why in found.gaps.items()},
            "summary": found.summary(level, simultaneous),
            "provenance": dict(found.provenance),
        }
    )
    if output:
        screen.say("", f"The propensities are in {output}.")
    useless = says_nothing(found)
    if useless:
        screen.say("", useless)
        return Exit.UNFIT
    screen.next("rankdrift", "diagnose", *shorter(inputs), *typed(options))
    return Exit.GOOD


@click.command(cls=Sections, first=("curve", "reference", *COUNTING))
@click.argument("inputs", nargs=-1, required=True, metavar="COUNTS_OR_LOG...")
@click.option("--curve", default="auto", show_default=True, help="As in estimate.")
@click.option(
    "--reference",
    type=int,
    show_default="1, or the best supported",
    help="The rank whose propensity is 1.",
)
@click.option(
    "--models",
    is_flag=True,
    help="Also set click models beside the position-based one, as rankdrift models does: of a log "
    "that tells searches apart.",
)
@log_options()
@talking
def diagnose(
    screen: Screen,
    inputs: tuple[str, ...],
    curve: str,
    reference: int | None,
    models: bool,
    **options: Any,
) -> int:
    """Check whether the assumptions behind the estimate hold on this data, and what to do if not.

    The whole is good, caution, serious, or more than this log can tell; then come the checks, with
    what they found and what to do. Exits with 1 if something serious was found.

    \b
        rankdrift diagnose counts.parquet
        rankdrift diagnose 'logs/*.parquet' --models
    """
    from rankdrift.core.verdicts import Verdict
    from rankdrift.diagnosis.diagnosing import diagnose
    from rankdrift.harvesting.taking import counts_files
    from rankdrift.report.terminal.diagnosis import diagnosis_report

    found = diagnose(counts_of(screen, inputs, options), curve=curve, reference=reference)
    if models:
        found = found.with_check(_models_of(screen, inputs, options).as_check())
    screen.show(diagnosis_report(found))
    screen.answer(found.to_dict())
    if all(map(os.path.exists, inputs)) and counts_files(inputs):
        screen.next("rankdrift", "report", *inputs, "-o", "report.html")
    else:
        command = ("rankdrift", "estimate", *shorter(inputs), *typed(options))
        screen.next(*command, "-o", outside("propensities.json", inputs))
    return Exit.UNFIT if found.verdict == Verdict.SERIOUS else Exit.GOOD


def _models_of(
    screen: Screen, inputs: tuple[str, ...], options: dict[str, Any]
) -> "ModelComparison":
    """Click models of a log; what makes segments makes no difference to them."""
    from rankdrift.clickmodels.comparing import compare_models
    from rankdrift.harvesting.taking import counts_files

    if counts_files(inputs):
        raise BadOption(
            "--models looks at whole searches, and these are counts, which have none. Give the log."
        )
    log = read(inputs, options)
    with bar(screen, log) as progress:
        bare = replace(log, roles=replace(log.roles, segment=()))
        found = compare_models(bare, progress=progress)
    screen.note(found.remarks)
    return found


def counts_of(
    screen: Screen, inputs: tuple[str, ...], options: dict[str, Any], trust: bool = False
) -> "Counts":
    """Get counts from files of counts, or from a log that is harvested first.

    Parameters
    ----------
    screen
        For talk and the bar.
    inputs
        Files, folders and patterns.
    options
        Of `read_log`, for a log.
    trust
        Whether to count a log for trust, too.
    """
    from rankdrift.harvesting.counting import harvest
    from rankdrift.harvesting.taking import counts_files, take_counts

    def count(logs: tuple[str, ...]) -> "Counts":
        log = read(logs, options)
        screen.say(*guesses(log))
        with bar(screen, log) as progress:
            return harvest(log, trust=trust, progress=progress)

    paths = counts_files(inputs)
    if not paths:
        return take_counts(inputs, count)
    asked = given(options)
    max_rank = asked.pop("max_rank", None)
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in asked if not from_settings(name))
    if flags:
        raise BadOption(
            f"{flags}: that is how to read a log, but these are counts already. Leave it out, or "
            "give the log instead of its counts."
        )
    counts = take_counts(paths)
    if max_rank is None or max_rank >= counts.max_rank:
        return counts
    kept = counts.restrict(max_rank=max_rank)
    pairs = f"{kept.n_pairs:,} of {many(counts.n_pairs, 'pair')}"
    screen.say(f"{pairs} moved within ranks 1–{max_rank} and got a click there.")
    return kept
