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
    crowd = rows * 3 // 5
    runs = {
        f"{rows:,} impressions, --by day": _harvest(logs.drifting(rows), "--by", "day"),
        f"{crowd // 10:,} crowded": _harvest(logs.crowded(crowd // 10)),
        f"{crowd:,} crowded, --memory {LIMIT}": _harvest(logs.crowded(crowd), "--memory", LIMIT),
    }
    by_day, tenth, _ = (done.megabytes for done in runs.values())
    measure.show(
        "Peak memory of `rankdrift harvest`",
        ("", "seconds", "peak MB"),
        ((name, done.seconds, done.megabytes) for name, done in runs.items()),
        f"Day by day, MB: {measure.verdict(by_day, MOST)}.\n"
        "In the crowded logs every pair is shown twice and half of what is shown is clicked, so "
        "little can be left out early. Going by a tenth of the log, all of it would take about "
        f"{10 * tenth / 1000:.1f} GB; with {LIMIT} it finished too, by spilling what does not fit.",
    )
    return {
        name: {"seconds": done.seconds, "megabytes": done.megabytes} for name, done in runs.items()
    }


def _harvest(log: list[str], *options: str) -> measure.Run:
    command = Path(sys.executable).with_name("rankdrift")
    with tempfile.TemporaryDirectory(dir=logs.DATA) as scratch:
        target = Path(scratch) / ("days" if "--by" in options else "counts.parquet")
        folder = Path(log[0]).parent
        return measure.run(command, "harvest", folder, *options, "-o", target).require()
