"""A harvest on Spark beside a bare scan by Spark, on this machine."""

from __future__ import annotations

from typing import Any

from benchmarks import logs, measure

SLOWEST = 5  # times a bare scan of the columns


def run(rows: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession, functions

    from rankdrift import harvest, read_log

    session = (
        SparkSession.builder.master("local[2]")
        .appName("rankdrift benchmarks")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", 8)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    columns = {column: column for column in logs.COLUMNS}

    def scan(files: list[str]) -> None:
        log = session.read.parquet(*files)
        log.agg(*(functions.max(column) for column in columns)).collect()

    def count(files: list[str]) -> None:
        harvest(read_log(files, engine="spark", session=session, **columns))

    def beside_scan(files: list[str]) -> dict[str, float]:
        best = measure.fastest({"scan": lambda: scan(files), "harvest": lambda: count(files)})
        return best | {"ratio": best["harvest"] / best["scan"]}

    days = logs.drifting(rows)
    first = days[: len(days) // 5]
    try:
        # So that nobody's time has the start of Spark in it: neither loading nor compiling.
        for _ in range(2):
            scan(first)
            count(first)
        timed = {f"{rows // 5:,}": beside_scan(first), f"{rows:,}": beside_scan(days)}
    finally:
        session.stop()
    measure.show(
        "Harvest on Spark, local[2], against a bare scan of the same columns",
        ("impressions", "scan s", "harvest s", "harvest / scan"),
        ((name, one["scan"], one["harvest"], one["ratio"]) for name, one in timed.items()),
        f"The scan is max(column) of {', '.join(logs.COLUMNS)}. Each twice to warm up, then taking "
        "turns, best of 3.\n"
        f"Harvest / scan: {measure.verdict(max(o['ratio'] for o in timed.values()), SLOWEST)}.",
    )
    return timed
