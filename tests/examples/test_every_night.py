"""The examples of schedulers do what they say: their commands are run, in a folder with the
settings beside them and a log."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rankdrift.cli import run
from rankdrift.simulate import world

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "every-night"
AIRFLOW = os.environ.get("RANKDRIFT_AIRFLOW")
SLOWEST = 300  # seconds
DAG_ID = "rankdrift_every_night"


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """The folder of a search team; one run is done, so that those of the examples are short."""
    folder = tmp_path_factory.mktemp("search")
    world("valid", pairs=700, ranks=4, days=1, queries=300).write(folder / "log")
    (folder / "rankdrift.toml").write_text((EXAMPLES / "rankdrift.toml").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["run", "-q"]) == 0
    return folder


@pytest.fixture
def environment(tmp_path):
    """With a command `rankdrift` that is this one."""
    command = tmp_path / "bin" / "rankdrift"
    command.parent.mkdir()
    source = shlex.quote(str(ROOT / "src"))
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={source} exec {shlex.quote(sys.executable)} -m rankdrift.cli "$@"\n'
    )
    command.chmod(0o755)
    return os.environ | {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


def shell(command, search, environment, code=0):
    """Run a line as a scheduler would; the record of it."""
    (search / "runs" / "last-run.json").unlink()
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=search, env=environment, capture_output=True, text=True, timeout=SLOWEST,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    record = json.loads((search / "runs" / "last-run.json").read_text())
    assert record["exit_code"] == code
    return record, done


@pytest.mark.slow
def test_cron(search, environment):
    lines = [x for x in (EXAMPLES / "crontab").read_text().splitlines() if x and x[0] != "#"]
    setting, entry = lines
    name, value = setting.split("=")
    assert name == "SEARCH" and value.startswith("/")
    *times, command = entry.split(None, 5)
    assert len(times) == 5 and "%" not in command  # which cron takes for the end of a line
    assert all(re.fullmatch(r"\*|\d+", each) for each in times)
    _, done = shell(command, search, environment | {"SEARCH": str(search)})
    assert done.stdout == done.stderr == ""
    told = [json.loads(line) for line in (search / "run.log").read_text().splitlines()]
    assert any(line.get("step") == "harvest" for line in told)


def bash_command():
    tree = ast.parse((EXAMPLES / "airflow_dag.py").read_text())
    words = [
        word for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords
    ]
    return next(word.value.value for word in words if word.arg == "bash_command")


@pytest.mark.slow
def test_the_command_of_the_airflow_operator(search, environment):
    record, done = shell(bash_command(), search, environment)
    assert record["outcome"] == "good" and json.loads(done.stderr.splitlines()[0])


@pytest.mark.slow
@pytest.mark.skipif(not AIRFLOW, reason="RANKDRIFT_AIRFLOW names no Python that has Airflow")
def test_airflow_runs_the_dag(search, environment, tmp_path):
    env = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
    env |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "SEARCH": str(search)}
    env |= {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__UNIT_TEST_MODE": "False"}
    env |= {"AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES)}
    program = str(Path(AIRFLOW).parent / "airflow")
    subprocess.run([program, "db", "migrate"], env=env, check=True, capture_output=True)
    (search / "runs" / "last-run.json").unlink()
    done = subprocess.run(
        [program, "dags", "test", DAG_ID, "2024-05-01"],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=SLOWEST,
    )  # fmt: skip
    assert done.returncode == 0 and "state=success" in done.stdout + done.stderr, done.stderr
    record = json.loads((search / "runs" / "last-run.json").read_text())
    assert record["outcome"] == "good"


@pytest.mark.slow
def test_github_actions(search, environment):
    yaml = pytest.importorskip("yaml")
    plain = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    assert len(plain[True]["schedule"][0]["cron"].split()) == 5  # YAML takes `on` for true
    steps = plain["jobs"]["run"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands[1] == "pip install rankdrift" and len(commands) == 3
    shell(commands[2], search, environment)
    # The counts of one run are there for the next, also if it ended with an alarm.
    kept = {
        step["uses"]: step for step in steps if step.get("uses", "").startswith("actions/cache")
    }
    restored, saved = kept["actions/cache/restore@v4"], kept["actions/cache/save@v4"]
    assert restored["with"]["path"] == saved["with"]["path"] == "runs" and saved["if"] == "always()"
    for path in next(s for s in steps if s.get("name") == "Results")["with"]["path"].split():
        assert (search / path).exists()


def test_a_checkout_has_the_times_at_which_days_were_committed(tmp_path):
    """So that days that are in the cache are not counted anew by the next run."""
    yaml = pytest.importorskip("yaml")
    plain = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    checkout, *_ = steps = plain["jobs"]["run"]["steps"]
    assert checkout["with"]["fetch-depth"] == 0
    [command] = [s["run"] for s in steps if s.get("name") == "Times of change, as committed"]
    place = tmp_path / "search"
    (place / "log").mkdir(parents=True)
    git = ["git", "-c", "user.name=shop", "-c", "user.email=shop@example.org"]
    subprocess.run([*git, "init", "-q", place], check=True)
    for number, name in enumerate(["2024-05-01.csv", "2024 05 02.csv"]):
        (place / "log" / name).write_text(f"{number}\n")
        when = {"GIT_COMMITTER_DATE": f"{1714600000 + number} +0000"}
        subprocess.run([*git, "add", "log"], cwd=place, check=True)
        subprocess.run([*git, "commit", "-qm", name], cwd=place, env=os.environ | when, check=True)
    subprocess.run([*git, "clone", "-q", place, tmp_path / "clone"], check=True)
    subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=tmp_path / "clone", check=True)
    there = {path.name: path.stat().st_mtime for path in (tmp_path / "clone" / "log").iterdir()}
    assert there == {"2024-05-01.csv": 1714600000, "2024 05 02.csv": 1714600001}


@pytest.mark.slow
def test_what_the_image_starts(search, environment):
    """The image itself is not built here: the words that it starts are run."""
    lines = (EXAMPLES / "Dockerfile").read_text().splitlines()
    told = dict(line.split(None, 1) for line in lines if line and line[0] != "#")
    assert list(told) == ["FROM", "RUN", "WORKDIR", "ENTRYPOINT", "CMD"]
    assert told["RUN"].endswith("rankdrift") and f"/srv/search:{told['WORKDIR']}" in lines[0]
    words = [*json.loads(told["ENTRYPOINT"]), *json.loads(told["CMD"])]
    shell(shlex.join(words), search, environment)


def test_the_settings_are_ones_that_there_are(search):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "reference" / "rankdrift.schema.json").read_text())
    found = tomllib.loads((EXAMPLES / "rankdrift.toml").read_text())
    jsonschema.validate(found, schema)
    assert (found["run"]["last"], found["report"]["queries"]) == (28, False)
