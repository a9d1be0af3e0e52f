"""make torture: whatever is tried ends in a right result or in an error in words.

python -m torture --minutes 60 --seed 1 (with tests on PYTHONPATH). Prints what was tried and what
failed; exit code 1 if anything did. In an hour each kind is tried as often as it says, in less time
less often. An attempt is known by its name: --only NAME tries that one again.
"""

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

# Threads do not survive a fork: none must be there before.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"):
    os.environ.setdefault(_name, "1")

from torture import artefacts, logs, originals, spark, verbs  # noqa: E402  # after that
from torture.apart import in_turn  # noqa: E402  # after that
from torture.kinds import KINDS, REFUSED, RIGHT  # noqa: E402  # after that

MODULES = (logs, spark, artefacts, verbs)  # in the order of the table
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
MEMORY_DISK, ROOM = Path("/dev/shm"), 8 << 30
SHOWN = 20  # failures, one by one


def main():
    parser = argparse.ArgumentParser(prog="torture")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--at-most", type=float, help="minutes for the same attempts, on a machine that others use"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--kinds", default="", help="only those whose names match this regular expression"
    )
    parser.add_argument("--only", metavar="NAME", help="one attempt, such as 'a damaged log/1/17'")
    parser.add_argument("--write-page", action="store_true", help=f"the table into {PAGE.name}")
    given = parser.parse_args()
    with _place() as place:
        originals.prepare(place)
        if given.only:
            print(*next(in_turn(KINDS[given.only.split("/")[0]], [given.only])))
            return
        begun = time.monotonic()
        results = torture(given, place)
        took = (time.monotonic() - begun) / 60
    text = table(results)
    print(text)
    if given.write_page:
        write_page(text, given, took)
    failures = [one for one in results if one["outcome"] not in (RIGHT, REFUSED)]
    for one in failures[:SHOWN]:
        print(f"\n--only '{one['name']}': {one['outcome']}\n{one['said'][:600]}")
    sys.exit(bool(failures))


@contextlib.contextmanager
def _place():
    """A folder for all files: in memory, where there is room, since disks are slow to sync."""
    if MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > ROOM:
        tempfile.tempdir = str(MEMORY_DISK)
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as place:
        os.chmod(place, 0o755)
        tempfile.tempdir = place
        yield Path(place)


def torture(given, place):
    """What became of each attempt: [{name, outcome, said, seconds}]."""
    batches = plan(given.minutes, given.seed, given.kinds)
    end = time.monotonic() + 60 * (given.at_most or given.minutes)
    fork = multiprocessing.get_context("fork")
    following = fork.Value("i", 0)
    lanes = [
        fork.Process(target=_lane, args=(batches, following, end, place / f"results-{i}"))
        for i in range(given.processes)
    ]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert not any(lane.exitcode for lane in lanes), "the torture itself failed"
    lines = "".join((place / f"results-{i}").read_text() for i in range(given.processes))
    return [json.loads(line) for line in lines.splitlines()]


def plan(minutes, seed, some=""):
    """[(kind, names of attempts)], all kinds evenly mixed, so that whenever the time is over each
    has had its share."""
    chance, placed = random.Random(seed), []
    for kind in KINDS.values():
        if minutes < kind.least or not re.search(some, kind.name):
            continue
        times = max(1, round(kind.times * minutes / 60))
        size = min(kind.together, max(1, times // 4) if kind.together < kind.times else times)
        starts = range(0, times, size)
        for i, start in enumerate(starts):
            names = [f"{kind.name}/{seed}/{n}" for n in range(start, min(start + size, times))]
            # Those that take long begin at once.
            when = 0.0 if kind.least else (i + chance.random()) / len(starts)
            placed.append((when, kind, names))
    return [(kind, names) for _, kind, names in sorted(placed, key=lambda one: one[0])]


def _lane(batches, following, end, path):
    """Take the next batch until there is none, or no time."""
    gc.freeze()  # or each fork collects, and so copies, all that is imported
    with path.open("w", buffering=1) as file:
        while time.monotonic() < end:
            with following.get_lock():
                at = following.value
                following.value += 1
            if at >= len(batches):
                return
            for name, outcome, said, seconds in in_turn(*batches[at], end):
                one = {"name": name, "outcome": outcome, "said": said, "seconds": seconds}
                file.write(json.dumps(one) + "\n")


def table(results):
    """As text for people, and for docs/reliability.md."""
    found, seconds, told = defaultdict(Counter), Counter(), defaultdict(list)
    for one in results:
        name = one["name"].split("/")[0]
        found[name][one["outcome"]] += 1
        seconds[name] += one["seconds"]
        if KINDS[name].times < 10:  # few enough to be told one by one
            told[name].append(f"{one['outcome']}: {one['said']}")
    lines = [
        "| tried | times | right | refused in words | failed | CPU seconds each |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in KINDS:
        if name in found:
            lines.append(_line(name, found[name], seconds[name]))
    lines.append(_line("**all**", sum(found.values(), Counter()), seconds.total()))
    hour = sum(KINDS[name].times * seconds[name] / found[name].total() for name in found)
    whole = f"\nAt these rates all that an hour is to hold takes {hour / 60:,.0f} CPU minutes."
    notes = [f"\n{name}: {'; '.join(each)}." for name, each in told.items()]
    return "\n".join([*lines, whole, *notes])


def _line(name, outcomes, seconds):
    times, right, refused = outcomes.total(), outcomes[RIGHT], outcomes[REFUSED]
    failed = times - right - refused
    each = seconds / times if times else 0.0
    return f"| {name} | {times:,} | {right:,} | {refused:,} | {failed:,} | {each:.2f} |"


def write_page(text, given, took):
    """The table, and what the run was, between the marks in the page."""
    said = (
        f"{took:.0f} minutes with seed {given.seed}, on {given.processes} "
        f"{'core' if given.processes == 1 else 'cores'}:"
    )
    page = PAGE.read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- run -->\n).*?(<!-- end of run -->)", re.S)
    assert marked.search(page), "the page has no marks"
    new = marked.sub(lambda match: f"{match[1]}{said}\n\n{text}\n\n{match[2]}", page)
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
