"""A harvest on Spark beside a bare scan by Spark, on this machine."""

from __future__ import annotations

from typing import Any

from benchmarks import logs, measure

SLOWEST = 5  # times a bare scan of the columns


def run(rows: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession, functions

    from rankdrift import harvest, read_log

    days = logs.drifting(rows)
    files = days[: len(days) // 5]
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

    def scan() -> None:
        log = session.read.parquet(*files)
        log.agg(*(functions.max(column) for column in columns)).collect()

    def count() -> None:
        harvest(read_log(files, engine="spark", session=session, **columns))

    try:
        scan()  # so that nobody's time has the start of Spark in it
        best = measure.fastest({"scan": scan, "harvest": count})
    finally:
        session.stop()
    ratio = best["harvest"] / best["scan"]
    measure.show(
        f"Harvest of {rows // 5:,} impressions on Spark, local[2]",
        ("", "seconds"),
        best.items(),
        f"The scan is max(column) of {', '.join(logs.COLUMNS)}. Taking turns, best of 3.\n"
        f"Harvest / scan: {measure.verdict(ratio, SLOWEST)}.",
    )
    return best | {"ratio": ratio}
