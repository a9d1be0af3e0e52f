"""Measure rankdrift: python -m benchmarks [harvest | memory | spark | estimate | evaluate | …]."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path

from benchmarks import (
    clickmodels,
    coverage,
    estimate,
    evaluate,
    formats,
    harvest,
    judging,
    market,
    max_shown,
    memory,
    rankers,
    rivals,
    spark,
    steps,
    year,
)
from rankdrift.core.files import write_text

RESULTS = Path(__file__).with_name("results.json")
BENCHMARKS = {
    "harvest": harvest.run,
    "formats": formats.run,
    "columns": harvest.run_with_columns,
    "memory": memory.run,
    "max_shown": max_shown.run,
    "spark": spark.run,
    "estimate": estimate.run,
    "evaluate": evaluate.run,
    "judging": judging.run,
    "steps": steps.run,
    "year": year.run,
    "clickmodels": clickmodels.run,
    "coverage": coverage.run,
    "rivals": rivals.run,
    "market": market.run,
    "rankers": rankers.run,
}
LONG = ("coverage", "market", "rankers")  # only when asked for by name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("which", nargs="?", choices=[*BENCHMARKS, "all"], default="all")
    parser.add_argument(
        "--rows", type=int, default=100_000_000, help="impressions of the large log (%(default)s)"
    )
    asked = parser.parse_args()
    start = time.perf_counter()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, run in BENCHMARKS.items():
        if asked.which == name or (asked.which == "all" and name not in LONG):
            results[name] = {"rows": asked.rows, "machine": _machine(), "measured": run(asked.rows)}
            write_text(RESULTS, json.dumps(results, indent=2) + "\n")
    print(f"{time.perf_counter() - start:.0f} seconds in all; the numbers are in {RESULTS}.")


def _machine() -> dict[str, object]:
    packages = ("rankdrift", "duckdb", "pyspark", "polars", "pandas", "numpy", "scipy", "choix")
    return {
        "processors": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in packages},
    }


if __name__ == "__main__":
    main()
