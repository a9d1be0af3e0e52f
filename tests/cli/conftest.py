"""Small logs, and two ways to run the command line: in this process, and for real."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

from rankdrift.cli import VERBS, run
from rankdrift.cli import rankdrift as group
from rankdrift.simulate import searches

# Loaded now: a module that is first imported while a test has put a stand-in in the place of
# `diagnose` or `read_log` would keep the stand-in for good.
for module in ("rankdrift.pipeline", "rankdrift.monitoring.running"):
    import_module(module)
for verb in VERBS:
    group.get_command(None, verb)

COMMAND = (sys.executable, "-m", "rankdrift.cli")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rankdrift(capsys):
    """Run in this process, which is quick."""

    def call(*words):
        capsys.readouterr()
        code = run([str(word) for word in words])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return call


@pytest.fixture
def shell(tmp_path):
    """Run as a command of its own."""

    def call(*words, **options):
        environment = {**os.environ, **options.pop("env", {})}
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment,
            **options,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def log(tmp_path_factory) -> Path:
    """A folder with two days of searches, enough for a verdict."""
    folder = tmp_path_factory.mktemp("log")
    searches(folder, rows=60_000, days=2, queries=20, depth=60, click_rate=0.6)
    return folder


@pytest.fixture
def write_log(tmp_path):
    """Write a log from rows given as dictionaries."""

    def write(rows, name="log.parquet"):
        path = tmp_path / name
        (tmp_path / "rows.json").write_text("\n".join(map(json.dumps, rows)))
        with duckdb.connect() as con:
            con.execute(f"COPY (FROM read_json('{tmp_path}/rows.json')) TO '{path}'")
        return path

    return write


def shows(moves, **more):
    """Rows of one query: each doc at each of its ranks, clicked at the first of them."""
    return [
        {"query": "lamp", "doc": doc, "rank": rank, "click": int(i == 0), **more}
        for doc, ranks in enumerate(moves)
        for i, rank in enumerate(ranks)
    ]


@pytest.fixture
def still_log(write_log):
    """A log in which nothing ever moves."""
    return write_log(shows([[1], [2], [3]]))


@pytest.fixture
def moving_log(write_log):
    """Ranks 1 and 2 trade places, too rarely for an estimate."""
    return write_log(shows([[1, 2], [2, 1]]))
