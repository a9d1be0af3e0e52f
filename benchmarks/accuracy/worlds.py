"""Pairs with a known truth, straight to Counts: what Appendix D leaves out.

Appearances are in the order of time. Chances of a click are high, so that few pairs are wasted.
"""

from dataclasses import dataclass, field

import numpy as np

from rankdrift.counts.counts import Counts
from rankdrift.simulate.counting import count_pairs

UP_SHORT, DOWN_SHORT = 1, 3  # indices into DRIFTS; the long gap is the next one
KNOTS = np.array([1, 2, 4, 8, 20, 50, 100, 200, 300, 500], float)


@dataclass(frozen=True, eq=False)
class World:
    """counts, and truth: log p (R,) of ranks 1 to R; by_segment: the same of each segment.

    rank, click (N, m): the appearances, where a peer needs them."""

    counts: Counts
    truth: np.ndarray
    by_segment: dict[str, np.ndarray] = field(default_factory=dict)
    rank: np.ndarray | None = None
    click: np.ndarray | None = None


def on_knots(ranks: int) -> np.ndarray:
    """min(1 / log i, 1) at the paper's knots and straight in log-log space between them: a truth
    that the loglog curve can follow, so that its error is that of the data alone."""
    place = np.arange(1, ranks + 1)
    p = np.minimum(1, 1 / np.log(np.maximum(KNOTS, 2)))
    return np.exp(np.interp(np.log(place), np.log(KNOTS), np.log(p)))


def dipping(ranks: int) -> np.ndarray:
    """The same, with dips over the last 15 of every 40 results."""
    place = np.arange(ranks) % 40
    return on_knots(ranks) * np.exp(-np.maximum(place - 24, 0) / 15)


def jumping(ranks: np.ndarray) -> np.ndarray:
    """A steady fall, and a fold behind rank 25: what is below is looked at 40% less."""
    return ranks**-0.3 * np.where(ranks > 25, 0.6, 1.0)


def rising_and_falling(seed: int, n: int, ranks: int, moves: tuple[float, float]) -> World:
    """Two appearances; relevance changes between them, and the rank follows it.

    log z changes by a normal number with deviation moves[0] over less than an hour and moves[1]
    over longer, half of the pairs each; a rise of log z by 1 brings a doc up by a third."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, ranks, 0.3)
    long = rng.random(n) < 0.5
    change = rng.normal(0, 1, n) * np.where(long, moves[1], moves[0])
    middle = np.stack([mean, mean * np.exp(-0.4 * change)], axis=1)
    z = np.stack([z, z * np.exp(change)], axis=1)
    rank = _around(rng, middle, ranks)
    return _counted(rng, rank, np.minimum(z, 1), on_knots(ranks), ranks, long=long)


def feedback(seed: int, n: int, ranks: int) -> World:
    """Two appearances; a click on the first brings the doc up for the second."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, ranks, 0.4)
    truth = on_knots(ranks)
    first = _around(rng, mean[:, None], ranks)
    clicked = rng.random(n) < truth[first[:, 0] - 1] * z
    second = _around(rng, (mean * np.where(clicked, 0.75, 1.05))[:, None], ranks)
    rank = np.concatenate([first, second], axis=1)
    click = np.stack([clicked, rng.random(n) < truth[second[:, 0] - 1] * z], axis=1)
    return _counted(rng, rank, None, truth, ranks, click=click, long=rng.random(n) < 0.5)


def changing(seed: int, n: int, ranks: int, *, filtered: bool) -> World:
    """Two appearances; a third of the docs cut their price in between, which makes them more
    relevant and brings them up. With the filter, those are two pairs of one appearance each."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, ranks, 0.3)
    cut = (rng.random(n) < 1 / 3)[:, None]
    middle = mean[:, None] * np.where(cut, [1.0, 0.7], 1.0)
    z = np.minimum(z[:, None] * np.where(cut, [1.0, 1.8], 1.0), 1)
    rank = _around(rng, middle, ranks)
    if not filtered:
        return _counted(rng, rank, z, on_knots(ranks), ranks)
    alone = np.concatenate([np.where([True, False], rank, 0), np.where([False, True], rank, 0)])
    same = ~cut[:, 0]
    which = np.concatenate([np.flatnonzero(~same), n + np.flatnonzero(~same)])
    rank, z = np.concatenate([rank[same], alone[which]]), np.concatenate([z[same], z[which % n]])
    return _counted(rng, rank, z, on_knots(ranks), ranks)


def often(seed: int, n: int, ranks: int, longest: int) -> World:
    """Pairs that appear twice to `longest` times, few of them often: heads and tails."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, ranks, 0.3)
    times = np.minimum(2 + np.floor(rng.pareto(1.2, n)), longest)
    rank = _around(rng, np.repeat(mean[:, None], longest, axis=1), ranks)
    rank = np.where(np.arange(longest) < times[:, None], rank, 0)
    return _counted(rng, rank, z[:, None], on_knots(ranks), ranks)


def two_kinds(seed: int, n: int, ranks: int) -> World:
    """Two segments, one twice as steep as the other, a third and two thirds of the pairs."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, ranks, 0.3)
    kind = (rng.random(n) < 2 / 3).astype(int)
    truth = on_knots(ranks)
    p = np.stack([truth**0.75, truth**1.5])
    rank = _around(rng, np.repeat(mean[:, None], 2, axis=1), ranks)
    click = rng.random(rank.shape) < p[kind[:, None], rank - 1] * z[:, None]
    world = _counted(rng, rank, None, truth, ranks, click=click, kind=kind)
    by_segment = {name: np.log(p[i]) for i, name in enumerate(("flat", "steep"))}
    return World(world.counts, np.log(truth), by_segment)


def ten_ranks(seed: int, n: int) -> World:
    """Ten ranks, two appearances anywhere near: what peers were made for. All pairs are kept."""
    rng = np.random.default_rng(seed)
    mean, z = _pairs(rng, n, 10, 0.15)
    rank = _around(rng, np.repeat(mean[:, None], 2, axis=1), 10, 0.5)
    truth = on_knots(10)
    click = rng.random(rank.shape) < truth[rank - 1] * z[:, None]
    world = _counted(rng, rank, None, truth, 10, click=click)
    return World(world.counts, world.truth, rank=rank, click=click)


def _pairs(rng, n, ranks, level):
    """Mean rank and relevance (N,); z is Beta(1, b) with the mean `level` at the top and half of
    that at the bottom."""
    mean = rng.uniform(1, ranks, n)
    share = level / (1 + np.log(mean) / np.log(ranks))
    return mean, 1 - rng.random(n) ** (share / (1 - share))


def _around(rng, mean, ranks, spread=0.2):
    """Ranks near `mean` (N, m), drawn again where they fall outside."""
    rank = np.zeros(mean.shape, np.int64)
    todo = np.nonzero(rank == 0)
    while len(todo[0]):
        at = np.clip(mean[todo], 1, ranks)
        found = np.rint(at * (1 + spread * rng.standard_normal(len(at)))).astype(np.int64)
        rank[todo] = np.where((found >= 1) & (found <= ranks), found, 0)
        todo = np.nonzero(rank == 0)
    return rank


def _counted(rng, rank, z, truth, ranks, *, click=None, long=None, kind=None):
    if click is None:
        chance = np.where(rank > 0, truth[np.maximum(rank, 1) - 1], 0) * z
        click = rng.random(rank.shape) < chance
    drift = None
    if long is not None:
        up = np.where(rank[:, 1] < rank[:, 0], UP_SHORT, DOWN_SHORT)
        drift = np.where(rank[:, 1] == rank[:, 0], 0, up + long)
    counts = count_pairs(
        rank,
        click,
        rng.integers(0, 64, len(rank)),
        buckets=64,
        max_rank=ranks,
        drift=drift,
        segment=kind,
        segments=None if kind is None else {"kind": ("flat", "steep")},
    )
    return World(counts, np.log(truth))
