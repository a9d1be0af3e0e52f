"""make torture: whatever is tried ends in a right result or in an error in words.

python -m torture --minutes 60 --seed 1 (with tests on PYTHONPATH). Prints what was tried and what
failed; exit code 1 if anything did. An attempt is a process of its own, with 90 seconds, and is
known by its seed: --only SEED tries that one again and shows what it says.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from torture.attempts import ATTEMPTS, REFUSED, RIGHT, attempt

SECONDS = 90.0
SHOWN = 20  # failures, one by one


def main():
    parser = argparse.ArgumentParser(prog="torture")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if given.only is not None:
        print(*one(given.only))
        return
    found, failures = torture(given.minutes, given.seed)
    print(table(found))
    for seed, name, what in failures[:SHOWN]:
        print(f"\n--only {seed}: {name}\n{what[:600]}")
    sys.exit(bool(failures))


def torture(minutes, seed):
    """({name: Counter of outcomes}, [(seed, name, what was wrong)])."""
    end = time.monotonic() + 60 * minutes
    seeds = random.Random(seed)
    found, failures = {function.__name__: Counter() for function, _ in ATTEMPTS}, []
    while time.monotonic() < end:
        this = seeds.randrange(10**9)
        name, outcome, what = one(this)
        found[name][outcome] += 1
        if outcome not in (RIGHT, REFUSED):
            failures.append((this, name, what))
    return found, failures


def one(seed):
    """(name, outcome, what was wrong) of the attempt of this seed."""
    rng = random.Random(seed)
    functions, weights = zip(*ATTEMPTS, strict=True)
    (function,) = rng.choices(functions, weights)
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        return (function.__name__, *_apart(function, rng, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _apart(function, rng, folder):
    """In a process of its own, which may die or not end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        said = attempt(function, rng, folder)
        os.write(writer, json.dumps(said).encode()[:60_000])
        os._exit(0)
    os.close(writer)
    end, code = time.monotonic() + SECONDS, None
    while code is None and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if ended else None
        time.sleep(0.01)
    if code is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    if code is None:
        return "no end", f"not ended after {SECONDS:.0f} seconds"
    return json.loads(said) if said else ("died", f"exit code {code}")


def table(found):
    """As text for people, and for docs/reliability.md."""
    lines = ["| tried | times | right | refused in words | failed |", "|---|---:|---:|---:|---:|"]
    total = Counter()
    for name, outcomes in found.items():
        total += outcomes
        lines.append(_line(name.replace("_", " "), outcomes))
    return "\n".join([*lines, _line("**all**", total)])


def _line(name, outcomes):
    times, right, refused = outcomes.total(), outcomes[RIGHT], outcomes[REFUSED]
    return f"| {name} | {times:,} | {right:,} | {refused:,} | {times - right - refused:,} |"


if __name__ == "__main__":
    main()
