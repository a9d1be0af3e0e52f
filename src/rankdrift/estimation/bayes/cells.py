"""Counts as the posterior sees them: cells of pairs that say the same, each a polynomial of z.

Given its relevance z, a pair of which c appearances were clicked and the others not has the chance
Π p_clicked · z^c Π (1 - p_missed z). The p before it add up to clicks by rank; what is left depends
on the group of the pair's relevance, on c and on the ranks of the misses alone, so that a million
pairs make a few thousand cells. Pairs that moved are in the counts only if they were clicked: of
those, the chance of no click at all is taken off, so that it is the chance given a click.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.types import Bools, Floats, Indices, Ints, Ranks, SmallInts
from rankdrift.counts.tables import Pairs
from rankdrift.estimation.bayes.beta_nodes import nodes_for

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BANDS = (5, 9, 17, 10**6)
"""Cells that take up to so many nodes are worked out together."""


@dataclass(frozen=True, eq=False)
class Terms:
    """T cells: group (T,), place of the Beta distribution of z; clicks (T,); miss_cell, miss_rank,
    misses (M,): how often a cell was shown at a rank, a place in the ranks, and not clicked; pairs
    (T,); given (T,): whether it is the chance of no click, which is taken off."""

    group: Indices
    clicks: Ints
    miss_cell: Indices
    miss_rank: Indices
    misses: Floats
    pairs: Floats
    given: Bools

    @property
    def degree(self) -> Ints:
        """(T,): of each cell's polynomial of z."""
        shown = np.bincount(self.miss_cell, self.misses, minlength=len(self.group))
        return (shown + self.clicks).astype(np.int64)

    def take(self, cells: Indices) -> Terms:
        """Some of the cells."""
        place = np.full(len(self.group), -1)
        place[cells] = np.arange(len(cells))
        keep = place[self.miss_cell] >= 0
        return Terms(
            self.group[cells],
            self.clicks[cells],
            place[self.miss_cell[keep]],
            self.miss_rank[keep],
            self.misses[keep],
            self.pairs[cells],
            self.given[cells],
        )


def join(parts: Sequence[Terms]) -> Terms:
    """All cells of several, one after the other."""
    columns: dict[str, list[Any]] = {name: [] for name in vars(parts[0])}
    before = 0
    for part in parts:
        for name, values in vars(part).items():
            columns[name].append(values + before if name == "miss_cell" else values)
        before += len(part.group)
    return Terms(**{name: np.concatenate(values) for name, values in columns.items()})


def moved_terms(pairs: Pairs, group: Indices, ranks: Ranks) -> Terms:
    """Cells of pairs that moved and were clicked, given that they were.

    Parameters
    ----------
    pairs
        Those listed, in which all ranks are among `ranks`.
    group
        (P,): of each row's relevance.
    ranks
        Ascending.
    """
    ranks_of = pairs.shown >> 1
    missed = np.sort(np.where(pairs.shown & 1, 0, ranks_of), axis=1)[:, ::-1]
    same = np.zeros(len(pairs), np.int32)
    of = group.astype(np.int32)
    clicks = pairs.clicks.astype(np.int32)
    clicked = Pairs(of, clicks, same, missed, pairs.pairs).collapse()
    shown = Pairs(of, same, same + np.int32(1), ranks_of, pairs.pairs).collapse()
    return join([_terms(clicked, ranks), _terms(shown, ranks)])


def _terms(cells: Pairs, ranks: Ranks) -> Terms:
    """Cells that stand as pairs: the group as segment, clicks as bucket, ranks missed as shown."""
    cell, column = np.nonzero(cells.shown)
    place = np.searchsorted(ranks, cells.shown[cell, column])
    return Terms(
        cells.segment.astype(np.intp),
        cells.bucket.astype(np.int64),
        cell,
        place,
        np.ones(len(cell)),
        cells.pairs.astype(np.float64),
        cells.drift.astype(bool),
    )


def single_terms(
    rank: SmallInts, group: Indices, shown: SmallInts, clicks: SmallInts, pairs: Ints, ranks: Ranks
) -> Terms:
    """Cells of pairs that were shown at one rank, clicked or not.

    Parameters
    ----------
    rank, group, shown, clicks, pairs
        (S,) each: how many pairs of a group were shown so often at a rank, and clicked so often.
    ranks
        Ascending; all that were shown.
    """
    misses = (shown - clicks).astype(np.float64)
    some = np.flatnonzero(misses)
    return Terms(
        np.asarray(group, np.intp),
        clicks.astype(np.int64),
        some,
        np.searchsorted(ranks, rank)[some],
        misses[some],
        pairs.astype(np.float64),
        np.zeros(len(rank), bool),
    )


@dataclass(frozen=True, eq=False)
class Band:
    """Cells that take the same number of nodes, those `given` last.

    groups (G,), those that there are; group (T,), places in them; clicks, pairs (T,); plain: how
    many cells, from the first, are not `given`. misses (T, J), sparse, by column_group and
    column_rank (J,).
    """

    size: int
    groups: Indices
    group: Indices
    clicks: Floats
    pairs: Floats
    plain: int
    misses: csr_array
    column_group: Indices
    column_rank: Indices

    @cached_property
    def by_group(self) -> csr_array:
        """(2 G, T): sums over the cells of each group, then the same weighted with clicks."""
        from scipy.sparse import csr_array

        cells = np.arange(len(self.group))
        rows = np.concatenate([self.group, self.group + len(self.groups)])
        values = np.concatenate([np.ones(len(cells)), self.clicks])
        shape = (2 * len(self.groups), len(cells))
        return csr_array((values, (rows, np.tile(cells, 2))), shape=shape)

    @cached_property
    def by_column(self) -> csr_array:
        """(J, T): misses, turned."""
        return self.misses.T.tocsr()


def bands(terms: Terms) -> Iterator[Band]:
    """The cells by how many nodes they take."""
    from scipy.sparse import csr_array

    needed = nodes_for(terms.degree)
    limits = np.searchsorted(_BANDS, needed)
    for limit in np.unique(limits):
        cells = np.flatnonzero(limits == limit)
        part = terms.take(cells[np.lexsort((terms.group[cells], terms.given[cells]))])
        groups, group = np.unique(part.group, return_inverse=True)
        many = int(part.miss_rank.max(initial=0)) + 1
        column, place = np.unique(
            group[part.miss_cell] * many + part.miss_rank, return_inverse=True
        )
        misses = csr_array((part.misses, (part.miss_cell, place)), shape=(len(cells), len(column)))
        misses.sum_duplicates()
        yield Band(
            size=int(needed[cells].max()),
            groups=groups,
            group=group,
            clicks=part.clicks.astype(np.float64),
            pairs=part.pairs,
            plain=int((~part.given).sum()),
            misses=misses,
            column_group=column // many,
            column_rank=column % many,
        )
