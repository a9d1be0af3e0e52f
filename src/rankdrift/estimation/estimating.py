"""Counts -> Propensities: check the options, estimate one curve or one a segment."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

from rankdrift.core.errors import BadOption, Remark, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.types import ERRORS, Clicks, Errors
from rankdrift.counts.choices import check_clicks
from rankdrift.counts.counts import Counts
from rankdrift.estimation.adjusting import ADJUSTMENTS
from rankdrift.estimation.bayes.estimating import DRAWS, estimate_posterior
from rankdrift.estimation.bayes.estimating import Options as Bayes
from rankdrift.estimation.curves import Curve
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.estimation.fitted_curve import to_propensities
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.identification import THIN_REFERENCE, best_reference
from rankdrift.estimation.segments import estimate_by, posterior_by
from rankdrift.harvesting.taking import take_counts
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import all_curves

LIKELIHOOD, BAYES = "likelihood", "bayes"
DEEPEST = 10_000  # rank that a curve may be drawn on to: every rank is a row of its errors


@names_checked
def estimate(
    counts: Counts | Log | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    curve: str | Curve = "auto",
    clicks: Clicks = "every",
    reference: int | None = None,
    errors: Errors = "buckets",
    samples: int = 1000,
    seed: int = 0,
    by: str | Sequence[str] | None = None,
    extrapolate_to: int | None = None,
    adjust: str | None = None,
    method: str = LIKELIHOOD,
    relevance: str = "rank",
    draws: int = DRAWS,
) -> Propensities:
    """Estimate how likely a result at each rank is looked at, compared with the reference rank.

    The same result for the same query drifts between ranks by itself. Which of its appearances
    got the click says which rank is looked at more, whatever the result is worth; this finds the
    propensities that make those clicks most likely: the maximum of Eq. (3), log-like.

    Parameters
    ----------
    counts
        What `harvest` counted, or a sum of such counts; or where they are: a file, a folder or a
        glob of files, added up; or a log, as `read_log` gives it or a path of it, counted first.
    curve
        The shape of log p: "auto" (chosen from the data, by each segment for itself: the paper's
        knots, with more knots, jumps or a batch where they pay), or one that is given, such as
        "loglog" (the paper's: straight lines between knots, both axes logarithmic), "loglog(1, 2,
        5, 20)" (with these knots), "loglog + batch(40)" (results load 40 at a time), "grid(4)"
        (rows of four) or "direct" (each rank by itself). `method` and `provenance` of the result
        name the curve that was chosen.
    clicks
        "every" click is a choice among the ranks its pair was shown at, or only the
        "single" one of pairs clicked just once, as in the paper.
    reference
        The rank whose propensity is 1: by default the first, or where that is thin the rank with
        the most clicks won and lost, of which a remark tells.
    errors
        What intervals rest on: differences between "buckets" of queries, whose clicks may
        belong together; the "model" alone, which takes every click as independent; or a
        "bootstrap" over buckets.
    samples, seed
        Of the bootstrap.
    by
        Segment columns of the counts; each segment gets a curve of its own besides the pooled
        one, and one that is shrunk towards the pool, with a test of whether segments differ. By
        "bayes" each has its own posterior, which is not shrunk.
    extrapolate_to
        Draw the curve on to this rank, deeper than any data. Such ranks are marked as
        not supported. A loglog curve goes on, with or without a batch, and so does whatever
        "auto" chooses.

    adjust
        Correct the curve for why docs moved: "score", for the old ranker's score and the time of
        day, or "ranker", by the arms of an A/B test of rankers; the counts must have been harvested
        with that column. Without it docs are taken to have moved whatever they were worth.
        "trust" is for users who click what stands at the top because it stands there: the result
        has a second curve, `trust`; the counts must have been harvested with `trust=True`. It is
        far noisier than the plain curve: see `diagnose` first.
    method
        "likelihood", or "bayes": the posterior of the propensities, given a prior of relevance that
        is learned along with them. Its intervals are credible ones; `draws` of the result has it.
        It takes `by`, `reference`, `seed`, `relevance` and `draws`, and no other option.
    relevance
        Of "bayes": what the prior mean of a pair's relevance depends on: its usual "rank", which
        learns next to nothing from pairs at one rank; of those, the "column" that they were
        harvested by; or nothing (the "same" for all pairs).
    draws
        Of "bayes": how many.

    Returns
    -------
    Propensities
        Values with their errors. Ranks that were shown and have no estimate are in `gaps`, with
        the reason; ranks with data too thin for their interval are not `supported`.

    Raises
    ------
    NoUsablePairs
        No pair was shown at two ranks and clicked.
    NotIdentified
        The data cannot compare ranks that the curve needs compared; the message says which.
    NotConverged
        The likelihood has no maximum: some propensities run off to 0 or infinity. Or chains of
        "bayes" do not agree; `partial` of the error has the propensities of what was drawn.

    Examples
    --------
    >>> p = rankdrift.estimate("counts.parquet")  # doctest: +SKIP
    >>> p[5], p.at([1, 2, 5])  # doctest: +SKIP
    >>> print(p.ratio(5, 1))  # doctest: +SKIP
    0.54 (95%: 0.49 to 0.58)
    >>> p.save("propensities.json")  # doctest: +SKIP
    """
    bayes = Bayes(relevance, draws, 1 if reference is None else reference, seed)
    options = Options(
        parse_curve(curve),
        clicks,
        1 if reference is None else reference,
        errors,
        samples,
        seed,
        extrapolate_to,
        adjust,
    )
    _check(options)
    if adjust == "trust" and by:
        raise BadOption(
            "--adjust trust is for all segments together: one has too few clicks for it. Leave out "
            "--by, or estimate from counts of one segment."
        )
    _check_method(method, options, bayes)
    counts = take_counts(counts, trust=adjust == "trust")
    if reference is None:
        options = replace(options, reference=best_reference(counts, clicks))
        if options.reference != 1:
            warnings.warn(THIN_REFERENCE.format(options.reference), Remark, stacklevel=3)
    columns = (by,) if isinstance(by, str) else tuple(by or ())
    if method == BAYES:
        bayes = replace(bayes, reference=options.reference)
        if columns:
            return posterior_by(counts, columns, bayes)
        return estimate_posterior(counts.pool(), bayes)
    if columns:
        found = estimate_by(counts, columns, options)
    else:
        found = to_propensities(counts, fit(counts, options), options)
    if extrapolate_to is not None and all(curve.pairs[-1] for _, _, curve in all_curves(found)):
        warnings.warn(
            f"There was nothing to draw on to rank {extrapolate_to}: pairs moved down to rank "
            f"{found.ranks[-1]}.",
            Remark,
            stacklevel=3,
        )
    return found


def _check_method(method: str, options: Options, bayes: Bayes) -> None:
    """Refuse a method that there is not, and options that the method would pass over."""
    if method not in (LIKELIHOOD, BAYES):
        hint = did_you_mean(method, (LIKELIHOOD, BAYES))
        raise BadOption(f"method is {method!r}.{hint} Use '{LIKELIHOOD}' or '{BAYES}'.")
    if method == LIKELIHOOD:
        usual = Bayes(reference=bayes.reference, seed=bayes.seed)
        given = [
            name for name in ("relevance", "draws") if getattr(bayes, name) != getattr(usual, name)
        ]
        if given:
            raise BadOption(f"--{given[0]} is an option of --method bayes.")
        return
    bayes.check()
    usual_options = Options()
    names = ("clicks", "errors", "samples", "extrapolate_to", "adjust")
    given = [n for n in names if getattr(options, n) != getattr(usual_options, n)]
    given += ["curve"] if not parse_curve(options.curve).is_auto else []
    if given:
        raise BadOption(
            f"--{given[0].replace('_', '-')} does not go with --method bayes, which takes --by, "
            "--reference, --seed, --relevance and --draws. Leave it out."
        )


def _check(options: Options) -> None:
    if options.errors not in ERRORS:
        raise BadOption(f"errors is {options.errors!r}. Use {', '.join(ERRORS)}.")
    check_clicks(options.clicks)
    if options.adjust is not None:
        ADJUSTMENTS.get(options.adjust)
        if options.clicks != "every" or options.errors != "buckets":
            raise BadOption(
                "--adjust goes with --clicks every and --errors buckets, the defaults: what it "
                "adds is known for these alone."
            )
    if options.errors == "bootstrap" and options.samples < 20:
        raise BadOption(f"samples must be 20 or more, not {options.samples}.")
    if options.extrapolate_to is not None and not 1 <= options.extrapolate_to <= DEEPEST:
        raise BadOption(
            f"extrapolate_to is a rank, from 1 to {DEEPEST:,}, not {options.extrapolate_to:,}."
        )
    if options.reference < 1 or options.reference != int(options.reference):
        raise BadOption(f"reference is a rank, from 1, not {options.reference}.")
