"""A harvest on Spark beside a bare scan by Spark, on this machine."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks import logs, measure

SLOWEST = 5  # times a bare scan of the columns


def run(rows: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession, functions

    from rankdrift import harvest, read_log
    from rankdrift.log.engines.java import java

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("rankdrift benchmarks")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", 8)
        .config("spark.log.level", "ERROR")
    )
    with java():
        session = builder.getOrCreate()
    columns = {column: column for column in logs.COLUMNS}

    def scan(files: list[str]) -> None:
        log = session.read.parquet(*files)
        log.agg(*(functions.max(column) for column in columns)).collect()

    def count(files: list[str]) -> None:
        harvest(read_log(files, engine="spark", session=session, **columns))

    days = logs.drifting(rows)
    first = days[: len(days) // 5]
    sizes = {f"{rows // 5:,}": first, f"{rows:,}": days}
    try:
        # So that nobody's time has the start of Spark in it: neither loading nor compiling.
        for _ in range(2):
            scan(first)
            count(first)
        tasks = {
            f"{what.__name__} {name}": partial(what, files)
            for name, files in sizes.items()
            for what in (scan, count)
        }
        best = measure.fastest(tasks)
    finally:
        session.stop()
    timed = {
        name: {"scan": one, "harvest": other, "ratio": other / one}
        for name in sizes
        for one, other in [(best[f"scan {name}"], best[f"count {name}"])]
    }
    measure.show(
        "Harvest on Spark, local[2], against a bare scan of the same columns",
        ("impressions", "scan s", "harvest s", "harvest / scan"),
        ((name, one["scan"], one["harvest"], one["ratio"]) for name, one in timed.items()),
        f"The scan is max(column) of {', '.join(logs.COLUMNS)}. Each twice to warm up, then taking "
        "turns, best of 3.\n"
        f"Harvest / scan: {measure.verdict(max(o['ratio'] for o in timed.values()), SLOWEST)}.",
    )
    return timed
