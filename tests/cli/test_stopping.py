"""Ctrl-C where libraries do not let it through."""

import subprocess
import sys

import pytest

SWALLOWED = """
import os, signal, sys, time
from rankdrift.cli import stopping
stopping.listen()
stopping.begin()
try:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except BaseException:
        {swallow}
    time.sleep(30)
except KeyboardInterrupt:
    print("stopped")
stopping.end(130)
"""


@pytest.mark.parametrize(
    "swallow", ["pass", "raise ImportError('numpy') from None", "time.sleep(2.5); raise"]
)
def test_it_is_insisted_on_and_does_not_disturb_what_tidies_up(swallow):
    code = SWALLOWED.format(swallow=swallow)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=25
    )
    if "ImportError" in swallow:  # an error that says nothing of it; the run knows what was asked
        assert run.returncode == 1 and "ImportError" in run.stderr
    else:
        assert (run.returncode, run.stdout, run.stderr) == (130, "stopped\n", "")
