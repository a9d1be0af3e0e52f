"""A minute of the torture, on one core: see `make torture`; and that it tells what went wrong."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torture.apart import in_turn
from torture.kinds import REFUSED, RIGHT, Kind

from rankdrift.core.errors import BadLog

pytestmark = pytest.mark.slow


def test_a_minute_of_torture():
    tests = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "torture", "--minutes", "0.7", "--processes", "1", "--seed", "1"],
        cwd=tests, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| **all** |" in run.stdout


def _ends(rng, folder):
    how = folder.name
    if how == "1":
        raise BadLog("no log")
    if how == "2":
        os.kill(os.getpid(), 9)
    if how == "0":
        assert folder.is_dir() and not list(folder.glob("*.*"))
    return RIGHT


def test_a_death_is_of_one_attempt_and_the_others_follow():
    kind = Kind("ends", "", _ends, times=5, memory=None)
    found = [(name, outcome) for name, outcome, *_ in in_turn(kind, ["a", "b", "c", "d", "e"])]
    assert found == [("a", RIGHT), ("b", REFUSED), ("c", "died"), ("d", RIGHT), ("e", REFUSED)]


def _fails(rng, folder):
    if rng.random() < 2:
        return {}["no such key"]


def _sleeps(rng, folder):
    time.sleep(60)


def test_an_error_that_is_not_ours_is_wrong_and_a_hang_ends():
    ((_, outcome, said, _),) = in_turn(Kind("fails", "", _fails, times=1, memory=None), ["a"])
    assert outcome == "wrong" and said.startswith("KeyError at test_torture.py")
    ((_, outcome, _, _),) = in_turn(
        Kind("sleeps", "", _sleeps, times=1, seconds=0.2, memory=None), ["a"]
    )
    assert outcome == "no end"
