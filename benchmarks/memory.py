"""Peak memory of the command line: on a large log day by day, and when the pairs do not fit."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import logs, measure

MOST = 600  # MB at the peak, day by day
LIMIT = "1GB"  # for the log whose pairs do not fit


def run(rows: int) -> dict[str, Any]:
    large = Path(logs.drifting(rows)[0]).parent
    crowd = Path(logs.crowded(rows * 3 // 5)[0]).parent
    runs = {
        f"{rows:,} rows, --by day": _harvest(large, "--by", "day"),
        f"{rows * 3 // 5:,} crowded rows, --memory {LIMIT}": _harvest(crowd, "--memory", LIMIT),
        f"{rows * 3 // 5:,} crowded rows, no limit": _harvest(crowd),
    }
    by_day, limited, free = (done.megabytes for done in runs.values())
    measure.show(
        "Peak memory of `rankdrift harvest`",
        ("", "seconds", "peak MB"),
        ((name, done.seconds, done.megabytes) for name, done in runs.items()),
        f"Day by day, MB: {measure.verdict(by_day, MOST)}.\n"
        "On the crowded log every pair is shown twice and half of what is shown is clicked. With "
        f"the limit the run spilled to disk and finished, at {limited / free:.2f} of the memory.",
    )
    return {
        name: {"seconds": done.seconds, "megabytes": done.megabytes} for name, done in runs.items()
    }


def _harvest(log: Path, *options: str) -> measure.Run:
    command = Path(sys.executable).with_name("rankdrift")
    with tempfile.TemporaryDirectory(dir=logs.DATA) as scratch:
        target = Path(scratch) / ("days" if "--by" in options else "counts.parquet")
        return measure.run(command, "harvest", log, *options, "-o", target).require()
