"""A model of unknown origin, tried in a process of its own.

LightGBM and XGBoost trust their models: a number that points outside of a tree ends the whole
process, and one that points back makes it run for ever. What happens to such a model here happens
to a process that has nothing to lose.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.ranking.backends import BACKENDS, Backend
from rankdrift.ranking.matrix import Feature

# What the process may take of a processor once it has the model, and for each megabyte of it:
# importing, loading and scoring take a fifth of that. SECONDS are those of the clock.
CPU_SECONDS, OF_MEGABYTE = 8, 2
SECONDS = 60.0
# Bytes that the process may take: the libraries themselves are mapped with some hundred megabytes,
# and a model takes a few times its text.
MEMORY, OF_TEXT = 4 << 30, 20
ROWS = 256
_SAID = "rankdrift: "
_TOO_LONG = getattr(signal, "SIGXCPU", None) or 0  # none on Windows


def try_apart(backend: Backend, text: str) -> None:
    """Open the model in another process and let it score rows; BadOption if it does not survive."""
    if not sys.executable:
        return
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    command = [sys.executable, "-c", f"from {__name__} import main; main({backend.name!r})"]
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, **limits, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        raise BadOption(f"{backend.title} does not come to an end with it") from None
    if done.returncode == 0:
        return
    if done.returncode == -_TOO_LONG:
        raise BadOption(f"{backend.title} does not come to an end with it")
    # The libraries talk on the same stream.
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(_SAID):
            raise BadOption(json.loads(line.removeprefix(_SAID)))
    raise BadOption(f"it ends the process of {backend.title} (exit code {done.returncode})")


def main(name: str) -> None:
    """What the other process does with the model on its stdin: exit code 0 if all goes well."""
    model = sys.stdin.buffer.read()
    text, backend = model.decode(), BACKENDS.get(name)
    _limit(MEMORY + OF_TEXT * len(model), CPU_SECONDS + OF_MEGABYTE * (len(model) >> 20))
    try:
        booster = backend.open(text)
        found = backend.contents(booster, text)
        if not found.has_categories:
            features = [Feature(feature) for feature in found.names]
            scores = backend.predict(booster, _rows(len(features)), features, found.trees)
            backend.importance(booster, features)
            if not np.isfinite(scores).all():
                raise ValueError("it scores results by numbers that are not finite")
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        print(f"\n{_SAID}{json.dumps(said)}", flush=True)
        os._exit(1)
    os._exit(0)


def _rows(features: int) -> np.ndarray:
    """Values of all sizes, some missing."""
    rng = np.random.default_rng(0)
    size = (ROWS, features)
    rows = rng.choice([-1.0, 1.0], size) * 10.0 ** rng.uniform(-6, 9, size)
    rows[rng.random(size) < 0.1] = np.nan
    rows[0] = 0.0
    return np.asarray(rows, dtype=np.float32)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the time on the clock is bounded, the rest is not
        return
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, used + seconds + 1))
