"""The curve with trust, in worlds that need it and in worlds that do not: docs/accuracy.md.

python -m benchmarks.accuracy.trust [--seeds 24] [--first 101] [--pairs 35000] [--world NAME ...]

Prints, of each world, over seeds: the mean error of log p over ranks 2 to the last, relative to
rank 1, plain and with trust, and its standard deviation; at how many of the ranks the 95% interval
of p and of trust holds the truth (the last rank has no trust by definition); and the mean trust at
rank 1 beside the true one, taken relative to the last rank as the estimate is.
"""

import argparse
import tempfile

import numpy as np

from rankdrift import estimate, harvest, read_log
from rankdrift.simulate import world
from rankdrift.simulate.worlds import WORLDS

FIRST = 101  # seed
HEADER = (
    "| world | plain | with trust | its deviation | p covered | trust covered | trust at rank 1 "
    "| true |\n|---|---|---|---|---|---|---|---|"
)


def trial(name: str, seed: int, pairs: int) -> dict[str, float]:
    made = world(name, seed=seed, pairs=pairs, columns=())
    with tempfile.TemporaryDirectory() as folder:
        log = read_log(made.write(folder, by_day=False), time="time", threads=1)
        counts = harvest(log, trust=True)
    plain, found = estimate(counts, reference=1), estimate(counts, reference=1, adjust="trust")
    place = found.ranks - 1
    truth = np.log(made.truth[place])
    low, high = (np.log(bound) for bound in found.interval())
    alpha, beta = (made.parts.get(part, np.zeros(len(made.truth))) for part in ("alpha", "beta"))
    # What every rank gives alike is told as relevance: trust is relative to the last rank.
    last = place[-1]
    trust = np.zeros(len(place))
    if alpha.any():
        trust = (beta - alpha * beta[last] / alpha[last])[place]
    below, above = found.trust_interval()
    return {
        "plain": float((plain.log_p - truth)[1:].mean()),
        "found": float((found.log_p - truth)[1:].mean()),
        "covered": float(((low <= truth) & (truth <= high))[1:].mean()),
        "trusted": float(((below <= trust) & (trust <= above))[:-1].mean()),
        "first": float(found.trust[0]),
        "true": float(trust[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.trust", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--pairs", type=int, default=35_000)
    parser.add_argument("--world", choices=WORLDS.names, action="append")
    asked = parser.parse_args()
    print(HEADER, flush=True)
    for name in asked.world or ("trust", "valid"):
        seeds = range(asked.first, asked.first + asked.seeds)
        trials = [trial(name, seed, asked.pairs) for seed in seeds]
        of = {key: np.array([each[key] for each in trials]) for key in trials[0]}
        error = of["found"].std(ddof=1)
        cells = [
            f"{of['plain'].mean():+.3f} ({of['plain'].std(ddof=1):.3f})",
            f"{of['found'].mean():+.3f} ± {error / np.sqrt(len(trials)):.3f}",
            f"{error:.3f}",
            f"{of['covered'].mean():.0%}",
            f"{of['trusted'].mean():.0%}",
            f"{of['first'].mean():.3f} ({of['first'].std(ddof=1):.3f})",
            f"{of['true'].mean():.3f}",
        ]
        print(f"| `{name}` | {' | '.join(cells)} |".replace("-", "−"), flush=True)


if __name__ == "__main__":
    main()
