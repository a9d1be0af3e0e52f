"""Small worlds with a known truth, as counts: what a harvest would have made of their logs.

`simulate` draws a log by Eq. (1), prob-click; `listed` writes pairs down by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.counts.counts import ByRank, Counts, Pairs
from rankdrift.counts.funnel import Dropped, Funnel, Used
from rankdrift.counts.tables import shorten

UP_SHORT, DOWN_SHORT = 1, 3  # indices into DRIFTS; the long gap is the next one


@dataclass(frozen=True, eq=False)
class World:
    """counts, and the truth: log_p (R,) of ranks 1 to R, 0 at rank 1, by segment if there are."""

    counts: Counts
    log_p: np.ndarray
    by_segment: Mapping[str, np.ndarray]


def appendix_d(ranks):
    """min(1 / log i, 1), as in Appendix D."""
    return np.minimum(1, 1 / np.log(np.maximum(ranks, 2)))


def power(slope):
    return lambda ranks: np.asarray(ranks, float) ** -slope


def dips(curve, period, depth=1.0):
    """`curve`, falling off over the last two fifths of every batch of `period` ranks."""

    def dipped(ranks):
        place = ((np.asarray(ranks) - 1) % period) / period
        return curve(ranks) * np.exp(-depth * np.maximum(place - 0.6, 0) / 0.4)

    return dipped


def simulate(
    pairs: int = 2000,
    ranks: int = 50,
    seed: int = 0,
    *,
    curve: Callable = appendix_d,
    level: float = 0.1,
    shown: tuple[int, int] = (2, 2),
    queries: int = 1000,
    query_effect: float = 0.5,
    query_slope: float = 0.0,
    buckets: int = 64,
    segments: Mapping[str, Callable] | None = None,
    shares: Sequence[float] | None = None,
    drift: bool = False,
    trend: float = 0.0,
    max_shown: int = 8,
) -> World:
    """A log with `pairs` usable pairs.

    level: mean relevance z. shown: least and most appearances of a pair, ranks drawn around the
    pair's mean rank, so that one may repeat. query_effect: deviation of log z between queries.
    query_slope: deviation between queries of the slope of log p on log rank, which makes clicks
    of one query belong together. segments: a curve each, instead of `curve`, with `shares` of the
    pairs. drift: say which way pairs moved; trend: rise of log z from the first appearance to
    the last.
    """
    rng = np.random.default_rng(seed)
    names = sorted(segments) if segments else []
    curves = [segments[name] for name in names] if segments else [curve]
    every_rank = np.arange(1, ranks + 1)
    log_p = np.stack([np.log(c(every_rank)) for c in curves])
    bucket_of = rng.integers(0, buckets, queries)
    lift = np.exp(rng.normal(0, query_effect, queries))
    slope = rng.normal(0, query_slope, queries)
    parts, found = [], 0
    while found < pairs:
        part = _draw(rng, 4 * pairs, ranks, log_p, level, shown, lift, slope, shares, trend)
        usable = part["click"].any(axis=1) & (part["rank"].max(axis=1) > part["lowest"])
        found += int(usable.sum())
        parts.append({**part, "usable": usable})
    drawn = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    end = int(np.flatnonzero(drawn["usable"])[pairs - 1]) + 1
    drawn = {name: values[:end] for name, values in drawn.items()}
    return World(
        counts=_count(
            drawn["rank"],
            drawn["click"],
            bucket_of[drawn["query"]],
            segment=drawn["segment"],
            drift=_drift(rng, drawn["rank"]) if drift else np.zeros(end, int),
            names=names,
            buckets=buckets,
            max_rank=ranks,
            max_shown=max_shown,
        ),
        log_p=log_p[0] - log_p[0, 0],
        by_segment={name: log - log[0] for name, log in zip(names, log_p, strict=False)},
    )


def _draw(rng, n, ranks, log_p, level, shown, lift, slope, shares, trend):
    """rank, click (N, m), rank 0 where a pair was not shown any more; the others (N,)."""
    query = rng.integers(0, len(lift), n)
    segment = rng.choice(len(log_p), n, p=shares)
    middle = rng.uniform(1, ranks, n)
    rank = np.rint(rng.normal(middle[:, None], middle[:, None] / 5 + 0.5, (n, shown[1])))
    rank = np.clip(rank, 1, ranks).astype(int)
    times = rng.integers(shown[0], shown[1] + 1, n)
    here = np.arange(shown[1]) < times[:, None]
    z = np.minimum(rng.beta(1, 1 / level - 1, n) * lift[query], 1)  # so that Eq. (1) holds
    later = trend * np.arange(shown[1]) / (times - 1)[:, None]
    log_chance = log_p[segment[:, None], rank - 1] + slope[query][:, None] * np.log(rank) + later
    click = (rng.random(rank.shape) < z[:, None] * np.exp(log_chance)) & here
    lowest = np.where(here, rank, ranks + 1).min(axis=1)
    rank = np.where(here, rank, 0)
    return {"rank": rank, "click": click, "query": query, "segment": segment, "lowest": lowest}


def _drift(rng, rank):
    last = rank[np.arange(len(rank)), (rank > 0).sum(axis=1) - 1]
    way = np.where(last < rank[:, 0], UP_SHORT, DOWN_SHORT)
    return np.where(last == rank[:, 0], 0, way + rng.integers(0, 2, len(rank)))


def listed(pairs, buckets=64, max_rank=None, max_shown=8, names=()) -> Counts:
    """Counts of pairs written down: each ((rank, click), ...), then, if given, its bucket, how
    many such pairs there are, and the index of its segment among `names`."""
    rows = [(*row, *(0, 1, 0)[len(row) - 1 :]) for row in pairs]
    width = max((len(shown) for shown, *_ in rows), default=2)
    rank = np.zeros((len(rows), width), int)
    click = np.zeros((len(rows), width), bool)
    for at, (shown, *_) in enumerate(rows):
        rank[at, : len(shown)] = [r for r, _ in shown]
        click[at, : len(shown)] = [c for _, c in shown]
    bucket, times, segment = (np.array([row[k] for row in rows], int) for k in (1, 2, 3))
    return _count(
        rank, click, bucket, segment=segment, drift=np.zeros(len(rows), int), names=names,
        buckets=buckets, max_rank=max_rank or int(rank.max(initial=1)), max_shown=max_shown,
        times=times,
    )  # fmt: skip


def _count(
    rank, click, bucket, *, segment, drift, names, buckets, max_rank, max_shown, times=None
) -> Counts:
    times = np.ones(len(rank), int) if times is None else times
    here = rank > 0
    many = np.broadcast_to(times[:, None], rank.shape)
    code = np.where(here, 2 * rank + click, np.iinfo(np.int32).max)
    code = np.sort(code, axis=1)
    code[code == np.iinfo(np.int32).max] = 0
    clicked = click.any(axis=1)
    moved = code[:, 0] >> 1 != code.max(axis=1) >> 1
    used = clicked & moved
    width = max_rank + 1
    at = (segment[:, None] * width + rank)[here]
    cells = max(len(names), 1) * width
    impressions = np.bincount(at, weights=many[here], minlength=cells)
    clicks = np.bincount(at, weights=(many * click)[here], minlength=cells)
    some = np.flatnonzero(impressions)

    def size(which):
        return int(many[which][here[which]].sum()), int((many * click)[which].sum())

    still, never = clicked & ~moved, ~clicked
    pairs = Pairs(segment[used], bucket[used], drift[used], code[used], times[used])
    pairs, compared, held = shorten(pairs, max_shown)
    return Counts(
        pairs=pairs,
        rank_pairs=compared,
        overflow=held,
        by_rank=ByRank(
            some // width, some % width, impressions[some].astype(int), clicks[some].astype(int)
        ),
        funnel=Funnel(
            *size(np.ones(len(rank), bool)),
            {
                "never_clicked": Dropped(*size(never)),
                "one_rank": Dropped(*size(still), int(times[still].sum())),
            },
            Used(*size(used), int(times[used].sum())),
        ),
        buckets=buckets,
        max_rank=max_rank,
        max_shown=max_shown,
        segment_columns=("device",) if names else (),
        segments=tuple((name,) for name in names) if names else ((),),
    )
