"""The night job: what is counted, what is made, what is kept, and what is told."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import jsonschema
import pytest

from rankdrift import Counts, Propensities, read_log
from rankdrift.core.version import __version__
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.monitoring import steps
from rankdrift.monitoring.record import EXIT_CODES, RECORD_SCHEMA, Outcome, stored_document
from rankdrift.monitoring.steps import Done


@pytest.mark.slow
def test_a_run_makes_what_the_verbs_make_one_by_one(night, log, capsys):
    ran = night("--judge")
    assert ran.code == 0 and ran.record["outcome"] == "good" and ran.latest == ran.record["id"]
    assert [step["name"] for step in ran.record["steps"]] == [
        "harvest", "appearances", "counts", "estimate", "diagnose", "judge", "drift", "report",
    ]  # fmt: skip
    folder = ran.root / "latest"
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
    whole = harvest(read_log("log/*.parquet"))
    counts = Counts.load(folder / "counts.parquet")
    curve = Propensities.load(folder / "propensities.json")
    assert (counts.n_pairs, counts.n_clicks, counts.funnel) == (
        whole.n_pairs, whole.n_clicks, whole.funnel,
    )  # fmt: skip
    assert curve.values == pytest.approx(estimate(whole).values, rel=1e-6)
    assert ran.record["rows"] == whole.funnel.rows
    assert ran.record["versions"]["rankdrift"] == __version__
    inner = json.loads((folder / "run.json").read_text())
    jsonschema.validate(inner, RECORD_SCHEMA)
    assert inner["key"] == ran.record["key"] and inner["outcome"] == "good"
    # Every file says which run made it, and of what; the digests are those of the record.
    content = {f["file"]: f["content"] for step in inner["steps"] for f in step["files"]}
    for name in ("counts.parquet", "propensities.json", "diagnosis.json", "judgments.parquet"):
        made = stored_document(folder / name)["lineage"]
        assert made["run"] == ran.latest and made["content"] == content[name]
        before = {file: digest for file, digest in made["inputs"].items() if file in content}
        assert before == {file: content[file] for file in before} and "days" in made["inputs"]
    assert "counts.parquet" in stored_document(folder / "propensities.json")["lineage"]["inputs"]
    page = (folder / "report.html").read_text()
    assert ran.latest in page and content["propensities.json"] in page
    day = stored_document(ran.root / "days" / "2024-01-01.parquet")
    assert day["lineage"]["run"] == ran.latest
    # What it leaves is for the other verbs too.
    from rankdrift.cli import run

    assert run(["report", str(folder), "-o", "again.html", "-q"]) == 0
    capsys.readouterr()
    # Nothing is new: nothing is made.
    again = night("--judge")
    assert again.code == 0 and again.record["unchanged"] and again.results == ran.results
    assert again.steps["harvest"]["numbers"] == {
        "counted": 0, "unchanged": 3, "kept": 0, "left_out": 0,
    }  # fmt: skip
    assert "nothing is new" in again.err


def test_results_that_were_damaged_are_made_anew(night, one_day):
    ran = night()
    first = ran.record["id"]
    (ran.root / first / "propensities.json").write_text("{ }")
    mended = night()
    assert mended.latest == mended.record["id"] != first and not mended.record["unchanged"]


def _without_digest(text):
    return json.dumps({k: v for k, v in json.loads(text).items() if k != "digest"})


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"outcome": "good"', '"outcome": "gone"', 1),
        lambda text: re.sub(r'"bytes": \d+', '"bytes": 7', text),
        lambda text: "[" * 5_000,
        lambda text: _without_digest(text),
    ],
)
def test_a_record_that_was_changed_is_none(night, one_day, change):
    ran = night()
    record = ran.root / ran.latest / "run.json"
    record.write_text(change(record.read_text()))
    again = night()
    assert again.code == 0 and not again.record["unchanged"] and len(again.results) == 2
    # It counts as old results all the same.
    (broken,) = {*again.results} - {again.latest}
    assert night("--keep", 1).record["pruned"] == [broken]


@pytest.mark.parametrize("name", [7, "2024-01-01T000000Z-../../elsewhere", None])
def test_what_is_left_of_a_stopped_run_is_looked_at(night, one_day, name, monkeypatch, tmp_path):
    """By nothing but its digest: it may lead anywhere."""

    def stopped(night):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", {"counts": stopped})
    ran = night()
    progress = ran.root / ".unfinished" / ".progress.json"
    progress.write_text(json.dumps({**json.loads(progress.read_text()), "run": name}))
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", one_day)
    again = night()
    assert again.code == 0 and again.record["attempts"] == 1 and again.latest == again.record["id"]


def test_only_new_and_changed_days_are_counted(night, log, only_harvest):
    third = log / "world-2024-01-03.parquet"
    shutil.move(third, log.parent)
    first = night()
    assert first.steps["harvest"]["numbers"]["counted"] == 2
    shutil.move(log.parent / third.name, third)
    os.utime(log / "world-2024-01-02.parquet", (1, 1))  # changed, as far as anybody can tell
    second = night()
    rows = second.record["rows"]
    states = {day["day"]: day["state"] for day in second.record["inputs"]["days"]}
    assert states == {
        "2024-01-01": "unchanged", "2024-01-02": "counted", "2024-01-03": "counted",
    }  # fmt: skip
    assert len(second.results) == 2 and second.latest == second.record["id"]
    # A day that the log has no more stays counted; of the last two days it is none.
    (log / "world-2024-01-01.parquet").unlink()
    third_run = night()
    assert third_run.steps["harvest"]["numbers"]["kept"] == 1
    assert third_run.record["rows"] == rows
    last = night("--last", 2)
    used = {day["day"]: day["used"] for day in last.record["inputs"]["days"]}
    assert used == {"2024-01-01": False, "2024-01-02": True, "2024-01-03": True}
    assert 0 < last.record["rows"] < rows
    # Counted in another way, it cannot be added to what is counted now.
    other = night("--max-rank", 5)
    assert other.steps["harvest"]["numbers"] == {
        "counted": 2, "unchanged": 0, "kept": 0, "left_out": 1,
    }  # fmt: skip
    assert "1 left out" in other.err


def test_no_day_before_the_one_that_is_said_is_used(night, log, only_harvest, tmp_path):
    night()
    file = tmp_path / "rankdrift.toml"
    file.write_text("[run]\nsince = 2024-01-02\n[drift]\nsince = '2024-01-01'\n")
    ran = night()
    used = {day["day"]: (day["state"], day["used"]) for day in ran.record["inputs"]["days"]}
    assert used == {
        "2024-01-01": ("unchanged", False),
        "2024-01-02": ("unchanged", True),
        "2024-01-03": ("unchanged", True),
    }
    settings = ran.record["settings"]
    assert settings["run"]["since"] == settings["drift"]["since"] == "2024-01-02"
    later = night("--since", "20240103")
    assert [day["used"] for day in later.record["inputs"]["days"]] == [False, False, True]
    late = night("--since", "2024-01-04")
    assert late.code == 2 and late.record["outcome"] == "wrong"
    assert "The newest day is 2024-01-03, and --since asks for 2024-01-04" in late.err
    assert "Write a day as 2024-01-31" in night("--since", "May").err


@pytest.mark.parametrize("last", [(), ("--last", 1)])
def test_a_file_among_the_days_that_is_named_after_none_is_left_alone(night, one_day, last):
    ran = night()
    (day,) = (ran.root / "days").glob("*.parquet")
    shutil.copy(day, day.with_stem(f"{day.stem} (copy)"))
    again = night(*last)
    assert again.code == 0 and again.record["rows"] == ran.record["rows"]
    assert "named after no day" in again.record["remarks"][0]


def test_old_results_go_and_latest_never_does(night, one_day):
    names = [night("--keep", 2, title=title).record["id"] for title in "ab"]
    third = night("--keep", 2, title="c")
    names.append(third.record["id"])
    assert third.record["pruned"] == names[:1] and third.results == sorted(names[1:])
    # Settings from before: those results are there still, and latest goes back to them.
    back = night("--keep", 1, title="b")
    assert back.latest == names[1] and back.record["unchanged"]
    assert back.results == sorted(names[1:])  # the newest, and latest
    stranger = back.root / "2020-01-01T000000Z-abcdef"
    stranger.mkdir()  # called like results, but without a record: somebody else's
    assert night("--keep", 1, title="a").code == 0 and stranger.is_dir()


def alarm(night):
    return Done("rank 3 changed", outcome=Outcome.DRIFT, reason="rank 3 lost 20%")


def test_an_alarm_holds_latest_where_it_is(night, log, one_day):
    good = night(title="a").latest
    one_day["drift"] = alarm
    ran = night(title="b")
    assert ran.code == 1 and ran.record["outcome"] == "drift" and ran.latest == good
    assert ran.record["reason"] == "rank 3 lost 20%" and ran.record["results"] in ran.results
    told = map(json.loads, night("--log-format", "json", title="b").err.splitlines())
    (warned,) = [line["message"] for line in told if line["level"] == "warning"]
    assert warned == "It ended as drift, exit code 1: rank 3 lost 20%"
    always = night("--publish", "always", title="b")
    assert always.code == 1 and always.latest == ran.record["results"]


def test_days_enough_without_a_pair_that_moved_are_unfit(night, log, monkeypatch):
    """None of them is one to look for drift in: that is the data, not the request."""
    monkeypatch.setenv("RANKDRIFT_DRIFT_REFERENCE", "2")
    ran = night("--where", "rank = 1", "-q")
    assert ran.code == 1 and ran.record["outcome"] == "unfit"
    assert ran.steps["drift"]["state"] == "failed" and ran.steps["report"]["state"] == "done"


def test_each_way_to_end_is_told_apart(night, log, monkeypatch):
    # No pair moves: the data will not do.
    unfit = night("--where", "rank = 1", "-q")
    assert unfit.code == 1 and unfit.record["outcome"] == "unfit" and unfit.latest is None
    assert unfit.steps["estimate"]["state"] == "failed" and unfit.record["reason"]
    page = (unfit.root / unfit.record["results"] / "report.html").read_text()
    assert "These counts bear no estimate" in page
    assert night("--where", "rank = 1", "-q", "--publish", "always").latest is None
    wrong = night(log="nowhere/*.parquet")
    assert wrong.code == 2 and wrong.record["outcome"] == "wrong"
    assert "nowhere" in wrong.record["reason"] and wrong.record["exit_code"] == 2
    column = night("--rank", "nothing")
    assert column.code == 2 and "nothing" in column.record["reason"]

    def breaks(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setattr("rankdrift.monitoring.running.count_days", breaks)
    broken = night("--log-format", "json")
    assert broken.code == 70 and broken.record["outcome"] == "broken"
    told = [json.loads(line) for line in broken.err.splitlines()]
    assert "a defect" in next(line["traceback"] for line in told if "traceback" in line)
    assert set(EXIT_CODES.values()) == {None, 0, 1, 2, 70, 130}


def test_what_a_stopped_run_had_done_is_not_done_again(night, one_day, monkeypatch):
    made = []

    def counting(name, step):
        def make(night):
            made.append(name)
            return step(night)

        return make

    def stopped(night):
        raise KeyboardInterrupt

    every = {"counts": steps.add_up, **one_day}
    every = {name: counting(name, step) for name, step in every.items()}
    every["report"] = lambda night: Done("a page")
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", {**every, "report": stopped})
    first = night()
    record = first.record
    assert first.code == 130 and (record["outcome"], record["reason"]) == ("stopped", "Ctrl-C")
    assert first.latest is None
    assert first.results == [] and "Days that are done stay" in first.err
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", every)
    second = night()
    assert second.code == 0 and second.record["id"] == record["id"] == second.latest
    assert second.record["attempts"] == 2 and made == ["counts", "estimate"]
    states = [step["state"] for step in second.record["steps"]]
    assert states == ["done", "resumed", "resumed", "done"]
    lineage = stored_document(second.root / "latest" / "counts.parquet")["lineage"]
    assert lineage["run"] == record["id"]
    # With other settings, what was done is of no use; nor is a file that is not as it was left.
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", {**every, "report": stopped})
    night(title="a")
    made.clear()
    night(title="b")
    assert made == ["counts", "estimate"]
    (second.root / ".unfinished" / "propensities.json").write_text("{ }")
    monkeypatch.setattr("rankdrift.monitoring.running.STEPS", every)
    assert night(title="b").record["attempts"] == 3
    assert made == ["counts", "estimate", "estimate"]


def test_another_run_is_waited_for_or_left_alone(night, one_day, tmp_path):
    (tmp_path / "runs").mkdir()
    lock = os.open(tmp_path / "runs" / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(
        lock, json.dumps({"run": "2024-01-01T000000Z-abcdef", "pid": 77, "host": "h"}).encode()
    )
    left = night("--wait", 0, "--json")
    assert left.code == 2 and "2024-01-01T000000Z-abcdef, process 77 on h" in left.err
    printed = json.loads(left.out)
    jsonschema.validate(printed, RECORD_SCHEMA)
    assert (printed["outcome"], printed["exit_code"]) == ("busy", 2)
    assert [path.name for path in left.root.iterdir()] == [".lock"]  # nothing of this one
    let_go = threading.Timer(0.3, os.close, [lock])
    began = time.monotonic()
    let_go.start()
    waited = night("--wait", 30)
    assert waited.code == 0 and 0.2 < time.monotonic() - began < 30
    assert "Waiting up to 30 s" in waited.err
    assert "from 0" in night("--wait", "nan").err


def test_lines_for_programs(night, only_harvest):
    ran = night("--log-format", "json")
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    counted = [line for line in lines if line.get("step") == "harvest" and "day" in line]
    assert [line["day"] for line in counted] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert sum(line["rows"] for line in counted) == ran.record["rows"]
    wrong = night("--log-format", "json", "--rank", "nothing")
    assert [json.loads(line)["level"] for line in wrong.err.splitlines()][-2:] == ["error", "info"]
    plain = night()
    assert re.search(r"^\d\d:\d\d:\d\d  harvest", plain.err, re.M)  # and it is over


def test_settings_of_a_run(night, log, tmp_path, one_day):
    file = tmp_path / "rankdrift.toml"
    file.write_text('[run]\nlog = ["log/*.parquet"]\nlast = 2\n[estimate]\ncurve = "loglog"\n')
    ran = night(log=None)
    assert ran.code == 0 and ran.record["settings"]["run"]["last"] == 2
    assert ran.record["settings"]["estimate"]["curve"] == "loglog"
    assert ran.record["settings"]["diagnose"]["curve"] == "loglog"  # unless it says otherwise
    file.write_text('[run]\nlog = "log/*.parquet"\nkeeep = 3\n')
    wrong = night(log=None)
    assert wrong.code == 2 and "did you mean 'keep'" in wrong.err.lower()
    file.write_text('[run]\nmetrics = "somewhere"\n')
    assert "cannot be in a file" in night(log=None).err
    file.unlink()
    nowhere = night(log=None)
    assert nowhere.code == 2 and "under [run] in rankdrift.toml" in nowhere.err


def test_a_file_where_the_folder_for_unfinished_results_should_be(night, one_day, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".unfinished").touch()
    ran = night()
    assert ran.code == 2 and "Cannot write" in ran.err and "choose another path" in ran.err


def test_latest_that_is_no_link_is_left_alone(night, one_day, tmp_path):
    (tmp_path / "runs" / "latest").mkdir(parents=True)
    ran = night()
    assert ran.code == 2 and "not a link that a run made" in ran.err
    (tmp_path / "runs" / "latest").rmdir()
    again = night()  # the results were whole: only the link was missing
    assert again.code == 0 and again.latest == again.record["results"] == again.results[0]


COMMAND = (sys.executable, "-m", "rankdrift.cli", "run", "log/*.parquet", "-q")


@pytest.mark.slow
def test_two_at_once_give_one_result(log, tmp_path):
    runs = [
        subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [each.communicate(timeout=120)[1] for each in runs]
    assert [each.returncode for each in runs] == [0, 0], told
    assert len(list((tmp_path / "runs").glob("20*"))) == 1


def test_the_schema_in_the_docs_is_that_of_the_record(night):
    from pathlib import Path

    kept = Path(__file__).parents[2] / "docs" / "reference" / "run.schema.json"
    assert json.loads(kept.read_text()) == json.loads(night("--schema", log=None).out), (
        "rankdrift run --schema > docs/reference/run.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(kept.read_text()))
