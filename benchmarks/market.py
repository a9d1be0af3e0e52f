"""Making a marketplace's log: rows a second, beside merely copying the log, and peak memory."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import logs, measure

DAYS = 10
MOST_GROWTH = 1.1  # peak memory of twice the rows over that of the rows, where days are large
COPY = (
    "import duckdb, sys; folder, copy = sys.argv[1:];"
    "duckdb.execute('SET preserve_insertion_order = false');"
    "duckdb.execute(f\"COPY (SELECT * FROM '{folder}/*.parquet') TO '{copy}' (FORMAT parquet)\")"
)


def run(rows: int) -> dict[str, Any]:
    """Of `rows`, half and a tenth of them without features, and of a tenth with all 25."""
    wanted = {
        f"{rows // 10:,}": (rows // 10, False),
        f"{rows // 2:,}": (rows // 2, False),
        f"{rows:,}": (rows, False),
        f"{rows // 10:,}, 25 features": (rows // 10, True),
    }
    found = {name: _measured(*options) for name, options in wanted.items()}
    _, half, whole, _ = (one["megabytes"] for one in found.values())
    measure.show(
        "Making a marketplace's log",
        ("impressions", "seconds", "million rows / s", "times a copy", "peak MB"),
        (
            (name, one["seconds"], one["rows a second"] / 1e6, one["ratio"], one["megabytes"])
            for name, one in found.items()
        ),
        f"{DAYS} days, each run in a process of its own, its start and imports included. The copy "
        "is DuckDB reading the same rows and writing them as Parquet again.\n"
        "A day that does not fit into 400 MB is put on disk before it is written.\n"
        f"Peak of {rows:,} rows over that of half of them: "
        f"{measure.verdict(whole / half, MOST_GROWTH)}.",
    )
    return found


def _measured(rows: int, features: bool) -> dict[str, float]:
    make = (
        "from rankdrift.simulate import market; import sys;"
        f"market(sys.argv[1], rows={rows}, days={DAYS}, features={features})"
    )
    logs.DATA.mkdir(exist_ok=True)
    scratch = tempfile.mkdtemp(dir=logs.DATA)
    try:
        made = measure.run(sys.executable, "-c", make, scratch).require()
        copied = measure.run(sys.executable, "-c", COPY, scratch, Path(scratch) / "copy").require()
    finally:
        shutil.rmtree(scratch)
    return {
        "seconds": made.seconds,
        "rows a second": rows / made.seconds,
        "ratio": made.seconds / copied.seconds,
        "megabytes": made.megabytes,
    }
