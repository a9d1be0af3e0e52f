"""The obvious ways to find the usable pairs, to be run in a process of their own.

    python -m benchmarks.peers "Polars group_by" FILE...

prints the seconds taken and the answer as JSON. The answer is how many pairs of query, doc and day
were shown at two ranks or more and clicked, with their appearances and clicks. A harvest does more:
it collects the ranks, splits by query bucket and accounts for every row that was dropped.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable

KEYS = ["query", "doc", "day"]


def scan(files: list[str], more: Iterable[str] = ()) -> None:
    """DuckDB reads every column that a harvest reads, and more, and does nothing with it."""
    # From the statistics of Parquet it would know the greatest values without reading one.
    import duckdb

    from benchmarks.logs import COLUMNS

    picks = ", ".join(f'max("{column}")' for column in (*COLUMNS, *more))
    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        database.execute("SET disabled_optimizers = 'statistics_propagation'")
        database.execute(f"SELECT {picks} FROM read_parquet($1)", [files]).fetchall()


def rankdrift(files: list[str], **more: str) -> tuple[int, int, int]:
    from benchmarks.logs import COLUMNS
    from rankdrift import harvest, read_log

    columns = {column: column for column in COLUMNS}
    used = harvest(read_log(files, **columns, **more)).funnel.used
    return used.pairs, used.rows, used.clicks


def group_by(files: list[str]) -> tuple[int, int, int]:
    return _group_by(files, "")


def group_by_collecting(files: list[str]) -> tuple[int, int, int]:
    """The same and the ranks that the method needs, as a harvest collects them."""
    return _group_by(files, ", list_sort(list(rank * 2 + click)) AS appearances")


def _group_by(files: list[str], collected: str) -> tuple[int, int, int]:
    import duckdb

    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        database.execute(
            f"CREATE TABLE pairs AS SELECT {', '.join(KEYS)}, count(*) AS shown,"
            f" sum(click) AS clicks{collected} FROM read_parquet($1) GROUP BY {', '.join(KEYS)}"
            " HAVING min(rank) < max(rank) AND sum(click) > 0",
            [files],
        )
        answer = "SELECT count(*), sum(shown)::BIGINT, sum(clicks)::BIGINT FROM pairs"
        pairs, shown, clicks = database.execute(answer).fetchall()[0]
        return pairs, shown, clicks


def polars(files: list[str]) -> tuple[int, int, int]:
    import polars as pl

    rank, click = pl.col("rank"), pl.col("click")
    pairs = (
        pl.scan_parquet(files)
        .group_by(KEYS)
        .agg(rank.min().alias("low"), rank.max().alias("high"), pl.len(), click.sum())
        .filter(pl.col("low") < pl.col("high"), click > 0)
        .collect(engine="streaming")
    )
    return pairs.height, int(pairs["len"].sum()), int(pairs["click"].sum())


def pandas(files: list[str]) -> tuple[int, int, int]:
    import pandas as pd

    columns = [*KEYS, "rank", "click"]
    log = pd.concat([pd.read_parquet(file, columns=columns) for file in files])
    log["click"] = log["click"].astype("int64")
    pairs = log.groupby(KEYS, sort=False).agg(
        low=("rank", "min"), high=("rank", "max"), shown=("rank", "size"), clicks=("click", "sum")
    )
    pairs = pairs[(pairs["low"] < pairs["high"]) & (pairs["clicks"] > 0)]
    return len(pairs), int(pairs["shown"].sum()), int(pairs["clicks"].sum())


# What to import before the clock starts, and what to time.
PEERS: dict[str, tuple[str, Callable[[list[str]], tuple[int, int, int]]]] = {
    "rankdrift": ("rankdrift.log.engines.duckdb.engine", rankdrift),
    "DuckDB GROUP BY": ("duckdb", group_by),
    "DuckDB GROUP BY with ranks": ("duckdb", group_by_collecting),
    "Polars group_by": ("polars", polars),
    "pandas groupby": ("pandas", pandas),
}


if __name__ == "__main__":
    package, find = PEERS[sys.argv[1]]
    importlib.import_module(package)
    start = time.perf_counter()
    found = find(sys.argv[2:])
    json.dump({"seconds": time.perf_counter() - start, "answer": found}, sys.stdout)
