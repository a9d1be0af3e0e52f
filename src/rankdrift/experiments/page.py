"""The page of results as it is now: what an experiment would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats
from rankdrift.core.words import many, named_ranks
from rankdrift.counts.connection import connection
from rankdrift.counts.counts import Counts
from rankdrift.propensities.propensities import Propensities

LEAST = 1e-12  # clicks per impression; products of several such are still numbers


@dataclass(frozen=True, eq=False)
class Page:
    """What is known of results as they are shown now, by rank (R,), down to the deepest of the
    ratio; `clicks` and `dcg` are a search's, over all ranks known."""

    rates: Floats
    p: Floats
    z: Floats
    clicks: float
    dcg: float
    reach: Floats | None
    blocks: Sequence[Sequence[int]] | None
    searches_a_day: float | None
    assumed: Sequence[str]


def page_of(
    evidence: Counts | Mapping[int, float] | Sequence[float],
    propensities: Propensities | None,
    last: int,
    searches_a_day: float | None,
) -> Page:
    """What is known of the page.

    Parameters
    ----------
    evidence, propensities, searches_a_day
        As for `plan`.
    last
        The deepest rank that matters.
    """
    reach, blocks = None, None
    if isinstance(evidence, Counts):
        table = evidence.by_rank
        size = int(table.rank.max(initial=0))
        shown, clicked = (
            np.bincount(table.rank, weights=values, minlength=size + 1)[1:]
            for values in (table.impressions, table.clicks)
        )
        _refuse_missing([r for r in range(1, last + 1) if r > size or not shown[r - 1]])
        rates = (clicked + 0.5) / (shown + 1)
        reach = np.minimum(shown / shown[0], 1.0)
        blocks = _blocks(evidence, last)
        days = len(evidence.days)
        if searches_a_day is None and days:
            searches_a_day = float(shown[0]) / days
        weight = shown / shown[0]
    else:
        rates = _given(evidence, last)
        weight = np.ones(len(rates))
    p, assumed = _propensities(propensities, rates)
    z = rates / p
    discount = 1 / np.log2(np.arange(len(rates)) + 2)
    return Page(
        rates[:last],
        p[:last],
        z[:last],
        float((weight * rates).sum()),
        float((weight * z * discount).sum()),
        reach,
        blocks,
        searches_a_day,
        assumed,
    )


def _given(evidence: Mapping[int, float] | Sequence[float], last: int) -> Floats:
    """(R,): rates as they were given, each above 0 and below 1."""
    if isinstance(evidence, Mapping):
        _refuse_missing([rank for rank in range(1, last + 1) if rank not in evidence])
        size = next(r for r in range(last, len(evidence) + 2) if r + 1 not in evidence)
        rates = np.array([evidence[rank] for rank in range(1, size + 1)], dtype=float)
    else:
        rates = np.asarray(evidence, dtype=float)
    if rates.ndim != 1 or not ((rates >= LEAST) & (rates < 1)).all():
        raise BadOption(
            "Click rates by rank must be numbers above 0 and below 1, one a rank; what is below "
            f"{LEAST:g} takes more searches than anybody has."
        )
    _refuse_missing(list(range(len(rates) + 1, last + 1)))
    return rates


def _refuse_missing(ranks: Sequence[int]) -> None:
    if ranks:
        raise BadOption(
            f"Nothing is known of clicks at {named_ranks(ranks)}, so what an experiment costs "
            "there is not known. Give rates of all ranks down to the deepest of the ratio, or "
            "choose a ratio of ranks that are shown."
        )


def _propensities(known: Propensities | None, rates: Floats) -> tuple[Floats, list[str]]:
    """(R,), those known; and elsewhere what makes a swap cost most: half of the fall of a log rate
    is then the rank's."""
    half = np.sqrt(rates / rates[0])
    worst = "half of the fall of the click rates is taken to be the rank's: there swaps cost most"
    if known is None:
        return half, [f"No propensities were given; {worst}."]
    ranks = np.arange(1, len(rates) + 1)
    place = np.minimum(np.searchsorted(known.ranks, ranks), len(known.ranks) - 1)
    there = known.ranks[place] == ranks
    if not there.any():
        raise BadOption(
            f"The propensities are of {named_ranks(known.ranks.tolist())}, none of them among the "
            f"{many(len(rates), 'rank')} with click rates."
        )
    level = np.log(known.values[place[there]] / half[there]).mean()
    p = np.where(there, known.values[place], half * np.exp(level))
    p = p / p.max()
    if there.all():
        return p, []
    return p, [f"At {named_ranks(ranks[~there].tolist())} no propensities are known; {worst}."]


def _blocks(counts: Counts, last: int) -> list[list[int]]:
    """Ranks 1 to `last` in groups that the log can compare; the others each by itself."""
    found: list[list[int]] = []
    for block in connection(counts).blocks:
        inside = [rank for rank in block if rank <= last]
        if inside:
            found.append(inside)
    known = {rank for block in found for rank in block}
    return found + [[rank] for rank in range(1, last + 1) if rank not in known]
