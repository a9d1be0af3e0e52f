"""ultr-bias-toolkit's estimators on the ten-ranks world, in an environment of their own.

The lab's side writes the appearances; `python peers.py FILE…`, run by the other environment's
Python, which knows nothing of rankdrift, answers with log p as JSON beside each file. AllPairs
takes a quarter of a minute a world, so answers are kept, by what was asked.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

import numpy as np

HOME = Path(__file__).parents[1] / ".data" / "peers"
# torch 2.13.0 is a build for processors alone; others bring gigabytes for graphics cards.
PACKAGES = ("ultr-bias-toolkit==0.0.5", "torch==2.13.0")


def run(repetitions: int, jobs: int) -> dict[str, dict]:
    """What `trials.figures` makes of each peer."""
    from benchmarks.accuracy.estimators import Found
    from benchmarks.accuracy.scenarios import SCENARIOS
    from benchmarks.accuracy.trials import figures, judge

    python = install()
    scenario = SCENARIOS["ten-ranks"]
    worlds = [scenario.draw(seed) for seed in range(repetitions)]
    files = [_question(world.rank, world.click) for world in worlds]
    open_ones = [file for file in files if not file.with_suffix(".json").exists()]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda part: _ask(python, part), [open_ones[i::jobs] for i in range(jobs)]))
    told: dict[str, list] = {}
    for file, world in zip(files, worlds, strict=True):
        for name, (log_p, seconds) in json.loads(file.with_suffix(".json").read_text()).items():
            p = np.array([np.nan if x is None else x for x in log_p])
            ranks = np.flatnonzero(np.isfinite(p)) + 1
            trial = judge(Found(ranks, p[ranks - 1]), world.truth, seconds)
            told.setdefault(name, []).append(trial)
    return {
        name: {"failed": 0, "says": "", "holds": False, **figures(t)} for name, t in told.items()
    }


def install() -> Path:
    """The peers' Python; makes their environment first if there is none."""
    python = HOME / "bin" / "python"
    if not (HOME / ".ready").exists():
        print(f"Installing {', '.join(PACKAGES)} in {HOME} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (HOME / ".ready").touch()
    return python


def _question(rank: np.ndarray, click: np.ndarray) -> Path:
    """The file of one world's appearances, named by what it holds and by who is asked."""
    asked = blake2b(repr(PACKAGES).encode(), digest_size=12)
    asked.update(rank.tobytes())
    asked.update(click.tobytes())
    file = HOME / "asked" / f"{asked.hexdigest()}.npz"
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, rank=rank, click=click)
    return file


def _ask(python: Path, files: list[Path]) -> None:
    environment = {"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    if files:
        command = [str(python), __file__, *map(str, files)]
        subprocess.run(command, env=environment, check=True, capture_output=True)


def answer(files: list[str]) -> None:
    """In the peers' environment: {name: (log p by rank, seconds)} beside each file."""
    import time

    import pandas as pd
    import torch
    from ultr_bias_toolkit.bias.intervention_harvesting import (
        AdjacentChainEstimator,
        AllPairsEstimator,
        PivotEstimator,
    )

    torch.set_num_threads(1)
    for file in files:
        with np.load(file) as arrays:
            rank, click = arrays["rank"], arrays["click"]
        log = pd.DataFrame(
            {
                "query_id": 0,
                "doc_id": np.repeat(np.arange(len(rank)), rank.shape[1]),
                "position": rank.ravel(),
                "click": click.ravel().astype(int),
            }
        )
        torch.manual_seed(0)
        told = {}
        for name, estimator in (
            ("AllPairs", AllPairsEstimator()),
            ("PivotOne", PivotEstimator(pivot_rank=1)),
            ("AdjacentChain", AdjacentChainEstimator()),
        ):
            start = time.process_time()
            table = estimator(log)
            p = np.zeros(int(rank.max()))
            p[table.position.to_numpy() - 1] = table.examination.to_numpy()
            log_p = [float(np.log(x)) if x > 0 else None for x in p]
            told[name] = (log_p, time.process_time() - start)
        unfinished = Path(file).with_suffix(".part")
        unfinished.write_text(json.dumps(told))
        unfinished.rename(Path(file).with_suffix(".json"))


if __name__ == "__main__":
    answer(sys.argv[1:])
