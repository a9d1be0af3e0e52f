"""What it costs to adjust a curve by the ranker's score, and why.

python -m benchmarks.accuracy.adjusting [--pairs 12000] [--seeds 20]

Of each world: the standard error of log p by score over that of the plain curve, mean over ranks
and seeds; and how much of what contests say of the slope of the curve is left once score and time
may explain them too. Where that share is f, errors must grow by 1 / √f at least: to know rank from
score, the two must have moved apart.
"""

import argparse
import tempfile

import numpy as np

from rankdrift import estimate, harvest, read_log
from rankdrift.counts.counts import Counts
from rankdrift.estimation.adjusting import score_and_time
from rankdrift.estimation.comparisons import block_scale, split_comparisons
from rankdrift.estimation.score_test import fit_logistic, pooled_design
from rankdrift.simulate import world

WORLDS = ("valid", "stock", "price-cuts", "personalised")


def left(counts: Counts) -> float:
    """The share of the information on the slope that is left beside score and time."""
    rows = split_comparisons(counts.pool(), "score")
    reasons, slope = score_and_time(rows), -rows.away
    spread = fit_logistic(rows, pooled_design(rows, block_scale(rows))).spread
    root = np.sqrt(spread)
    along = np.linalg.lstsq(root[:, None] * reasons, root * slope)[0]
    rest = slope - reasons @ along
    return float(spread @ rest**2 / (spread @ slope**2))


def one(name: str, pairs: int, seed: int) -> tuple[float, float]:
    """The ratio of errors, and the share left."""
    made = world(name, pairs=pairs, seed=seed, columns=("score",))
    with tempfile.TemporaryDirectory() as folder:
        counts = harvest(read_log(made.write(folder, by_day=False), time="time", threads=1))
    plain, adjusted = estimate(counts), estimate(counts, adjust="score")
    rest = plain.ranks != plain.reference
    return float(np.mean(adjusted.std_error[rest] / plain.std_error[rest])), left(counts)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.adjusting", description=__doc__
    )
    parser.add_argument("--pairs", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args()
    print("| world | error by score / plain | information left | 1 / √left |\n|---|---|---|---|")
    for name in WORLDS:
        ratio, share = np.mean([one(name, asked.pairs, s) for s in range(asked.seeds)], axis=0)
        print(f"| `{name}` | {ratio:.2f} | {share:.0%} | {share**-0.5:.2f} |", flush=True)


if __name__ == "__main__":
    main()
