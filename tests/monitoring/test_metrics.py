"""The numbers of a run for those who watch: Prometheus and MLflow."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rankdrift.monitoring.metrics import metrics_text
from rankdrift.monitoring.record import DayRecord, Outcome, Record, State, Step
from rankdrift.monitoring.results import Finished

SOURCE = Path(__file__).parents[2] / "src"
MLFLOW = os.environ.get("RANKDRIFT_MLFLOW")
SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z]+)="((?:[^"\\\n]|\\.)*)"\})? (\S+)')

DAY = DayRecord("2024-01-01", "days/2024-01-01.parquet", "counted", True, 100, 20, 30, "0" * 32)
HARVEST = Step("harvest", State.DONE, "1 day counted", "2024-01-02T03:30:00Z", 1.25)
CURVE = {"curve": [{"rank": 1, "propensity": 1.0, "low": 1.0, "high": 1.0},
                   {"rank": 5, "propensity": 0.5, "low": 0.4, "high": None}]}  # fmt: skip
LATEST = {
    "ended": "1970-01-01T00:01:40Z",
    "outcome": "good",
    "steps": [
        {"name": "estimate", "state": "done", "words": "", "started": "", "seconds": 1.0,
         "files": [], "numbers": CURVE, "outcome": "good", "reason": ""},
        {"name": "diagnose", "state": "done", "words": "", "started": "", "seconds": 1.0,
         "files": [], "numbers": {"verdict": "caution"}, "outcome": "good", "reason": ""},
    ],
}  # fmt: skip


def record(**changes):
    usual = {"ended": "1970-01-01T00:00:10Z", "seconds": 3.5, "days": (DAY,), "steps": (HARVEST,)}
    return Record(
        "2024-01-02T033000Z-abcdef", Outcome.DRIFT, "2024-01-02T03:30:00Z", **usual | changes
    )


def parse(text):
    """The exposition format by hand, {(name, label's value): number}, each after HELP and TYPE."""
    found, declared = {}, []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, _ = line.split(" ", 3)
            declared = [*declared, name] if kind == "HELP" else declared
            assert name == declared[-1] and (kind == "HELP" or line.endswith(" gauge"))
            continue
        name, _, value, number = SAMPLE.fullmatch(line).groups()
        assert name == declared[-1] and (name, value) not in found
        found[name.removeprefix("rankdrift_"), value] = float(number)
    assert len(declared) == len({*declared})
    return found


def test_every_number_is_there_once():
    text = metrics_text(record(), Finished(Path(), LATEST))
    found = parse(text)
    assert {value: n for (name, value), n in found.items() if name == "run_outcome" and n} == {
        "drift": 1
    }
    assert found["run_exit_code", None] == 1 and found["run_timestamp_seconds", None] == 10
    assert (
        found["run_duration_seconds", None] == 3.5 and found["run_step_seconds", "harvest"] == 1.25
    )
    assert found["days", "counted"] == 1 and found["days", "left out"] == 0
    assert [found[name, None] for name in ("rows", "pairs", "clicks")] == [100, 20, 30]
    assert (
        found["latest_timestamp_seconds", None] == 100 and found["latest_verdict", "caution"] == 1
    )
    assert found["propensity", "5"] == 0.5 and found["propensity_low", "5"] == 0.4
    assert ("propensity_high", "5") not in found  # not known
    first = parse(metrics_text(record(), None))  # before there is any latest
    assert not [name for name, _ in first if name.startswith(("latest", "propensity"))]


def test_prometheus_reads_them():
    parser = pytest.importorskip("prometheus_client.parser")
    text = metrics_text(record(), Finished(Path(), LATEST))
    read = {
        (sample.name.removeprefix("rankdrift_"), next(iter(sample.labels.values()), None)): (
            sample.value
        )
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert read == parse(text)


def test_a_run_writes_them_where_it_is_told_to(night, one_day, tmp_path):
    ran = night("--metrics", "textfile/rankdrift.prom")
    text = (tmp_path / "textfile" / "rankdrift.prom").read_text()
    assert text == (ran.root / "metrics.prom").read_text()
    found = parse(text)
    assert found["run_outcome", "good"] == 1 and found["rows", None] == ran.record["rows"] > 0
    wrong = night("--rank", "nothing")
    after = parse((wrong.root / "metrics.prom").read_text())
    assert after["run_outcome", "wrong"] == 1 and after["run_exit_code", None] == 2
    assert after["latest_timestamp_seconds", None] == found["latest_timestamp_seconds", None]


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is not None, reason="mlflow is here")
def test_without_mlflow_nothing_is_begun(night, tmp_path):
    ran = night("--mlflow", "nightly")
    assert ran.code == 2 and "pip install 'rankdrift[mlflow]'" in ran.err
    assert not ran.root.exists()


LOOK = """
import json, sys
from pathlib import Path
from mlflow import MlflowClient
client = MlflowClient()
found = client.get_experiment_by_name(sys.argv[1])
runs = client.search_runs([found.experiment_id])
print(json.dumps([
    {"metrics": run.data.metrics, "params": run.data.params, "tags": run.data.tags,
     "status": run.info.status, "curve": {m.step: m.value for m in
         client.get_metric_history(run.info.run_id, "propensity")},
     "files": {f.path: Path(client.download_artifacts(run.info.run_id, f.path)).read_text()
               for f in client.list_artifacts(run.info.run_id)}}
    for run in runs]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not MLFLOW, reason="RANKDRIFT_MLFLOW names no Python that has MLflow")
def test_mlflow_gets_a_run_once(log, tmp_path):
    env = os.environ | {
        "PYTHONPATH": str(SOURCE),
        "MLFLOW_TRACKING_URI": (tmp_path / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }

    def python(*words):
        done = subprocess.run([MLFLOW, *words], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    words = ("-m", "rankdrift.cli", "run", "log/*.parquet", "--mlflow", "nightly", "-q", "--json")
    first, again = (json.loads(python(*words)) for _ in range(2))
    assert [step["state"] for step in (first["steps"][-1], again["steps"][-1])] == [
        "done", "unchanged",
    ]  # fmt: skip
    [run] = json.loads(python("-c", LOOK, "nightly"))
    latest = tmp_path / "runs" / "latest"
    assert run["status"] == "FINISHED" and run["tags"]["rankdrift.run"] == first["id"]
    assert run["metrics"]["rows"] == first["rows"] and run["params"]["estimate.curve"] == "auto"
    numbers = next(s["numbers"] for s in first["steps"] if s["name"] == "estimate")["curve"]
    assert run["curve"] == {str(at["rank"]): at["propensity"] for at in numbers}
    assert run["files"] == {
        name: (latest / name).read_text()
        for name in ("propensities.json", "diagnosis.json", "report.html", "run.json")
    }
    # A run that looked for drift has that among its files, too.
    looked = shutil.copytree(latest, tmp_path / "looked" / first["id"])
    (looked / "drift.json").write_text('{"alarm": false}\n')
    log_it = "import sys; from pathlib import Path; from rankdrift.monitoring.mlflow_run import *;"
    python("-c", f"{log_it} print(log_run(sys.argv[1], Path(sys.argv[2])))", "drift", str(looked))
    [with_drift] = json.loads(python("-c", LOOK, "drift"))
    assert with_drift["files"] == {**run["files"], "drift.json": '{"alarm": false}\n'}
    # MLflow that cannot be reached spoils nothing, and is told.
    env["MLFLOW_TRACKING_URI"] = "nonsense://nowhere"
    third = json.loads(python(*words))
    assert third["exit_code"] == 0 and third["steps"][-1]["state"] == "failed"
    assert "MLflow did not take the run" in third["steps"][-1]["reason"]
