"""A harvest of a thousand million rows beside a scan of them: `make bench-large`.

Two logs, made by DuckDB itself: one in which pairs come again all day, and one in which hardly a
pair does, so that there is much to look up and little to find. A tenth of each is measured too: is
it linear? The logs stay under benchmarks/.data and take some 13 bytes a row, all together. Ratios
to the scan are of seconds, and of those of the processor, which hold on a busy machine, too.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import logs, measure

DAYS, DEPTH = 10, 50
QUERIES = {"pairs come again": 200_000, "hardly a pair does": 2_000_000_000}
BYTES, SPARE = 7, 5e9  # a row, and what must stay free
SECONDS, MEGABYTES = 60.0, 600.0  # wanted of a harvest of 10⁹ rows on two idle cores
LEAST_LINEAR = 1.3
SCAN = """
import json, sys, time
from benchmarks import peers
start, used = time.perf_counter(), time.process_time()
peers.scan(sys.argv[1:])
print(json.dumps([time.perf_counter() - start, time.process_time() - used]))
"""


def shown(rows: int, queries: int, day: int) -> str:
    """The rows of a day in SQL: results change places with their neighbours from search to search,
    and are clicked by rank and by how good they are."""
    searches = rows // DAYS // DEPTH
    return (
        f"WITH s AS (SELECT i + {day * searches} AS search, hash(i, {day}) AS h,"
        # The most common queries are far more common than the others.
        f" ({queries} * pow((hash(i, {day}, 1) >> 11) / pow(2, 53), 3))::BIGINT AS q"
        f" FROM range({searches}) AS x(i)),"
        " r AS (SELECT *, r AS rank, q * 64 + xor(r - 1, (h % 4)::BIGINT) AS doc"
        f" FROM s, range(1, {DEPTH + 1}) AS y(r))"
        " SELECT 'words of query ' || q AS query, doc, rank::SMALLINT AS rank,"
        " ((hash(search, rank) >> 11) / pow(2, 53) < 0.15 / sqrt(rank) * (hash(doc) % 100) / 100)"
        f"::TINYINT AS click, DATE '2024-01-01' + {day} AS day, search FROM r"
    )


def made(rows: int, name: str) -> list[str]:
    """The files of a log, a day each; made now unless they are there."""
    queries = QUERIES[name]

    def make(folder: Path) -> None:
        free = shutil.disk_usage(folder).free
        if free < rows * BYTES + SPARE:
            raise SystemExit(f"{rows * BYTES / 1e9:.0f} GB are needed, {free / 1e9:.0f} are free.")
        with duckdb.connect() as database:
            database.execute("SET enable_progress_bar = false")
            database.execute("SET preserve_insertion_order = false")
            database.execute("SET memory_limit = '4GB'")
            for day in range(DAYS):
                target = f"'{folder}/day-{day}.parquet' (FORMAT parquet, COMPRESSION snappy)"
                database.execute(f"COPY ({shown(rows, queries, day)}) TO {target}")

    return logs.kept(f"large-{rows}-{queries}", shown(rows, queries, 0), make)


def run(rows: int) -> dict[str, Any]:
    """Measure a log of so many rows, and one of a tenth of them."""
    found: dict[str, Any] = {}
    command = Path(sys.executable).with_name("rankdrift")
    for name in QUERIES:
        for size in (rows // 10, rows):
            start = time.perf_counter()
            files = made(size, name)
            making = time.perf_counter() - start
            scanned = measure.run(sys.executable, "-c", SCAN, *files).require().stdout
            scan, scan_processor = json.loads(scanned)
            with tempfile.TemporaryDirectory() as folder:
                words = (*files, "--by", "day", "-o", folder, "--json", "-q")
                done = measure.run(command, "harvest", *words)
                if done.status > 1:  # 1: a small log in which no pair came again at all
                    done.require()
                counts = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
            told = json.loads(done.stdout)
            found[f"{size:,}, {name}"] = {
                "rows": size,
                "making": making,
                "bytes": sum(Path(file).stat().st_size for file in files),
                "scan": scan,
                "scan processor": scan_processor,
                "harvest": done.seconds,
                "processor": done.processor,
                "ratio": done.seconds / scan,
                "processor ratio": done.processor / scan_processor,
                "megabytes": done.megabytes,
                "pairs": sum(day["pairs"] for day in told["days"]),
                "clicks": told["funnel"]["input"]["clicks"],
                "bytes of counts": counts,
            }
    tenth, whole = (
        [one for one in found.values() if one["rows"] == size] for size in (rows // 10, rows)
    )
    linear = max(b["harvest"] / 10 / a["harvest"] for a, b in zip(tenth, whole, strict=True))
    columns = ("making", "scan", "harvest", "ratio", "processor ratio", "megabytes", "pairs")
    measure.show(
        f"Harvest of {rows:,} impressions, --by day, in a process of its own",
        ("impressions", "made in s", "scan s", "harvest s", "/ scan", "/ CPU", "MB", "pairs"),
        ((name, *(one[column] for column in columns)) for name, one in found.items()),
        "One run each, from the start of the process; the scan in another, without its start.\n"
        f"Seconds: {measure.verdict(max(one['harvest'] for one in whole), SECONDS * rows / 1e9)}; "
        f"MB: {measure.verdict(max(one['megabytes'] for one in whole), MEGABYTES)}; "
        f"time a row, large / small: {measure.verdict(linear, LEAST_LINEAR)}.",
    )
    print("For docs/scale.md:")
    for name, one in found.items():
        rate = one["rows"] / one["harvest"]
        print(
            f"| DuckDB, {name} | {rate / 1e6:.0f} | {10**12 / 365 / rate / 60:.1f} min |"
            f" {one['megabytes'] / 1000:.1f} GB | {one['ratio']:.1f} scans |"
        )
    return found


if __name__ == "__main__":
    run(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**9)
