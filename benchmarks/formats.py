"""Logs in known formats: turned into rows, and harvested, beside a bare scan of the same files."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import measure
from rankdrift import harvest, read_log
from rankdrift.core.errors import Remark
from rankdrift.log.engines.duckdb.engine import DuckdbEngine
from rankdrift.log.sources import find
from tests.support.log_formats import RANKS, WRITERS, plain_log

SLOWEST = 2.5  # times a bare scan, to have rows of the log
ROUNDS = 3
MOST_ROWS = 1_200_000  # results shown: some hundred megabytes of JSON


def run(rows: int) -> dict[str, Any]:
    """Every format in its first way of being written."""
    rows = min(rows, MOST_ROWS)
    measured = {}
    with plain_log(rows // RANKS, queries=2_000, days=10) as con:
        for name, writers in WRITERS.items():
            with tempfile.TemporaryDirectory() as folder:
                paths = [str(path) for path in writers[0](con, Path(folder))]
                measured[name] = _measured(paths)
    slowest = max(one["ratio"] for one in measured.values())
    measure.show(
        "Logs in known formats",
        ("format", "megabytes", "scan s", "rows s", "rows / scan", "kept / scan", "harvest s"),
        (
            (
                name,
                one["megabytes"],
                one["scan"],
                one["rows"],
                one["ratio"],
                one["kept"] / one["scan"],
                one["harvest"],
            )
            for name, one in measured.items()
        ),
        f"{rows:,} results shown and their clicks. The scan reads every value of the files in "
        "DuckDB (SELECT max(hash(column)), types found as DuckDB finds them; of text, every line); "
        "rows: the plan of the format, which reads the files, run in the same way once, until "
        "every value of our columns is there; kept: the same, the rows written to Parquet for a "
        f"harvest, which reads them several times. Processor time, best of {ROUNDS}.\n"
        f"Rows / scan: {measure.verdict(slowest, SLOWEST)}.",
    )
    return measured


def _measured(paths: list[str]) -> dict[str, float]:
    tasks: dict[str, Callable[[], object]] = {
        "scan": partial(_scan, paths),
        "rows": partial(_rows, paths),
        "kept": partial(_kept, paths),
        "harvest": partial(_harvest, paths),
    }
    best = {name: min(_seconds(task) for _ in range(ROUNDS)) for name, task in tasks.items()}
    size = sum(Path(path).stat().st_size for path in paths) / 1e6
    return {**best, "megabytes": size, "ratio": best["rows"] / best["scan"]}


def _seconds(task: Callable[[], object]) -> float:
    """Of the processor, on all threads: what else the machine does makes no difference."""
    start = time.process_time()
    task()
    return time.process_time() - start


def _scan(paths: list[str]) -> None:
    kind = find(paths).format
    reader = {
        "parquet": f"read_parquet({paths}, union_by_name = true)",
        "json": f"read_json({paths}, union_by_name = true, format = 'auto')",
    }.get(kind, f"read_csv({paths}, delim = '\x1e', quote = '', header = false, columns ="
                " {'line': 'VARCHAR'})")  # fmt: skip
    with duckdb.connect() as con:
        con.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        con.sql(f"SELECT max(hash(COLUMNS(*))) FROM {reader}").fetchall()


def _rows(paths: list[str]) -> None:
    engine = read_log(paths).engine
    assert isinstance(engine, DuckdbEngine)
    engine.connection.sql(f"SELECT max(hash(COLUMNS(*))) FROM ({engine.rows_sql})").fetchall()


def _kept(paths: list[str]) -> None:
    log = read_log(paths)
    log.engine.query(f"SELECT count(*) FROM {log.engine.source}")


def _harvest(paths: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        harvest(read_log(paths))
