"""A minute of the torture: see `make torture`."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_minute_of_torture():
    tests = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "torture", "--minutes", "1", "--seed", "1"],
        cwd=tests, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| **all** |" in run.stdout
