"""Where the time of a harvest goes: seconds of the processor by step, in scans of the same log.

Beside it what must be read: a scan by columns; the columns of the three passes together; and the
same harvest with DuckDB's own filters on the keys of a join, which the engine leaves off.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import duckdb

from benchmarks import large, logs, measure, peers
from rankdrift import harvest, read_log
from rankdrift.log.engines.duckdb.engine import DuckdbEngine

MOST = 10_000_000
PASSES = {
    "tally": ("rank", "click"),
    "known": ("click", "query", "doc"),
    "candidates": logs.COLUMNS,
}
LEAST = 0.02  # of a scan, to be told by name


def run(rows: int) -> dict[str, Any]:
    """Measure the logs of `large`, of so many rows or MOST."""
    rows, found = min(rows, MOST), {}
    for name in large.QUERIES:
        files = large.made(rows, name)
        scan = _used(partial(peers.scan, files))
        read = {step: _used(partial(_read, files, own)) / scan for step, own in PASSES.items()}
        steps = {step: used / scan for step, used in _steps(files).items()}
        filtered = {step: used / scan for step, used in _steps(files, filters=True).items()}
        told = {step: used for step, used in steps.items() if used >= LEAST}
        told["all others"] = sum(steps.values()) - sum(told.values())
        measure.show(
            f"{rows:,} impressions, {name}: a scan takes {scan:.2f} s of the processor",
            ("step", "scans", "to read its columns", "with DuckDB's filters"),
            ((s, used, read.get(s), filtered.get(s)) for s, used in told.items()),
            f"{sum(steps.values()):.2f} scans in all; what must be read is "
            f"{sum(read.values()):.2f}. With filters {sum(filtered.values()):.2f}.",
        )
        found[name] = {"scan": scan, "steps": steps, "read": read, "filtered": filtered}
    return found


def _used(task: Any, rounds: int = 2) -> float:
    """The least seconds of the processor."""
    return min(measure.fastest({"": task}, rounds, time.process_time).values())


def _read(files: list[str], columns: tuple[str, ...]) -> None:
    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        database.execute("SET disabled_optimizers = 'statistics_propagation'")
        picks = ", ".join(f'max("{column}")' for column in columns)
        database.execute(f"SELECT {picks} FROM read_parquet($1)", [files]).fetchall()


def _steps(files: list[str], filters: bool = False) -> dict[str, float]:
    """Seconds of each step of a harvest, and of what is none: reading the counts, planning."""
    with _watched() as used:
        start = time.process_time()
        log = read_log(files)
        if filters:
            log.engine.connection.execute("SET disabled_optimizers = ''")
        harvest(log)
        used["around it"] = time.process_time() - start - sum(used.values())
    return used


@contextmanager
def _watched() -> Iterator[dict[str, float]]:
    used: dict[str, float] = {}
    execute = DuckdbEngine.execute

    def watched(self: DuckdbEngine, sql: str, name: str, progress: Any) -> None:
        start = time.process_time()
        execute(self, sql, name, progress)
        used[name] = used.get(name, 0.0) + time.process_time() - start

    DuckdbEngine.execute = watched  # type: ignore[method-assign]
    try:
        yield used
    finally:
        DuckdbEngine.execute = execute  # type: ignore[method-assign]
