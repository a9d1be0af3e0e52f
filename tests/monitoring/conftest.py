"""A log of three days in which the assumptions hold, and ways to run the night job on it."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from rankdrift.cli import run
from rankdrift.monitoring.record import RECORD_SCHEMA
from rankdrift.simulate import world

LAST = "last-run.json"


@dataclass(frozen=True)
class Ran:
    """What a run left, and said."""

    code: int
    out: str
    err: str
    root: Path

    @property
    def record(self):
        found = json.loads((self.root / LAST).read_text())
        jsonschema.validate(found, RECORD_SCHEMA)
        return found

    @property
    def steps(self):
        return {step["name"]: step for step in self.record["steps"]}

    @property
    def results(self):
        """Names of the folders of results."""
        return sorted(path.name for path in self.root.glob("20*"))

    @property
    def latest(self):
        link = self.root / "latest"
        return link.readlink().name if link.is_symlink() else None


@pytest.fixture(scope="session")
def three_days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nights") / "log"
    world("valid", pairs=1500, ranks=6, days=3, queries=200).write(folder)
    (folder / "truth.json").unlink()
    return folder


@pytest.fixture
def log(three_days, tmp_path, monkeypatch):
    """A copy of it that may be changed, in the folder where everything runs."""
    shutil.copytree(three_days, tmp_path / "log")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "log"


@pytest.fixture
def night(log, tmp_path, capsys, monkeypatch):
    """Run it, in this process. With another title results are others, and nothing is recounted."""

    for tool in ("AIRFLOW", "MLFLOW"):  # where the tests find them, which is no setting
        monkeypatch.delenv(f"RANKDRIFT_{tool}", raising=False)

    def call(*words, log="log/*.parquet", title=""):
        capsys.readouterr()
        monkeypatch.setenv("RANKDRIFT_REPORT_TITLE", title)
        monkeypatch.setenv("RANKDRIFT_THREADS", "1")  # there are but few rows
        code = run(["run", *([log] if log else []), *map(str, words)])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err, tmp_path / "runs")

    return call


@pytest.fixture
def one_day(log, only_harvest):
    """The shortest run: one day, and steps that take no time."""
    for path in sorted(log.iterdir())[1:]:
        path.unlink()
    return only_harvest


@pytest.fixture
def only_harvest(monkeypatch):
    """Steps that take no time: what is tested is not in them."""
    from rankdrift.monitoring import steps

    def curve(night):
        (night.folder / steps.CURVE).write_text("{}")
        return steps.Done("a curve", (steps.CURVE,))

    short = {"estimate": curve}
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", short)
    return short
