"""curve="auto": knots, jumps and a batch, if there is one, chosen from the data.

The paper's knots stay. From them the search goes from curve to curve by one change at a time: a
knot or a jump more, a batch such as results loaded 40 at a time, a bend in the batch, and each of
these moved or taken away. What a change would do is told by the likelihood to second order around
where the search stands, so that nothing has to be refitted to be tried; the best is refitted, and
kept if it pays. Candidates are many, so each must also pay for having been picked.

The curves one change away from the chosen one are its rivals. By how much those that explain the
data nearly as well differ from it is part of its uncertainty: had chance fallen otherwise, one of
them would have been chosen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankdrift.core.errors import RankdriftError
from rankdrift.core.types import Floats, Ranks
from rankdrift.estimation.curves import Curve, Part, hats, places_of
from rankdrift.estimation.newton import Fit, maximise

# What a parameter must gain in 2 log L, besides what it pays for having been picked. With 5, one
# smooth curve in seventy gets a part that it does not need (900 worlds of 12 to 500 ranks); BIC,
# 7 to 14 a parameter, would refuse dips that thin data show.
PRICE = 5.0
MOST_KNOTS = 60
SHORTEST, LONGEST = 2, 120  # results of a batch, or of a row
# Ranks near the top are worth a knot each; further down, steps of about 4%.
_SPACING = 1.04
# Behind the last knot but one there is to be enough to draw the curve on from.
_LAST_STRETCH = 1.1
# So many of the likeliest additions of a kind are looked at.
_TRIED = 5
# Chosen knots and places are tried so many steps to either side.
_MOVED = 3
# Rivals that are less likely than this share of the chosen curve make no difference.
_UNLIKELY = 0.01
# Of the information on a rank, less than this share is rounding.
_ROUNDING = 1e-9
# Batches of all sizes are compared at these shares of their length.
_SHARES = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class Rival:
    """A curve that might have been chosen.

    phi: of its basis without the first column. chance: that it is right, and not the one chosen.
    """

    curve: Curve
    phi: Floats
    chance: float


@dataclass(frozen=True)
class Choice:
    """The curve that the data ask for, with its fit, and those that they might have asked for."""

    curve: Curve
    fit: Fit
    rivals: tuple[Rival, ...]


def choose_curve(first: Fit, start: Curve) -> Choice:
    """The curve that the data ask for: `start`, a loglog curve whose fit is `first`, with knots,
    jumps or a batch where they pay."""
    now = State(start, first, criterion_of(first, start))
    while True:
        near = _neighbours(now)
        better = _first_that_pays(now, near)
        if better is None:
            return Choice(now.curve, now.fit, _rivals(now, near))
        now = better


def best_period(fit: Fit) -> tuple[int | None, float]:
    """The batch that would gain most on top of a fit, and by how much BIC would improve."""
    plain = Curve((Part("loglog", ()),))
    price = float(np.log(max(fit.likelihood.weight, 2.0)))
    now = State(plain, fit, Criterion(fit.likelihood.ranks, frozenset(), price, 1.0))
    found = [
        (gain - now.criterion.of_batch(batch), batch.numbers[0])
        for gain, batch in _gains_of_batches(now)
    ]
    gain, size = max(found, default=(0.0, None))
    return size, gain


# -- the criterion -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """What parameters and choices among candidates cost, less 2 log L; the least is best.

    given: knots that were not chosen. price: of a parameter. scale: by so much does log L make too
    much of clicks, where those of a query go together.
    """

    ranks: Ranks
    given: frozenset[int]
    price: float
    scale: float

    @cached_property
    def deepest(self) -> float:
        """No chosen knot is deeper."""
        return float(self.ranks[-1]) / _LAST_STRETCH

    @cached_property
    def knots(self) -> list[int]:
        """Ranks that may become knots."""
        last = int(self.ranks[-1])
        steps = np.rint(_SPACING ** np.arange(0, np.log(last) / np.log(_SPACING) + 1)).astype(int)
        # Batches end on round numbers more often than not.
        tens = np.concatenate([np.arange(10, last, 10), np.arange(11, last, 10)])
        both = set(np.union1d(steps, tens).tolist()) - self.given
        return sorted(k for k in both if self.ranks[0] < k <= self.deepest)

    @cached_property
    def sizes(self) -> range:
        """How many results a batch may have: to tell, there must be two of them."""
        return range(SHORTEST, min(LONGEST, len(self.ranks) // 2) + 1)

    def fixed(self, curve: Curve) -> float:
        """What a curve costs before it is fitted."""
        main, *more = curve.parts
        picked = _picks(sorted(set(main.numbers) - self.given))
        cost = self.price * (len(main.numbers) - 1) + _among(len(self.knots)) * picked
        return cost + sum(self.of_batch(part) for part in more)

    def of_batch(self, part: Part) -> float:
        """What a part for batches adds to that."""
        size, cost = part.numbers[0], _among(len(self.sizes))
        if part.name == "periodic":
            return cost + self.price * (size - 1)
        places, usual = places_of(part.numbers), places_of((size,))
        picked = _picks(sorted(set(places) - set(usual)))
        return cost + self.price * (len(places) - 1) + _among(size) * picked


def criterion_of(first: Fit, start: Curve) -> Criterion:
    """For curves that are `start`, whose fit is `first`, and more."""
    terms = first.likelihood
    scores = terms.bucket_scores(first.theta) @ first.basis
    used = max(len(terms.touched), 2)
    varied = np.linalg.solve(first.information, scores.T @ scores).trace() * used / (used - 1)
    scale = max(1.0, float(varied / max(len(first.phi), 1)))
    return Criterion(terms.ranks, frozenset(start.parts[0].numbers), PRICE, scale)


def _among(candidates: int) -> float:
    """What it costs to have picked one of so many."""
    return 2 * float(np.log(max(candidates, 1)))


def _picks(numbers: list[int]) -> int:
    """How often something was picked: the two sides of a jump are one."""
    return len(_side_by_side(numbers))


def _side_by_side(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers one by one, but the two sides of a jump together."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1] == [number - 1]:
            found[-1].append(number)
        else:
            found.append([number])
    return found


# -- where the search stands -------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A curve with its fit, and the likelihood around it to second order."""

    curve: Curve
    fit: Fit
    criterion: Criterion

    @cached_property
    def cost(self) -> float:
        """By the criterion."""
        return self.criterion.fixed(self.curve) - 2 * self.fit.log_likelihood / self.criterion.scale

    @cached_property
    def gradient(self) -> Floats:
        """(R,)."""
        return self.fit.likelihood.at(self.fit.theta).gradient

    @cached_property
    def information(self) -> Floats:
        """(R, R)."""
        return self.fit.likelihood.at(self.fit.theta).information()

    @cached_property
    def least(self) -> float:
        """Less information than this is rounding."""
        return _ROUNDING * float(np.diag(self.information).max())

    @cached_property
    def remaining(self) -> Floats:
        """(R, R): the information on what the curve cannot follow."""
        across = self.information @ self.fit.basis
        inner = np.linalg.solve(self.fit.basis.T @ across, across.T)
        return np.asarray(self.information - across @ inner)

    @cached_property
    def _in_whole_batches(self) -> tuple[Floats, Floats]:
        """`remaining` and `gradient` from rank 1 on, with room behind them."""
        room = (int(self.criterion.ranks[0]) - 1, LONGEST)
        return np.pad(self.remaining, room), np.pad(self.gradient, room)

    def folded(self, size: int) -> tuple[Floats, Floats]:
        """(N, N) and (N,): `remaining` and `gradient` by the place in a batch."""
        information, score = self._in_whole_batches
        whole = -(-(len(score) - LONGEST) // size) * size
        rows = information[:whole, :whole].reshape(-1, size, whole).sum(axis=0)
        by_place = rows.reshape(size, -1, size).sum(axis=1)
        return by_place, score[:whole].reshape(-1, size).sum(axis=0)

    def estimate(self, curve: Curve) -> "Neighbour | None":
        """About what another curve would cost, and its phi; None if the data cannot bear it."""
        try:
            basis = curve.basis(self.criterion.ranks)[:, 1:]
            across = basis.T @ self.information
            factor = np.linalg.cholesky(across @ basis)
        except (RankdriftError, np.linalg.LinAlgError):
            return None
        theta = self.fit.theta
        half = np.linalg.solve(factor, across @ theta + basis.T @ self.gradient)
        gain = half @ half - theta @ self.information @ theta - 2 * self.gradient @ theta
        doubled = 2 * self.fit.log_likelihood + float(gain)
        cost = self.criterion.fixed(curve) - doubled / self.criterion.scale
        return Neighbour(curve, np.linalg.solve(factor.T, half), cost)


@dataclass(frozen=True)
class Neighbour:
    """A curve one change away, about what it would cost, and its phi."""

    curve: Curve
    phi: Floats
    cost: float


def _neighbours(now: State) -> list[Neighbour]:
    """Best first."""
    curves = dict.fromkeys((*_simpler(now), *_moved(now), *_richer(now)))
    found = (now.estimate(curve) for curve in curves if curve != now.curve)
    return sorted((each for each in found if each), key=lambda each: each.cost)


def _first_that_pays(now: State, near: list[Neighbour]) -> State | None:
    for each in near[:_TRIED]:
        if each.cost >= now.cost:
            break
        try:
            basis = each.curve.basis(now.criterion.ranks)[:, 1:]
            tried = State(each.curve, maximise(now.fit.likelihood, basis), now.criterion)
        except RankdriftError:  # more freedom than the data can bear
            continue
        if tried.cost < now.cost - _ROUNDING * abs(now.cost):
            return tried
    return None


def _rivals(now: State, near: list[Neighbour]) -> tuple[Rival, ...]:
    # One that seemed better and was not, once it was fitted, is as likely at most.
    ratio = np.exp(-np.maximum([each.cost - now.cost for each in near], 0.0) / 2)
    total = 1 + float(ratio.sum())
    return tuple(
        Rival(each.curve, each.phi, float(own) / total)
        for each, own in zip(near, ratio, strict=True)
        if own > _UNLIKELY
    )


# -- changes -----------------------------------------------------------------------------------


def _simpler(now: State) -> Iterator[Curve]:
    """Without a knot, both sides of a jump, a place of the batch, or all of it."""
    main, *more = now.curve.parts
    for knots in _less(set(main.numbers), now.criterion.given):
        yield _curve(knots, *more)
    for part in more:
        yield Curve((main,))
        size = part.numbers[0]
        if part.name == "periodic":
            yield Curve((main, Part("batch", (size,))))
        else:
            for places in _less(set(places_of(part.numbers)), {1, size}):
                yield Curve((main, _batch(size, places)))


def _less(numbers: set[int], stay: Iterable[int]) -> Iterator[set[int]]:
    free = sorted(numbers - set(stay))
    groups = [group for group in _side_by_side(free) if len(group) > 1]
    for out in (*([one] for one in free), *groups):
        yield numbers - set(out)


def _moved(now: State) -> Iterator[Curve]:
    """With a knot, a jump or a place of the batch elsewhere."""
    main, *more = now.curve.parts
    ranks = now.criterion.ranks
    everywhere = [int(r) for r in ranks[1:] if r <= now.criterion.deepest]
    for knots in _elsewhere(
        set(main.numbers), now.criterion.given, now.criterion.knots, everywhere
    ):
        yield _curve(knots, *more)
    for part in more:
        if part.name == "batch":
            size, inside = part.numbers[0], list(range(2, part.numbers[0]))
            for places in _elsewhere(set(places_of(part.numbers)), {1, size}, inside, inside):
                yield Curve((main, _batch(size, places)))


def _elsewhere(
    numbers: set[int], stay: Iterable[int], steps: list[int], every: list[int]
) -> Iterator[set[int]]:
    """With one of the numbers that do not stay moved by `steps`, or a jump by `every` rank."""
    for group in _side_by_side(sorted(numbers - set(stay))):
        along = steps if len(group) == 1 else every
        at = int(np.searchsorted(along, group[0]))
        for there in along[max(at - _MOVED, 0) : at + _MOVED + 1]:
            moved = {there + side for side in range(len(group))}
            if moved <= set(every):
                yield (numbers - set(group)) | moved


def _richer(now: State) -> Iterator[Curve]:
    """With a knot or a jump more; with a batch, or a bend or a jump more in it."""
    main, *more = now.curve.parts
    ranks, knots = now.criterion.ranks, set(main.numbers)
    if len(knots) < MOST_KNOTS:
        bends, jumps = gains_of_bends(now.remaining, now.gradient, np.log(ranks), now.least)
        free = np.array(sorted(set(now.criterion.knots) - knots), np.int32)
        for k in _best(free, bends[np.searchsorted(ranks, free)]):
            yield _curve(knots | {k}, *more)
        inside = (ranks > ranks[0]) & (ranks + 1 <= now.criterion.deepest)
        for k in _best(ranks[inside], jumps[inside]):
            yield _curve(knots | {k, k + 1}, *more)
    if not more:
        found = ((gain - now.criterion.of_batch(b), b) for gain, b in _gains_of_batches(now))
        for _, part in sorted(found, key=lambda each: -each[0])[:_TRIED]:
            yield Curve((main, part))
    elif more[0].name == "batch":
        size, places = more[0].numbers[0], set(places_of(more[0].numbers))
        bends, jumps = gains_of_bends(*now.folded(size), np.arange(size, dtype=float), now.least)
        free = np.array(sorted(set(range(2, size)) - places), np.int32)
        for k in _best(free, bends[free - 1]):
            yield Curve((main, _batch(size, places | {k})))
        free = np.arange(2, size - 1, dtype=np.int32)
        for k in _best(free, jumps[free - 1]):
            yield Curve((main, _batch(size, places | {k, k + 1})))
        yield Curve((main, Part("periodic", (size,))))


def _best(numbers: Ranks, gains: Floats) -> list[int]:
    return [int(k) for k in numbers[np.argsort(-gains, kind="stable")[:_TRIED]]]


def _curve(knots: set[int], *more: Part) -> Curve:
    return Curve((Part("loglog", tuple(sorted(knots))), *more))


def _batch(size: int, places: set[int]) -> Part:
    """With knots at these places and at both ends."""
    if tuple(sorted(places | {1, size})) == places_of((size,)):
        return Part("batch", (size,))
    return Part("batch", (size, *(sorted(places - {1, size}) or (size,))))


# -- what there is to gain ---------------------------------------------------------------------


def gains_of_bends(
    information: Floats, score: Floats, at: Floats, least: float
) -> tuple[Floats, Floats]:
    """(R,) each: the gain in 2 log L, to first order, of a bend at each of the points `at` (R,),
    and of a jump behind it.

    `information` (R, R) and `score` (R,) are those on log p at each point; less than `least` of the
    former is none. A jump is 0 up to a point and 1 behind it, so that what it has is a sum over the
    points behind; a bend is a sum of jumps.
    """

    def behind(values: Floats) -> Floats:
        for axis in range(values.ndim):
            values = np.flip(np.flip(values, axis).cumsum(axis), axis)
        return values

    step = np.diff(at)
    score, information = behind(score)[1:], behind(information)[1:, 1:]
    found = []
    for own, curvature in (
        (behind(step * score), behind(step[:, None] * information * step)),
        (score, information),
    ):
        along = np.diag(curvature)
        gain = np.where(along > least, own**2 / np.maximum(along, least), 0.0)
        found.append(np.append(gain, 0.0))
    return found[0], found[1]


def _gains_of_batches(now: State) -> Iterator[tuple[float, Part]]:
    """The gain in 2 log L, to first order, of batches of the likeliest sizes: with their usual
    places, and with one bend or one jump."""
    for size in _likely_sizes(now):
        information, score = now.folded(size)
        usual = Part("batch", (size,))
        yield float(_gain(information, score, _profile(size, usual), now.least)), usual
        if len(places_of(usual.numbers)) == size:
            continue
        # Beside a straight line from the first place to the last.
        line = np.arange(size) / (size - 1)
        across = information @ line
        curvature, slope = max(float(line @ across), now.least), float(line @ score)
        bends, jumps = gains_of_bends(
            information - np.outer(across, across) / curvature,
            score - across * (slope / curvature),
            np.arange(size, dtype=float),
            now.least,
        )
        for gains, behind in ((bends, 0), (jumps, 1)):
            at = 1 + int(gains[1 : size - 1 - behind].argmax())
            places = set(range(at + 1, at + 2 + behind))
            yield slope**2 / curvature + float(gains[at]), _batch(size, places)


def _profile(size: int, part: Part) -> Floats:
    assert part.kind.basis
    return part.kind.basis(np.arange(1, size + 1, dtype=np.int32), part.numbers)


def _likely_sizes(now: State) -> list[int]:
    """A few sizes of batches, by what straight lines between nine places would gain, and by what
    one bend would."""
    sizes = np.array(now.criterion.sizes, np.int32)
    if not len(sizes):
        return []
    ranks, many = now.criterion.ranks, len(_SHARES)
    share = (ranks - 1) % sizes[:, None] / (sizes[:, None] - 1)
    basis = hats(share.ravel(), _SHARES).reshape(len(sizes), len(ranks), many)[..., 1:]
    information = basis.transpose(0, 2, 1) @ (now.remaining @ basis)
    score = now.gradient @ basis
    wide = np.minimum(many, sizes) - 1
    whole = _gain(information, score, np.eye(many - 1), now.least) - now.criterion.price * wide
    line = _SHARES[1:]
    bends = np.stack(
        [np.stack([line, np.maximum(line - bend, 0.0)], axis=1) for bend in _SHARES[1:-1]]
    )
    one = _gain(information[:, None], score[:, None], bends, now.least).max(axis=1)
    one -= 2 * now.criterion.price + 2 * np.log(sizes)
    return _best(sizes, np.maximum(whole, one))


def _gain(information: Floats, score: Floats, basis: Floats, least: float) -> Floats:
    """The gain in 2 log L of a basis (…, N, K), by information (…, N, N) and score (…, N)."""
    turned = np.swapaxes(basis, -1, -2)
    inner = turned @ information @ basis + least * np.eye(basis.shape[-1])
    along = turned @ score[..., None]
    return np.asarray((along * np.linalg.solve(inner, along)).sum(axis=(-2, -1)))
