"""Time, peak memory, and tables that say them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

# The peak of a process on Linux includes that of the process which started it. So a process is
# measured by a small one made for the purpose.
_WATCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "processor": used.ru_utime + used.ru_stime,
    "peak": used.ru_maxrss,
    "status": done.returncode,
    "stdout": done.stdout,
    "stderr": done.stderr,
}))
"""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Run:
    """What a command did in a process of its own; `processor`: seconds of all cores together."""

    seconds: float
    processor: float
    megabytes: float
    status: int
    stdout: str
    stderr: str

    @property
    def out_of_memory(self) -> bool:
        return self.status in (-9, 137) or "MemoryError" in self.stderr

    def require(self) -> Run:
        if self.status:
            raise RuntimeError(f"Ended with status {self.status}.\n{self.stderr.strip()}")
        return self


def run(*command: object) -> Run:
    """Run a command and see how long it takes and how much memory it has at its peak. What Python
    compiles it keeps, as it does where a package is installed."""
    watch = [sys.executable, "-S", "-c", _WATCH, *map(str, command)]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(watch, capture_output=True, text=True, check=True, env=kept)
    seen = json.loads(done.stdout)
    megabytes = seen.pop("peak") * _PEAK_UNIT / 1e6
    return Run(megabytes=megabytes, **seen)


def fastest(
    tasks: Mapping[str, Callable[[], object]],
    rounds: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The least seconds each task took; tasks take turns, so that a busy spell hits all alike."""
    return {name: least for name, (least,) in fastest_by(tasks, (clock,), rounds).items()}


def fastest_by(
    tasks: Mapping[str, Callable[[], object]],
    clocks: Sequence[Callable[[], float]],
    rounds: int = 3,
) -> dict[str, tuple[float, ...]]:
    """As `fastest`, by several clocks at once."""
    best = {name: (float("inf"),) * len(clocks) for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = [clock() for clock in clocks]
            task()
            took = (clock() - began for clock, began in zip(clocks, start, strict=True))
            best[name] = tuple(map(min, best[name], took))
    return best


def show(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]], notes: str) -> None:
    table = Table(title=title, title_justify="left", caption=notes, caption_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    Console().print(table, "")


def verdict(value: float, limit: float) -> str:
    return f"{value:.2f} of at most {limit:g}: {'met' if value <= limit else 'MISSED'}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
