"""Nothing heavy is loaded before it is needed. Judged by modules, as time depends on the day."""

import os
import subprocess
import sys

import pytest

HEAVY = {"numpy", "duckdb", "scipy", "rich", "jinja2", "altair", "pandas", "polars", "pyarrow"}


def loaded(code):
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(told.stderr.split())


def test_import_rankdrift_loads_next_to_nothing():
    base = loaded("from importlib import import_module\nfrom typing import TYPE_CHECKING")
    more = loaded("import rankdrift") - base
    assert not HEAVY & more
    assert more == {"rankdrift"}


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["inspect", "--help"], ["harvest", "--help"], ["merge", "--help"],
     ["sql", "--help"], ["demo", "--help"], ["no-such-verb"]],
)  # fmt: skip
def test_help_loads_nothing_heavy(words):
    assert not HEAVY & loaded(f"from rankdrift.cli import run\nrun({words!r})")


@pytest.mark.parametrize(
    ("given", "policy"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")]
)
def test_threads_wait_without_keeping_the_processor(given, policy):
    """LightGBM reads it when it is loaded, so it must be there before."""
    code = (
        "import atexit, os\n"
        "from rankdrift.cli import main\n"
        "atexit.register(lambda: print(os.environ['OMP_WAIT_POLICY']))\n"
        "main(['--version'])"
    )
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env | given, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == policy


def test_the_help_teaches_the_flow(rankdrift):
    told = rankdrift("--help")
    assert told.code == 0 and told.err == ""
    verbs = ["demo", "inspect", "harvest", "merge", "counts", "sql", "import-counts"]
    listed = told.out.split("Verbs:")[1].split("\n")
    listed = [line.split()[0] for line in listed if line.strip()]
    assert [verb for verb in listed if verb in verbs] == verbs
    assert "+--harvest" in told.out and told.out.isascii()
    assert max(map(len, told.out.splitlines())) <= 88


def test_version(rankdrift):
    from rankdrift import __version__

    assert rankdrift("--version").out == f"rankdrift {__version__}\n"


def test_without_a_verb_there_is_help(rankdrift):
    done = rankdrift()
    assert done.code == 2
    assert "Verbs:" in done.err
