"""A year of day files of counts: added up, then estimated from, diagnosed and reported on."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import measure
from rankdrift import Counts, harvest, read_log
from rankdrift.simulate import world

DAYS = 365
PAIRS = 6_000  # of a world of six days: some 10,000 rows of counts a day, with all columns
WORLDS = 5  # then the days come again under other dates
MERGE, OTHERS = 3.0, 10.0  # seconds, on two idle cores
MOST = 500  # MB
READ = """
import duckdb
duckdb.sql("CREATE TABLE year AS SELECT * FROM '{}/*.parquet'")
"""


def run(_: int) -> dict[str, Any]:
    """Measure. A year is a year, whatever the rows of the other logs."""
    command = Path(sys.executable).with_name("rankdrift")
    with tempfile.TemporaryDirectory() as place:
        year, counts, total = Path(place, "year"), Path(place, "counts.parquet"), 0
        year.mkdir()
        for path, day in _days(Path(place, "log.parquet"), year):
            day.save(path)
            total += sum(map(len, day.tables.values()))
        steps = {
            "DuckDB reads it into memory": (sys.executable, "-c", READ.format(year)),
            "merge": (command, "merge", year, "-o", counts),
            "estimate": (command, "estimate", counts, "-o", Path(place, "propensities.json")),
            "diagnose": (command, "diagnose", counts),
            "report, drift included": (command, "report", year, "-o", Path(place, "report.html")),
        }
        runs = {name: _better(words) for name, words in steps.items()}
    floor, merged, *others = runs.values()
    measure.show(
        f"A year: {DAYS} files of counts by platform, {total:,} rows in all",
        ("", "seconds", "of the processor", "peak MB"),
        ((name, done.seconds, done.processor, done.megabytes) for name, done in runs.items()),
        f"merge, seconds: {measure.verdict(merged.seconds, MERGE)}; "
        f"MB: {measure.verdict(merged.megabytes, MOST)}; "
        f"{merged.processor / floor.processor:.1f} times what reading takes of the processor.\n"
        "estimate, diagnose and report together, seconds: "
        f"{measure.verdict(sum(done.seconds for done in others), OTHERS)}.",
    )
    return {
        name: {
            "seconds": done.seconds,
            "processor": done.processor,
            "megabytes": done.megabytes,
        }
        for name, done in runs.items()
    }


def _better(words: tuple[object, ...]) -> measure.Run:
    """The better of two runs: in the first Python may compile what it imports."""
    return min((measure.run(*words) for _ in range(2)), key=lambda run: run.seconds)


def _days(scratch: Path, folder: Path) -> list[tuple[Path, Counts]]:
    """Where each file of the year goes, and what goes there."""
    some = []
    for seed in range(1, WORLDS + 1):
        for path in world("valid", pairs=PAIRS, seed=seed).write(scratch.parent / "log"):
            if path.suffix == ".parquet":
                platform = "CASE WHEN query % 3 = 0 THEN 'mobile' ELSE 'web' END AS platform"
                duckdb.sql(f"COPY (SELECT *, {platform} FROM '{path}') TO '{scratch}'")
                some.append(harvest(read_log(scratch, time="time", segment="platform")))
    dates = [str(date(2024, 1, 1) + timedelta(i)) for i in range(DAYS)]
    return [
        (folder / f"{day}.parquet", replace(some[i % len(some)], days=(day,), sources=(day,)))
        for i, day in enumerate(dates)
    ]
