"""Do intervals of leaning curves hold the truth? python -m benchmarks.leaning (about a minute)

Three segments whose curves are rank ** -slope, slopes drawn around 0.7; `_CAREFUL` is by how many
standard errors the variance between segments is taken larger than estimated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rankdrift import segments
from rankdrift.estimation import estimate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

WORLDS = 60
NAMES = ("app", "tv", "web")
AT = np.array([5, 30]) - 1


def held(deviation: float) -> tuple[float, float]:
    """(share of 95% intervals that hold the truth, root mean square error of log p)."""
    from worlds import power, simulate

    inside, squares = [], []
    for seed in range(WORLDS):
        drawn = 0.7 + deviation * np.random.default_rng(1000 + seed).normal(size=len(NAMES))
        curves = {name: power(max(0.1, slope)) for name, slope in zip(NAMES, drawn, strict=True)}
        world = simulate(1500, 30, seed, segments=curves, queries=300)
        found = estimate(world.counts, by="device", curve="loglog(1, 5, 30)")
        for (name,), leaning in found.leaning.items():
            low, high = (np.log(bound)[AT] for bound in leaning.interval(0.95))
            truth = world.by_segment[name][AT]
            inside.append((low <= truth) & (truth <= high))
            squares.append((leaning.log_p[AT] - truth) ** 2)
    return float(np.mean(inside)), float(np.sqrt(np.mean(squares)))


def main() -> None:
    for careful in (0.0, segments._CAREFUL):
        segments._CAREFUL = careful
        for deviation in (0.0, 0.1, 0.25):
            covered, error = held(deviation)
            print(
                f"{careful:g} errors, slopes ± {deviation:g}: {covered:.1%} held, {error:.3f} off"
            )


if __name__ == "__main__":
    main()
