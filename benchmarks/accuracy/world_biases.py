"""How far the plain estimate is off in every world of the lab: the table of docs/worlds.md.

python -m benchmarks.accuracy.world_biases [--seeds 20] [--pairs 35000] [--jobs 2] [--world NAME]
    [--strength 1]

Prints, of each world, the mean error of log p over ranks 2 to the last, relative to rank 1, with
its standard error over seeds; the root mean square over ranks of what is left when the errors of
all seeds are averaged; usable pairs and rows; and how long a draw took.
"""

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from rankdrift import estimate, harvest, read_log
from rankdrift.simulate import world
from rankdrift.simulate.worlds import WORLDS

HEADER = "| world | mean error of log p | rms over ranks | pairs | rows | seconds |"


@dataclass(frozen=True, eq=False)
class Trial:
    """off (R,): the error of log p relative to rank 1."""

    off: np.ndarray
    pairs: int
    rows: int
    seconds: float


def repeat(task: tuple[str, int, int, float]) -> Trial:
    name, seed, pairs, strength = task
    start = time.process_time()
    made = world(name, seed=seed, pairs=pairs, strength=strength, columns=())
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        counts = harvest(read_log(made.write(folder, by_day=False), time="time", threads=1))
    found = estimate(counts)
    off = np.full(len(made.truth), np.nan)
    off[found.ranks - 1] = found.log_p - np.log(made.truth[found.ranks - 1])
    return Trial(off - off[0], counts.n_pairs, made.rows, seconds)


def row(name: str, trials: list[Trial]) -> str:
    off = np.stack([trial.off[1:] for trial in trials])
    means = np.nanmean(off, axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    left = np.sqrt(np.nanmean(np.nanmean(off, axis=0) ** 2))
    pairs, rows, seconds = (
        np.mean([getattr(trial, what) for trial in trials]) for what in ("pairs", "rows", "seconds")
    )
    mean = f"{means.mean():+.3f} ± {error:.3f}".replace("-", "−")
    return f"| `{name}` | {mean} | {left:.3f} | {pairs:,.0f} | {rows:,.0f} | {seconds:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.world_biases", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=35_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--world", choices=WORLDS.names, action="append")
    asked = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one process a core
        os.environ[variable] = "1"
    print(HEADER, flush=True)
    with get_context("spawn").Pool(asked.jobs) as pool:
        for name in asked.world or WORLDS.names:
            seeds = range(1, asked.seeds + 1)
            tasks = [(name, seed, asked.pairs, asked.strength) for seed in seeds]
            print(row(name, pool.map(repeat, tasks, chunksize=1)), flush=True)


if __name__ == "__main__":
    main()
