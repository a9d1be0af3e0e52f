"""What a harvest would count of appearances that are in memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankdrift.core.types import AnyInts, Bools
from rankdrift.counts.counts import MAX_SHOWN, ByRank, Counts, Pairs, Singles
from rankdrift.counts.funnel import Dropped, Funnel, Used
from rankdrift.counts.tables import MOST_SHOWN, shorten
from rankdrift.simulate.clicks import shown_codes


def count_pairs(
    rank: AnyInts,
    click: Bools,
    bucket: AnyInts,
    *,
    buckets: int,
    max_rank: int,
    max_shown: int = MAX_SHOWN,
    segment: AnyInts | None = None,
    segments: Mapping[str, tuple[str, ...]] | None = None,
    drift: AnyInts | None = None,
    unclicked: AnyInts | None = None,
    known: AnyInts | None = None,
    options: Mapping[str, Any] | None = None,
) -> Counts:
    """What a harvest would count of N pairs with up to K appearances each.

    Parameters
    ----------
    rank, click
        (N, K); rank 0 where a pair was not shown any more.
    bucket
        (N,), of its query.
    buckets, max_rank, max_shown
        As of a harvest.
    segment
        (N,), an index into the values of the one column in `segments`.
    segments
        The name of that column and its values, sorted.
    drift
        (N,), an index into DRIFTS.
    unclicked
        (segments * (max_rank + 1),), appearances by segment and rank of pairs without a
        click that are not among the N.
    known
        (N,), the group of what is known of its relevance, from 1; pairs at one rank are counted by
        it.
    options
        What the counts are to say of how they were made.
    """
    none = np.zeros(len(rank), np.int32)
    segment, drift = (none if given is None else given for given in (segment, drift))
    (column, names), *_ = (segments or {"": ()}).items()
    shown = rank > 0
    code = shown_codes(rank, click)
    clicked = click.any(axis=1)
    moved = code[:, 0] >> 1 != code.max(axis=1) >> 1
    used, still = clicked & moved, clicked & ~moved
    pairs = Pairs(
        segment[used], bucket[used], drift[used], code[used], np.ones(int(used.sum()), np.int64)
    )
    # Equal rows are summed before the long ones are taken apart.
    listed, compared, overflow = shorten(pairs.collapse(), max_shown)

    at = segment[:, None] * (max_rank + 1) + rank
    cells = max(len(names), 1) * (max_rank + 1)
    more = np.zeros(cells, np.int64) if unclicked is None else unclicked
    impressions = np.bincount(at[shown], minlength=cells) + more
    clicks = np.bincount(at[click], minlength=cells)
    some = np.flatnonzero(impressions)
    of_each = shown.sum(axis=1), click.sum(axis=1)

    def size(which: Bools) -> tuple[int, int]:
        rows, clicks = (int(each[which].sum()) for each in of_each)
        return rows, clicks

    singles, said = Singles.empty(), dict(options or {})
    if known is not None:
        one = shown.any(axis=1) & ~moved
        often, clicked_often = (each[one] for each in of_each)
        few = often <= MOST_SHOWN
        columns = (segment[one], known[one], rank[one].max(axis=1), often * few)
        singles = Singles(*columns, clicked_often * few, np.ones(int(one.sum()), np.int64))
        said["singles"] = {"prior": "known", "cuts": list(range(2, int(known.max()) + 1))}
    without = int(of_each[0][~clicked].sum() + more.sum())
    return Counts(
        pairs=listed,
        rank_pairs=compared,
        overflow=overflow,
        by_rank=ByRank(
            (some // (max_rank + 1)).astype(np.int32),
            (some % (max_rank + 1)).astype(np.int32),
            impressions[some],
            clicks[some],
        ),
        funnel=Funnel(
            int(impressions.sum()),
            int(click.sum()),
            {
                "never_clicked": Dropped(without, 0),
                "one_rank": Dropped(*size(still), int(still.sum())),
            },
            Used(*size(used), int(used.sum())),
        ),
        buckets=buckets,
        max_rank=max_rank,
        max_shown=max_shown,
        segment_columns=(column,) if names else (),
        segments=tuple((name,) for name in names) if names else ((),),
        options=said,
        singles=singles,
    )
