"""Clicks per impression by rank, relative to the reference: the baseline that everyone has.

It is the propensity times the mean relevance of what is shown at the rank. A ranker that puts
better results higher makes it fall faster than the propensities do; among rows whose order was
drawn at random (`experiments.experiment`) it is the propensity itself.
"""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import NoUsablePairs
from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.counts.counts import Counts
from rankdrift.counts.rank_blocks import totals_by_rank
from rankdrift.methods.making_propensities import (
    ONE_BUCKET,
    About,
    Evidence,
    by_deviations,
    by_jackknife,
    place_of,
)
from rankdrift.methods.tallies import Tally
from rankdrift.propensities.intervals import Interval, t_quantile
from rankdrift.propensities.propensities import Propensities

SINGLE = 12  # ranks at the top that click rates are split for one by one, whatever their clicks
NO_CLICKS = "shown but never clicked: its propensity is small, but nobody knows how small"


def ctr(found: Counts | Tally, *, reference: int = 1) -> Propensities:
    """Clicks per impression by rank, relative to the reference: propensity times relevance.

    It assumes that results are as relevant at every rank, and is too steep where a ranker puts
    better ones higher.

    Parameters
    ----------
    found
        Counts, or a `tally` of the log. Counts hold impressions and clicks by rank only, so
        intervals take every impression for independent (errors "model"): clicks of one query belong
        together, so they are too narrow. From a tally they rest on buckets of queries.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Propensities
        Whose `pairs` are impressions. Ranks without a click are in `gaps`; from a tally, those with
        clicks in one bucket only too.
    """
    if isinstance(found, Tally):
        return rates(found, "CTR by rank", reference)
    by_rank = found.pool().by_rank
    size = int(by_rank.rank.max(initial=0))
    table = np.zeros((2, 1, size), np.int64)
    table[:, 0, by_rank.rank - 1] = by_rank.impressions, by_rank.clicks
    about, keep, evidence = _clicked(Tally(table[0], table[1]), "CTR by rank", reference, 1)
    ranks = np.flatnonzero(keep).astype(np.int32) + 1
    place = place_of(reference, ranks, about.gaps)
    clicks, impressions = table[1, 0, keep], table[0, 0, keep]
    rate = clicks / impressions
    log_p = np.log(rate) - np.log(rate[place])
    error = np.sqrt((1 - rate) / clicks)
    deviations = np.diag(error)
    return by_deviations(
        ranks,
        log_p,
        deviations - deviations[place],
        evidence.at(keep),
        about,
        errors="model",
        df=np.inf,
    )


@dataclass(frozen=True, eq=False)
class RateSplit:
    """What falling click rates are made of, by block of ranks: rate = position · relevance.

    All columns are (B,) and relative to the rank `reference`, where they are 1. first, last: the
    ranks of a block; rank: one in its middle. rate: clicks an impression. position: the propensity,
    averaged over the impressions of the block, with position_low and position_high. relevance: the
    rest, which is how much less what is shown there is wanted, with relevance_low and
    relevance_high, to which the number of clicks adds. supported: whether all of its ranks are.
    """

    reference: int
    level: float
    first: Ints
    last: Ints
    rate: Floats
    position: Floats
    position_low: Floats
    position_high: Floats
    relevance: Floats
    relevance_low: Floats
    relevance_high: Floats
    supported: Bools

    @property
    def rank(self) -> Floats:
        """(B,): the middle of each block, by logarithms."""
        return np.asarray(np.sqrt(self.first * self.last))

    def at(self, rank: int) -> tuple[float, Interval, Interval] | None:
        """Rate, position and relevance of the block of this rank; None if there is none."""
        [here] = np.nonzero((self.first <= rank) & (rank <= self.last))
        if not len(here):
            return None
        i = int(here[0])

        def interval(value: Floats, low: Floats, high: Floats) -> Interval:
            return Interval(float(value[i]), float(low[i]), float(high[i]), self.level)

        position = interval(self.position, self.position_low, self.position_high)
        relevance = interval(self.relevance, self.relevance_low, self.relevance_high)
        return float(self.rate[i]), position, relevance


def split_click_rates(
    counts: Counts, curve: Propensities, *, most: int = 40, level: float = 0.95
) -> RateSplit | None:
    """Split how click rates fall with the rank into what the position takes and what relevance
    takes.

    Parameters
    ----------
    counts
        With the impressions and clicks of the ranks; all of their segments together.
    curve
        The propensities of the same log, with errors.
    most
        Blocks of ranks, about: rank by rank at the top, then ever wider.
    level
        Of the intervals.

    Returns
    -------
    RateSplit | None
        None where the reference rank has no click, or the curve no errors.
    """
    ranks, known = curve.ranks, np.isfinite(curve.std_error)
    totals = totals_by_rank(counts, int(ranks[-1]))
    shown, clicks = totals.impressions[ranks] * known, totals.clicks[ranks] * known
    place = int(np.searchsorted(ranks, curve.reference))
    if not clicks[place] or curve.errors == "none":
        return None
    first, last = int(ranks[0]), int(ranks[-1])
    single = np.arange(first, min(last, SINGLE) + 2)
    edges = np.union1d(single, widening_edges(first, last, most))
    block = np.searchsorted(edges, ranks, side="right") - 1
    inside = np.equal.outer(np.arange(len(edges) - 1), block).astype(float)
    weight = inside * (shown * curve.values)  # (B, R): how much each rank counts in its block
    kept = (inside @ clicks > 0) & (weight.sum(axis=1) > 0)
    inside, weight = inside[kept], weight[kept]
    block_shown, block_clicks = inside @ shown, inside @ clicks
    rate = block_clicks / block_shown * shown[place] / clicks[place]
    position = weight.sum(axis=1) / block_shown
    shares = weight / weight.sum(axis=1, keepdims=True)
    deviations = shares @ np.where(known[:, None], curve.deviations, 0.0)
    variance = (deviations**2).sum(axis=1)
    begin, end = edges[:-1][kept], edges[1:][kept] - 1
    unit = (begin == curve.reference) & (end == curve.reference)
    counted = np.where(unit, 0.0, 1 / block_clicks + 1 / clicks[place])
    reach = t_quantile(level, curve.df)
    with np.errstate(over="ignore"):  # the interval of a block with next to no data
        of_position = np.exp(reach * np.sqrt(variance))
        of_relevance = np.exp(reach * np.sqrt(variance + counted))
    relevance = rate / position
    return RateSplit(
        curve.reference,
        level,
        begin,
        end,
        rate,
        position,
        position / of_position,
        position * of_position,
        relevance,
        relevance / of_relevance,
        relevance * of_relevance,
        inside @ ~curve.supported == 0,
    )


def rates(found: Tally, method: str, reference: int) -> Propensities:
    """CTR by rank with errors from leaving out each bucket of queries."""
    about, keep, evidence = _clicked(found, method, reference, 2)
    clicks, shown = found.clicks[:, keep], found.impressions[:, keep]
    ranks = np.flatnonzero(keep).astype(np.int32) + 1
    total_clicks, total_shown = clicks.sum(axis=0), shown.sum(axis=0)
    log_p = np.log(total_clicks / total_shown)
    influence = np.log((total_clicks - clicks) / (total_shown - shown)) - log_p
    return by_jackknife(ranks, log_p, influence, evidence.at(keep), about)


def _clicked(
    found: Tally, method: str, reference: int, least: int
) -> tuple[About, Bools, Evidence]:
    """Which ranks have clicks, in `least` buckets or more; the others are gaps."""
    shown, clicks = found.impressions.sum(axis=0), found.clicks.sum(axis=0)
    if not clicks.any():
        raise NoUsablePairs(
            f"There is not a single click in the rows that count here ({int(shown.sum()):,}), so "
            "there is no click rate. Check the column of clicks, or add days."
        )
    spread = (found.clicks > 0).sum(axis=0)
    keep = spread >= least
    gaps = {
        rank: ONE_BUCKET if clicks[rank - 1] else NO_CLICKS
        for rank in (np.flatnonzero(~keep & (shown > 0)) + 1).tolist()
    }
    about = About(method, reference, parameters=int(keep.sum()) - 1, gaps=gaps)
    return about, keep, Evidence(shown, found.clicks)
