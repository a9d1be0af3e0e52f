"""Temporary folders: those of the living stay, whoever they are; those of the killed go."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from rankdrift.core import scratch
from rankdrift.core.scratch import Scratch, remove_abandoned

HOLD = (
    "from rankdrift.core.scratch import Scratch; s = Scratch(); print(s.path, flush=True); input()"
)
LONG_AGO = time.time() - 2 * 24 * 3600


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def held(*before):
    """A process with a folder, and the folder."""
    run = subprocess.Popen(
        [*before, sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return run, run.stdout.readline().strip()


def test_the_folder_goes_with_its_owner(place):
    mine = Scratch()
    (mine.path / "spilled").write_text("x")
    path = mine.path
    del mine
    assert not path.exists()


def test_the_folder_of_a_killed_run_goes_and_that_of_a_living_one_stays(place):
    living, kept = held()
    killed, left = held()
    mine = Scratch()
    killed.kill()
    killed.wait()
    assert [str(path) for path in remove_abandoned()] == [left]
    assert os.path.isdir(kept) and mine.path.is_dir()
    living.communicate("\n", timeout=60)
    assert not os.path.exists(kept)


def test_the_number_of_the_process_does_not_matter(place):
    """In a namespace of its own a process may have a number that nobody has here."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], check=False).returncode:
        # Only who may make namespaces can see one: root here and in containers that allow it.
        pytest.skip("needs the right to make a namespace")
    living, kept = held(*apart)
    assert remove_abandoned() == [] and os.path.isdir(kept)
    living.communicate("\n", timeout=60)


def test_without_locks_only_what_is_old_goes(place, monkeypatch):
    monkeypatch.setattr(scratch, "fcntl", None)
    mine = Scratch()
    assert remove_abandoned() == []
    for name in ("old", "new"):
        folder = place / f"{scratch._PREFIX}{name}"
        folder.mkdir()
        (folder / "spilled").write_text("x")
        os.utime(folder, (LONG_AGO, LONG_AGO))
        if name == "old":
            os.utime(folder / "spilled", (LONG_AGO, LONG_AGO))
    assert [path.name for path in remove_abandoned()] == [f"{scratch._PREFIX}old"]
    assert mine.path.is_dir()


def test_what_was_killed_before_it_had_a_lock_goes_a_minute_later(place):
    for name, inside in (("empty", ()), ("begun", ("lock-new",)), ("full", ("lock-new", "data"))):
        folder = place / f"{scratch._PREFIX}{name}"
        folder.mkdir()
        for file in inside:
            (folder / file).touch()
    assert remove_abandoned() == []
    for path in sorted(place.rglob("*"), reverse=True):
        os.utime(path, (time.time() - 61, time.time() - 61))
    left = [path.name.removeprefix(scratch._PREFIX) for path in remove_abandoned()]
    assert left == ["begun", "empty"]


def test_a_link_or_a_pipe_there_is_left_alone(place):
    precious = place / "precious"
    precious.mkdir()
    (place / f"{scratch._PREFIX}link").symlink_to(precious)
    folder = place / f"{scratch._PREFIX}pipe"
    folder.mkdir()
    os.mkfifo(folder / "lock")
    assert remove_abandoned() == [] and precious.is_dir()
