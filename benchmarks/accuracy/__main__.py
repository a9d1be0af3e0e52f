"""python -m benchmarks.accuracy [--repetitions 200] [--jobs 2] [--scenario NAME] [--peers]

Writes benchmarks/accuracy/results.json, adding to what is there, and docs/accuracy.md's tables.
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks.accuracy import page
from benchmarks.accuracy.scenarios import SCENARIOS
from rankdrift.core.files import write_text

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--scenario", choices=SCENARIOS, action="append")
    parser.add_argument("--peers", action="store_true", help="also those with an own environment")
    parser.add_argument("--page-only", action="store_true", help="only write the page again")
    asked = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in () if asked.page_only else asked.scenario or SCENARIOS:
        from benchmarks.accuracy import peers, trials

        start = time.perf_counter()
        found = trials.run(name, asked.repetitions, asked.jobs)
        if asked.peers and name == "ten-ranks":
            found["estimators"] |= peers.run(asked.repetitions, asked.jobs)
        found["seconds"] = time.perf_counter() - start
        results[name] = found
        write_text(RESULTS, json.dumps(results, indent=1) + "\n")
        print(page.in_short(name, found), flush=True)
    page.write(results)


if __name__ == "__main__":
    main()
