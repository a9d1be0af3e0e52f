"""Propensities from experiments: rows whose order was drawn at random, or docs swapped at random.

These disturb users, which is what the other estimators avoid; where a slice of them exists, it is
the truth to judge the others by.
"""

import numpy as np

from rankdrift.core.errors import (
    BadOption,
    MissingColumns,
    NotIdentified,
    NoUsablePairs,
    did_you_mean,
)
from rankdrift.core.types import Floats
from rankdrift.core.version import __version__
from rankdrift.core.words import named_ranks, ranges
from rankdrift.counts.connection import connect
from rankdrift.counts.counts import BUCKETS
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import Planner, Step
from rankdrift.methods.click_rates import rates
from rankdrift.methods.making_propensities import About, Evidence, by_jackknife
from rankdrift.methods.rank_times_stratum import Strata, jackknife_buckets, maximise
from rankdrift.methods.tallies import (
    Tally,
    clicks_by_rank,
    collect,
    says_yes,
    with_randomised,
)
from rankdrift.propensities.propensities import Propensities


def experiment(randomised: Tally, *, reference: int = 1) -> Propensities:
    """Propensities from rows whose order was drawn at random: their clicks per impression by rank.

    There every rank shows the same relevance on average, and the ratio of two ranks' click rates is
    the ratio of their propensities. Errors come from leaving out buckets of queries.

    Parameters
    ----------
    randomised
        Impressions and clicks of those rows, `tally(log, randomised=column)`.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Whose `pairs` are impressions. Ranks with clicks in fewer than two buckets are in `gaps`.
    """
    if not randomised.impressions.any():
        raise NoUsablePairs(
            "No row is randomised: the column that tells never says yes (true, 1) of a row that "
            "can be used. Check --randomised, or leave out the method 'experiment'."
        )
    return rates(randomised, "experiment: CTR by rank of randomised rows", reference)


def swaps(
    log: Log,
    *,
    original: str,
    randomised: str | None = None,
    between: tuple[int, int] | None = None,
    cluster: str | None = None,
    reference: int = 1,
    buckets: int = BUCKETS,
    progress: Progress | None = None,
) -> Propensities:
    """Propensities from docs moved between ranks at random (Joachims et al., WSDM 2017).

    Docs of one original rank are alike on average wherever they were shown, so
    P(click) = p_rank r_original; every swap counts, in both directions and whatever share of docs
    was swapped. Errors come from leaving out buckets of queries, or of what `cluster` names.

    Parameters
    ----------
    log
        From `read_log`.
    original
        The column with the rank that a doc had before it was swapped, counted like the rank itself.
    randomised
        The column that tells the rows of the experiment, swapped or not; by default all are.
    between
        Keep two ranks only.
    cluster
        The column whose values belong together, such as the user where each always sees the same
        order; by default queries do.
    reference
        The rank whose propensity is 1.
    buckets
        Of queries, or of the values of `cluster`, to tell the errors.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    Propensities
        Ranks that no swap with clicks on both sides compares with the reference are in `gaps`.
    """
    data = _swapped(log, original, randomised, between, cluster, buckets, progress)
    if (data.ranks[data.rank] == data.stratum + 1).all():  # strata are numbered by original rank
        raise NoUsablePairs(
            f"No doc was shown at another rank than that in {original!r}: nothing was swapped."
        )
    shape = (data.n_strata, len(data.ranks))
    clicks, there = np.zeros(shape), np.zeros(shape, bool)
    np.add.at(clicks, (data.stratum, data.rank), data.clicks)
    there[data.stratum, data.rank] = True
    _, winner, loser = np.nonzero((clicks > 0)[:, :, None] & there[:, None, :])
    apart = winner != loser
    blocks = connect(data.ranks[winner[apart]], data.ranks[loser[apart]]).blocks
    block = next((b for b in blocks if reference in b), None)
    if block is None:
        others = "; ".join(ranges(b) for b in blocks) or "none"
        raise NotIdentified(
            f"Docs swapped to and from rank {reference}, the reference, were not clicked both "
            f"there and elsewhere. Ranks that can be compared: {others}. Choose a reference "
            "among them, or let the experiment run on."
        )
    keep = np.isin(data.ranks, block)
    gaps = dict.fromkeys(
        data.ranks[~keep].tolist(), "no swap with clicks on both sides compares it"
    )
    chosen = data.only(keep)
    fit = maximise(chosen, chosen.click_rates())
    about = About(
        "swaps", reference, fit.log_likelihood, len(block) - 1, gaps, {"original": original}
    )
    evidence = Evidence(chosen.appearances(), chosen.clicks_by_bucket())
    return by_jackknife(chosen.ranks, fit.log_p, jackknife_buckets(chosen, fit), evidence, about)


def combine(drift: Propensities, experiment: Propensities) -> Propensities:
    """One curve of two that rest on different clicks, each counted by how sure it is.

    Generalised least squares: of all means of the two log curves, the one with the smallest error,
    rank by rank and with how errors of ranks go together. The weights come from the covariances,
    and these from a number of buckets: so they are drawn towards plainer ones, and the errors are
    those of the mean with these weights, and a little more for what the weights are off.

    Parameters
    ----------
    drift
        From `estimate`, of a log without the rows of the experiment (`randomised_apart`).
    experiment
        From `experiment` or `swaps`, with the same reference.

    Returns
    -------
    Propensities
        At the ranks that both have.

    Raises
    ------
    BadOption
        If the references differ, or one has no errors.
    NotIdentified
        If there is no rank but the reference that both have.
    """
    if drift.reference != experiment.reference:
        raise BadOption(
            f"One curve is relative to rank {drift.reference}, the other to rank "
            f"{experiment.reference}. Estimate both with one reference."
        )
    for curve in (drift, experiment):
        if curve.errors in ("none", "pointwise"):
            raise BadOption(
                f"How errors of ranks go together is not known of one curve ({curve.method}), so "
                "it cannot be weighed. Use curves as estimated, or saved as .json or .parquet."
            )
    ranks, here, there = np.intersect1d(drift.ranks, experiment.ranks, return_indices=True)
    if len(ranks) < 2:
        raise NotIdentified(
            f"The curves share rank {drift.reference} alone: one has "
            f"{named_ranks(drift.ranks.tolist())}, the other "
            f"{named_ranks(experiment.ranks.tolist())}."
        )
    weight = weights(drift, experiment)
    first, second = drift.log_p[here], experiment.log_p[there]
    rest = np.eye(len(ranks)) - weight
    # After Meier (Biometrics, 1953), for as many numbers as there are ranks.
    share = np.clip(np.diag(weight), 0.0, 1.0)
    unsure = 2 * share * (1 - share) * (1 / drift.df + 1 / experiment.df)
    more = np.sqrt(1 + (len(ranks) - 1) * unsure)[:, None]
    only = np.setxor1d(drift.ranks, experiment.ranks).tolist()
    gaps = {**drift.gaps, **experiment.gaps, **dict.fromkeys(only, "only one of the two has it")}
    return Propensities(
        ranks=ranks,
        log_p=first + weight @ (second - first),
        deviations=more
        * np.concatenate(
            [rest @ drift.deviations[here], weight @ experiment.deviations[there]], axis=1
        ),
        pairs=drift.pairs[here] + experiment.pairs[there],
        clicks=drift.clicks[here] + experiment.clicks[there],
        supported=drift.supported[here] | experiment.supported[there],
        reference=drift.reference,
        method=f"{drift.method} and {experiment.method}, each by how sure it is",
        errors="buckets",
        df=min(drift.df, experiment.df),
        gaps={rank: why for rank, why in gaps.items() if rank not in ranks},
        provenance={"version": __version__, "combined": [drift.method, experiment.method]},
    )


def weights(drift: Propensities, experiment: Propensities) -> Floats:
    """(R, R): how much of what the second curve is above the first `combine` adds to the first, at
    the ranks that both have."""
    _, here, there = np.intersect1d(drift.ranks, experiment.ranks, return_indices=True)
    first, second = (
        _plainer(curve.deviations[place], curve.df)
        for curve, place in ((drift, here), (experiment, there))
    )
    # The reference has no error in either.
    return first @ np.linalg.pinv(first + second, rcond=1e-9, hermitian=True)


def _plainer(deviations: Floats, df: float) -> Floats:
    """The covariance (R, R), drawn towards one whose ranks all have the same in common: the more so
    the fewer buckets there are for the number of ranks."""
    raw = deviations @ deviations.T
    known = np.diag(raw) > 0
    many = int(known.sum())
    if many < 2:
        return np.asarray(raw)
    block = np.ix_(known, known)
    inside = raw[block]
    variance = np.diag(inside)
    common = (inside.sum() - variance.sum()) / (many * (many - 1))
    common = float(np.clip(common, 0.0, variance.min()))
    plain = np.full((many, many), common)
    np.fill_diagonal(plain, variance)
    share = many / (many + df) if np.isfinite(df) else 0.0
    found = raw.copy()
    found[block] = (1 - share) * inside + share * plain
    return np.asarray(found)


def _swapped(
    log: Log,
    original: str,
    randomised: str | None,
    between: tuple[int, int] | None,
    cluster: str | None,
    buckets: int,
    progress: Progress | None,
) -> Strata:
    """A stratum for each original rank, cells by the rank shown."""
    log = with_randomised(log)
    planner = log.planner()
    if original not in log.engine.columns:
        raise MissingColumns(
            f"The log has no column {original!r} with the rank before the swap."
            f"{did_you_mean(original, log.engine.columns)}"
        )
    before, _ = values.rank(*planner.column(original), planner.dialect)
    carry = {"rd_original": f"CAST({before} AS BIGINT) + {1 - log.rules.first_rank}"}
    keep = f" AND rd_original BETWEEN 1 AND {log.rules.max_rank}"
    if randomised:
        carry["rd_randomised"] = says_yes(log, randomised)
        keep += " AND rd_randomised"
    if between is not None:
        if len(set(between)) != 2 or min(between) < 1:
            raise BadOption(f"between takes two different ranks, not {between}.")
        both = ", ".join(str(int(rank)) for rank in between)
        keep += f" AND rank IN ({both}) AND rd_original IN ({both})"

    if cluster:
        text = values.as_text(*planner.column(cluster), planner.dialect)
        carry["rd_cluster"] = f"coalesce({text}, '~')"

    def steps(p: Planner) -> list[Step]:
        by = "rd_cluster" if cluster else None
        return clicks_by_rank(p, buckets, keep, "rd_original", cluster=by)

    found = collect(log, steps, carry=carry, progress=progress)
    if not found["c"].any():
        raise NoUsablePairs(
            "The rows of the experiment hold no click, or there are no such rows. Check "
            f"{' and '.join(filter(None, (original, randomised)))}."
        )
    ranks, rank = np.unique(found["rank"].astype(np.int32), return_inverse=True)
    clicks = found["c"].astype(float)
    return Strata(
        ranks,
        found["rd_original"].astype(np.intp) - 1,
        rank,
        found["bucket"].astype(np.intp),
        clicks,
        found["n"].astype(float) - clicks,
        buckets,
    )
