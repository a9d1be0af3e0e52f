"""Logs in known formats: turned into rows, and harvested, beside a bare scan of the same files.

What a bare scan is. It reads every value once and does nothing with it but hash it. Of Parquet, all
columns, those inside lists and structs too. Of JSON, all documents, with the types that DuckDB
finds. Of CSV, all columns, as text. Of other text, all lines, cut into their fields, for no reader
can do less: to look for the ends of lines alone, as this once did, takes a quarter of that.

What it is compared with. *Rows* is the plan of a format, run until every value of our columns is
there. *Kept* is what a harvest does before it counts: it opens the log, recognises it, and copies
the columns that it will read several times. A line may hold a dozen results: the scan reads the
line, the copy writes the dozen.

Docs are those of their query, some 32,000 in all: with a dozen for all queries, as the tests have
them, Parquet's dictionaries would let a scan pass over nearly everything.
"""

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
from rankdrift.log.formats import FORMATS
from rankdrift.log.formats.recognising import line_reader
from rankdrift.log.sources import find
from tests.support.log_formats import RANKS, WRITERS, plain_log

SLOWEST = 2.5  # times a bare scan, to have rows of the log
ROUNDS = 3
_FIELDS = {
    "mind": "[string_split(v, ' ') for v in string_split(line, '\t')]",
    "tiangong-st": "string_split(line, '>')",
}
MOST_ROWS = 300_000  # results shown: some two minutes of one processor for all formats


def run(rows: int) -> dict[str, Any]:
    """Every format in its first way of being written."""
    rows = min(rows, MOST_ROWS)
    measured = {}
    with plain_log(rows // RANKS, queries=2_000, days=10, docs="16 * q + r") as con:
        for name, writers in WRITERS.items():
            with tempfile.TemporaryDirectory() as folder:
                paths = [str(path) for path in writers[0](con, Path(folder))]
                measured[name] = _measured(name, paths)
    slowest = max(one["kept"] / one["scan"] for one in measured.values())
    measure.show(
        "Logs in known formats",
        ("format", "megabytes", "scan s", "rows s", "rows / scan", "kept / scan", "harvest s"),
        (
            (
                name,
                one["megabytes"],
                one["scan"],
                one["rows"],
                one["rows"] / one["scan"],
                one["kept"] / one["scan"],
                one["harvest"],
            )
            for name, one in measured.items()
        ),
        f"{rows:,} results shown and their clicks. The scan reads every value of the files in "
        "DuckDB (SELECT max(hash(column)); of text, every field of every line); rows: the log is "
        "opened and the plan of the format run in the same way, until every value of our columns "
        "is there; kept: it is opened, and the columns that a harvest reads several times are "
        f"copied to Parquet. Processor time on one thread, best of {ROUNDS}; harvest: once.\n"
        f"Kept / scan: {measure.verdict(slowest, SLOWEST)}.",
    )
    return measured


def _measured(name: str, paths: list[str]) -> dict[str, float]:
    tasks: dict[str, Callable[[], object]] = {
        "scan": partial(_scan, name, paths),
        "rows": partial(_rows, paths),
        "kept": partial(_kept, paths),
    }
    best = measure.fastest(tasks, ROUNDS, time.process_time)
    size = sum(Path(path).stat().st_size for path in paths) / 1e6
    harvested = measure.fastest({"harvest": partial(_harvest, paths)}, 1, time.process_time)
    return {**best, **harvested, "megabytes": size}


def _scan(name: str, paths: list[str]) -> None:
    files, values = find(paths).format, "COLUMNS(*)"
    if FORMATS.get(name).reads == "lines":
        reader, values = line_reader(str(paths)), _FIELDS.get(name, "string_split(line, '\t')")
    elif files == "csv":
        reader = f"read_csv({paths}, all_varchar = true)"
    else:
        reader = f"read_{files}({paths}, union_by_name = true)"
    with duckdb.connect() as con:
        con.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        con.execute("SET threads = 1")
        con.sql(f"SELECT max(hash({values})) FROM {reader}").fetchall()


def _rows(paths: list[str]) -> None:
    engine = read_log(paths, threads=1).engine
    assert isinstance(engine, DuckdbEngine)
    engine.connection.sql(f"SELECT max(hash(COLUMNS(*))) FROM ({engine.rows_sql})").fetchall()


def _kept(paths: list[str]) -> None:
    log = read_log(paths, threads=1)
    log.narrow()
    log.engine.query(f"SELECT count(*) FROM {log.engine.source}")


def _harvest(paths: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        harvest(read_log(paths, threads=1))
