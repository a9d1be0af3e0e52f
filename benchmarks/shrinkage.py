"""Do intervals of shrunk curves cover the truth? python -m benchmarks.shrinkage (five minutes)

With --forms (half a minute): segments that differ in form, with dips every 40 ranks or without.

Segments whose curves are rank ** -0.7 and something of their own at ranks 5 and 30: another slope,
the same at both, or steps of a random walk in the logarithm of the rank. Each kind of segments for
WORLDS worlds of 500 usable pairs a segment; the scale of the prior (`shrinkage.USUAL`) was chosen
on other worlds. And how often the test says that segments differ which do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure
from rankdrift.estimation import estimate
from rankdrift.simulate.true_curves import TrueCurve, dipping, steady

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

WORLDS, EQUAL = 100, 300
PAIRS = 500  # of a segment
FIRST = 10_000  # seed; USUAL was chosen on those from 0 to 79
KNOTS = np.array([1.0, 5.0, 30.0])
AT = KNOTS[1:].astype(int) - 1
FAR = np.log(KNOTS[1:])

Draw = Callable[[np.random.Generator, int], np.ndarray]


def slopes(deviation: float) -> Draw:
    """(S, 2) deviations of log p at ranks 5 and 30."""
    return lambda rng, many: np.outer(deviation * rng.normal(size=many), FAR)


def levels(deviation: float) -> Draw:
    return lambda rng, many: np.outer(deviation * rng.normal(size=many), [1, 1])


def walks(deviation: float) -> Draw:
    steps = np.sqrt(np.diff(FAR, prepend=0))
    return lambda rng, many: np.cumsum(deviation * steps * rng.normal(size=(many, 2)), axis=1)


KINDS: dict[str, tuple[Draw, int]] = {
    "3 that are alike": (slopes(0), 3),
    "3, slopes ± 0.1": (slopes(0.1), 3),
    "3, slopes ± 0.25": (slopes(0.25), 3),
    "8, slopes ± 0.1": (slopes(0.1), 8),
    "8, slopes ± 0.25": (slopes(0.25), 8),
    "3, log p ± 0.3 from rank 5 on": (levels(0.3), 3),
    "3, log p ± 0.8 from rank 5 on": (levels(0.8), 3),
    "3, walks of ± 0.5": (walks(0.5), 3),
}


def study(draw: Draw, many: int) -> dict[str, tuple[float, float]]:
    """Of own, pool and shrunk curves: the share of 95% intervals that cover the truth, and the root
    mean square error of log p, at ranks 5 and 30."""
    from support.worlds import simulate

    covered: dict[str, list[Any]] = {"own": [], "pool": [], "shrunk": []}
    off: dict[str, list[Any]] = {name: [] for name in covered}
    for seed in range(FIRST, FIRST + WORLDS):
        drawn = draw(np.random.default_rng(seed), many)
        curves = {f"segment {n}": _curve(deviation) for n, deviation in enumerate(drawn)}
        world = simulate(PAIRS * many, 30, seed, segments=curves, queries=300)
        found = estimate(world.counts, by="device", curve="loglog(1, 5, 30)")
        for segment in found.by_segment:
            each = found.by_segment[segment], found, found.shrunk[segment]
            for name, curve in zip(covered, each, strict=True):
                at = AT[len(curve.ranks) > AT]
                truth = world.by_segment[str(segment[0])][at]
                low, high = (np.log(bound)[at] for bound in curve.interval(0.95))
                covered[name] += ((low <= truth) & (truth <= high)).tolist()
                off[name] += (curve.log_p[at] - truth).tolist()
    return {
        name: (np.mean(covered[name]), np.sqrt(np.mean(np.square(off[name])))) for name in covered
    }


# Curves of the segments, usable pairs of all, and shares of them.
FORMS: dict[str, tuple[list[TrueCurve], int, list[float] | None]] = {
    "6 with the same dips, 400 pairs each": ([dipping] * 6, 2_400, None),
    "3 with dips, 3 without, 400 pairs each": ([dipping] * 3 + [steady] * 3, 2_400, None),
    "3 with dips, 3 without, 2,000 pairs each": ([dipping] * 3 + [steady] * 3, 12_000, None),
    "dips in 6,000 pairs and in 300": ([dipping] * 2, 6_300, [0.95, 0.05]),
    "none in 6,000 pairs, dips in 600": ([steady, dipping], 6_600, [0.91, 0.09]),
}
FORM_WORLDS, DEEP = 12, 100


def study_forms(
    curves: list[TrueCurve], pairs: int, shares: list[float] | None
) -> dict[str, tuple[float, float]]:
    """As `study`, at all ranks, of own curves, shrunk ones, and those with the pool's form."""
    from support.worlds import simulate

    covered: dict[str, list[Any]] = {"own": [], "shrunk": [], "shrunk, the pool's form": []}
    square: dict[str, list[float]] = {name: [] for name in covered}
    segments = {f"segment {n}": curve for n, curve in enumerate(curves)}
    for seed in range(FORM_WORLDS):
        world = simulate(pairs, DEEP, seed, segments=segments, shares=shares, level=0.3)
        found = estimate(world.counts, by="device")
        forced = estimate(world.counts, by="device", curve=found.provenance["curve"])
        for segment in found.by_segment:
            each = found.by_segment[segment], found.shrunk[segment], forced.shrunk[segment]
            for name, curve in zip(covered, each, strict=True):
                truth = world.by_segment[str(segment[0])][curve.ranks - 1]
                low, high = (np.log(bound) for bound in curve.interval(0.95))
                covered[name] += ((low <= truth) & (truth <= high))[1:].tolist()
                square[name].append(float(np.var(curve.log_p - truth)))
    return {
        name: (np.mean(covered[name]), float(np.sqrt(np.mean(square[name])))) for name in covered
    }


def false_alarms() -> np.ndarray:
    """p-values (EQUAL,) of three segments having one curve, where they have."""
    from support.worlds import power, simulate

    same = {name: power(0.6) for name in ("app", "tv", "web")}
    worlds = (simulate(900, 30, seed, segments=same, queries=300) for seed in range(EQUAL))
    found = (estimate(world.counts, by="device", curve="loglog(1, 5, 30)") for world in worlds)
    return np.array([curve.difference.p_value for curve in found if curve.difference])


def _curve(deviation: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    bends = np.concatenate([[0], deviation])
    return lambda ranks: ranks**-0.7 * np.exp(np.interp(np.log(ranks), np.log(KNOTS), bends))


def main() -> None:
    if "--forms" in sys.argv:
        measure.show(
            "Segments that differ in form: 95% intervals that cover the truth, error of log p",
            ("segments", "own", "", "shrunk", "", "shrunk, the pool's form", ""),
            (
                (kind, *(f"{n:.3f}" for each in study_forms(*how).values() for n in each))
                for kind, how in FORMS.items()
            ),
            f"{FORM_WORLDS} worlds of each kind, {DEEP} ranks, relative to rank 1.",
        )
        return
    found = {kind: study(*how) for kind, how in KINDS.items()}
    measure.show(
        "95% intervals that cover the truth, and the error of log p",
        ("segments", "own", "", "pool", "", "shrunk", ""),
        (
            (
                kind,
                *(cell for share, off in each.values() for cell in (f"{share:.1%}", f"{off:.3f}")),
            )
            for kind, each in found.items()
        ),
        f"{WORLDS} worlds of each kind, {PAIRS} usable pairs a segment; ranks 5 and 30.",
    )
    p = false_alarms()
    measure.show(
        f"p-values of {len(p)} worlds with equal segments",
        ("below", "share"),
        ((f"{level:.0%}", f"{(p < level).mean():.1%}") for level in (0.05, 0.01)),
        "",
    )


if __name__ == "__main__":
    main()
