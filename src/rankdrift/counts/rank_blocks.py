"""What the counts say of blocks of ranks, and of segments: the figures that pages draw."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankdrift.core.rank_blocks import widening_edges
from rankdrift.core.types import Floats, Segment
from rankdrift.counts.counts import Counts


@dataclass(frozen=True)
class Block:
    """Impressions and clicks of the ranks `first` to `last`."""

    first: int
    last: int
    impressions: int
    clicks: int

    @property
    def ctr(self) -> float | None:
        """Clicks an impression; None without impressions."""
        return self.clicks / self.impressions if self.impressions else None

    @property
    def margin(self) -> float:
        """Of the rate at 95%, from the number of clicks alone; of a block that was shown."""
        return float(1.96 * max(self.clicks, 1) ** 0.5 / self.impressions)


def rank_blocks(counts: Counts, most: int) -> list[Block]:
    """All ranks shown in at most `most` blocks: rank by rank at the top, then ever wider."""
    table = counts.pool().by_rank
    deepest = int(table.rank[table.impressions > 0].max(initial=0))
    if not deepest:
        return []
    edges = np.arange(1, deepest + 2) if deepest <= most else widening_edges(1, deepest, most)
    where = np.searchsorted(edges, table.rank, side="right") - 1
    inside = (where >= 0) & (where < len(edges) - 1)
    impressions, clicks = (
        np.bincount(where[inside], weights=column[inside], minlength=len(edges) - 1)
        for column in (table.impressions, table.clicks)
    )
    return [
        Block(int(edge), int(after) - 1, int(n), int(c))
        for edge, after, n, c in zip(edges, edges[1:], impressions, clicks, strict=False)
    ]


class Totals(NamedTuple):
    """(L,) each, that of rank r at place r."""

    impressions: Floats
    clicks: Floats


def totals_by_rank(counts: Counts, last: int) -> Totals:
    """How often each rank from 0 to `last` was shown and clicked, in all segments together."""
    table = counts.by_rank
    inside = table.rank <= last
    impressions, clicks = (
        np.bincount(table.rank[inside], column[inside], minlength=last + 1).astype(float)
        for column in (table.impressions, table.clicks)
    )
    return Totals(impressions, clicks)


@dataclass(frozen=True)
class SegmentSize:
    """How much of the log belongs to one segment, and how many clicks compare its ranks."""

    segment: Segment
    impressions: int
    clicks: int
    comparisons: float

    @property
    def ctr(self) -> float | None:
        """Clicks an impression; None without impressions."""
        return self.clicks / self.impressions if self.impressions else None


def segment_sizes(counts: Counts) -> list[SegmentSize]:
    """The segments, the most shown first; empty when the counts have no segment columns."""
    if not counts.segment_columns:
        return []
    n, table, choices = len(counts.segments), counts.by_rank, counts.choices("every")
    impressions = np.bincount(table.segment, weights=table.impressions, minlength=n)
    clicks = np.bincount(table.segment, weights=table.clicks, minlength=n)
    compared = np.bincount(choices.segment, weights=choices.weight, minlength=n)
    sizes = [
        SegmentSize(segment, int(impressions[i]), int(clicks[i]), float(compared[i]))
        for i, segment in enumerate(counts.segments)
    ]
    return sorted(sizes, key=lambda size: -size.impressions)
