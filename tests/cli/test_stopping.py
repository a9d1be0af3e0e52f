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


# What runs as `rankdrift formats`, in which Ctrl-C comes.
IN_A_RUN = """
import os, signal, sys, time
from rankdrift.cli import running, stopping
from rankdrift.core.files import replacing
stopping.listen()

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)

{how}
running.run_and_exit(["formats", "--quiet"])
"""
TAKEN_APART = """
class Library:
    def __del__(self):
        os.abort()

def main(*args, **options):
    held = Library()
    interrupted()

running.rankdrift.main = main
"""
UNFINISHED = """
def main(*args, **options):
    global writing
    writing = replacing("result.txt")
    writing.__enter__().write_text("half of")
    interrupted()

running.rankdrift.main = main
"""
AT_THE_END = """
end = stopping.end

def late(code):
    stopping.end = end
    interrupted()

stopping.end = late
"""


@pytest.mark.parametrize(
    "how", [TAKEN_APART, UNFINISHED, AT_THE_END], ids=["taken apart", "unfinished", "at the end"]
)
def test_a_stopped_run_is_not_taken_apart_leaves_nothing_and_has_one_word(how, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", IN_A_RUN.format(how=how)],
        capture_output=True, text=True, check=False, timeout=25, cwd=tmp_path,
    )  # fmt: skip
    assert (run.returncode, run.stderr.strip()) == (130, "Stopped.")
    assert not list(tmp_path.iterdir())
