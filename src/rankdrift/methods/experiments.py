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
from rankdrift.core.words import ranges
from rankdrift.counts.connection import connect
from rankdrift.counts.counts import BUCKETS
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import Planner, Step
from rankdrift.methods.click_rates import rates
from rankdrift.methods.making_propensities import About, Evidence, by_jackknife
from rankdrift.methods.rank_times_stratum import Strata, jackknife_buckets, maximise
from rankdrift.methods.tallies import Tally, clicks_by_rank, collect, says_yes
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
    reference: int = 1,
    buckets: int = BUCKETS,
    progress: Progress | None = None,
) -> Propensities:
    """Propensities from docs moved between ranks at random (Joachims et al., WSDM 2017).

    Docs of one original rank are alike on average wherever they were shown, so
    P(click) = p_rank r_original; every swap counts, in both directions and whatever share of docs
    was swapped. Errors come from leaving out buckets of queries.

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
    reference
        The rank whose propensity is 1.
    buckets
        Of queries, to tell the errors.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    Propensities
        Ranks that no swap with clicks on both sides compares with the reference are in `gaps`.
    """
    data = _swapped(log, original, randomised, between, buckets, progress)
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


def _swapped(
    log: Log,
    original: str,
    randomised: str | None,
    between: tuple[int, int] | None,
    buckets: int,
    progress: Progress | None,
) -> Strata:
    """A stratum for each original rank, cells by the rank shown."""
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

    def steps(p: Planner) -> list[Step]:
        return clicks_by_rank(p, buckets, keep, "rd_original")

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
