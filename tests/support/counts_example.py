"""Counts written down by hand."""

from rankdrift.counts.counts import UNIT, ByRank, Counts, Overflow, RankPairs
from rankdrift.counts.counts import Pairs as AllPairs
from rankdrift.counts.funnel import Dropped, Funnel, Used

META = {"buckets": 64, "max_rank": 500, "max_shown": 4}


def Pairs(segment, bucket, shown, pairs, drift=None):
    return AllPairs(segment, bucket, drift or [0] * len(segment), shown, pairs)


def example(**more):
    """Three pairs in buckets 3 and 5: clicked at 7 over 3 (twice); at 2 and 9, shown also at 4."""
    given = {
        "pairs": Pairs(segment=[0, 0], bucket=[5, 3], shown=[[5, 8, 19], [6, 15, 0]], pairs=[1, 2]),
        "rank_pairs": RankPairs.empty(),
        "by_rank": ByRank(segment=[0, 0], rank=[3, 1], impressions=[10, 30], clicks=[2, 9]),
        "funnel": Funnel(9, 4, {"no_doc": Dropped(2, 0)}, Used(7, 4, 3), {"null_click": 1}),
        "version": "0.1.0",
        **META,
    }
    return Counts(**{**given, **more})


def with_comparisons(**more):
    """And two pairs shown five times each, clicked once at 2 and shown also at 3."""
    given = {
        "rank_pairs": RankPairs([0], [1], [2], [3], [True], [UNIT // 2]),
        "overflow": Overflow(
            [0, 0], [2, 3], [True, True], first=[2, 0], pairs=[2, 2], clicks=[2, 0]
        ),
        "funnel": Funnel(17, 6, {}, Used(17, 6, 5)),
    }
    return example(**{**given, **more})


def by_device(**more):
    return example(
        segment_columns=("device",),
        segments=(("web",), (None,)),
        pairs=Pairs([0, 1], [5, 3], [[5, 8, 19], [6, 15, 0]], [1, 2]),
        **more,
    )
