"""How a run ends: exit codes, Ctrl-C, kill -9, places that cannot be written to."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time

import pytest

from rankdrift.simulate import searches

COMMAND = (sys.executable, "-m", "rankdrift.cli")
STOPPED = (130, -signal.SIGINT)  # a shell calls both of them 130
# A condition so slow that there is time to stop a small log half-way.
SLOW = "list_sum(list_transform(range(30000), lambda x: (x * rank) % 7)) >= 0"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["harvst", "x"], "Did you mean 'harvest'?"),
        (["import", "x"], "Did you mean one of: 'import-counts', 'report'?"),
        (["inspect", "x", "--qery", "a"], "'--query'"),
        (["harvest", "x"], "Missing option '-o'"),
        (["harvest", "x", "-o", "y", "--by", "week"], "'--by'"),
        (["inspect", "x", "--max-rank", "ten"], "'ten' is not a valid integer"),
        (["inspect"], "Missing argument 'LOG...'"),
        (["sql", "--dialect", "bigqery", "--table", "t"], "Did you mean 'bigquery'?"),
    ],
)
def test_a_wrong_request(rankdrift, words, hint):
    done = rankdrift(*words)
    assert (done.code, done.out) == (2, "")
    assert hint in done.err


def test_no_such_log_or_column(rankdrift, log):
    done = rankdrift("inspect", str(log / "searches-2024-01-03.parquet"))
    assert done.code == 2
    assert done.err.startswith("Error: No file") and "Did you mean" in done.err
    done = rankdrift("inspect", log, "--doc", "dok")
    assert done.code == 2 and "Did you mean 'doc'?" in done.err


def test_a_defect_is_not_taken_for_unfit_data(rankdrift, monkeypatch):
    def fail(*args, **options):
        raise ZeroDivisionError

    monkeypatch.setattr("rankdrift.cli.options.read_log", fail)
    done = rankdrift("inspect", "x")
    assert done.code == 70
    assert "Traceback" in done.err and "defect of rankdrift" in done.err


@pytest.mark.parametrize("place", ["file/counts.parquet", "folder", "/proc/counts.parquet"])
def test_a_place_that_cannot_be_written_is_found_before_the_work(
    rankdrift, log, tmp_path, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("rankdrift.harvesting.counting.harvest", _never)
    monkeypatch.setattr("rankdrift.diagnosis.inspection.inspect", _never)
    for words in (["harvest", log, "-o", place], ["inspect", log, "--html", place]):
        done = rankdrift(*words)
        assert done.code == 2
        assert done.err.startswith(f"Error: Cannot write {place}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def _never(*args, **options):
    raise AssertionError("the work has begun")


def test_a_folder_that_cannot_be_written(rankdrift, log, tmp_path, monkeypatch):
    monkeypatch.setattr("rankdrift.harvesting.by_day.harvest_by_day", _never)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "days.parquet"):
        done = rankdrift("harvest", log, "--by", "day", "-o", place)
        assert done.code == 2, done.err


def test_an_input_is_never_written_over(rankdrift, tmp_path):
    searches(tmp_path / "log", rows=2_000, days=1, queries=5)
    (path,) = (tmp_path / "log").iterdir()
    before = path.read_bytes()
    for words in (
        ["harvest", path, "-o", path],
        ["harvest", tmp_path / "log", "-o", path],
        ["harvest", tmp_path / "log" / "*", "--by", "day", "-o", tmp_path / "log"],
        ["inspect", path, "--html", path],
        ["merge", tmp_path / "log", "-o", path],
        ["import-counts", path, "-o", path],
    ):
        done = rankdrift(*words)
        assert done.code == 2
        assert "would be lost. Choose another place" in done.err, words
    assert path.read_bytes() == before
    assert list((tmp_path / "log").iterdir()) == [path]


def test_a_file_that_is_there_is_replaced_when_all_went_well(rankdrift, log, tmp_path):
    path = tmp_path / "counts.parquet"
    path.write_text("old")
    assert rankdrift("harvest", log, "--where", "no_such = 1", "-o", path).code == 2
    assert path.read_text() == "old"
    assert rankdrift("harvest", log, "-o", path).code == 0
    assert path.read_bytes()[:4] == b"PAR1"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["-o", "out/c.parquet"], "All of it starts over"),
        (["--by", "day", "-o", "out"], "Days that are done stay, the others follow"),
    ],
)
def test_ctrl_c(log, tmp_path, words, state):
    """Stopped at once, with nothing left behind, here or in the folder for temporary files."""
    scratch = tmp_path / "scratch"
    for pause in (0.0, 0.4, 1.2):
        scratch.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [*COMMAND, "harvest", str(log), "--where", SLOW, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(scratch)},
            text=True,
        )
        try:
            told = process.stderr.readline() + process.stderr.readline()
            assert "A day:" in told
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            stopped = time.monotonic()
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert time.monotonic() - stopped < 5
        assert process.returncode in STOPPED and out == ""
        again = shlex.join(["rankdrift", "harvest", str(log), "--where", SLOW, *words])
        told = f"No file is half written. {state} with the next run."
        assert err.strip() == f"Stopped.\n{told}\n\nNext: {again}"
        assert [*(tmp_path / "out").iterdir()] == []
        assert [*scratch.iterdir()] == []


# Says when it is running: what is stopped before that is Python, which has its own words for it.
BEGUN = (
    "from rankdrift.cli import main, stopping; stopping.listen();"
    " print('begun', flush=True); main()"
)
INTERRUPTS = 12


@pytest.mark.slow
def test_ctrl_c_at_any_moment(log, tmp_path):
    """While it imports, reads, counts, writes or ends: exit code 130, no traceback, no remains."""
    moment = random.Random(7)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    took, codes = None, []
    for _ in range(1 + INTERRUPTS):
        process = subprocess.Popen(
            [sys.executable, "-c", BEGUN, "harvest", str(log), "-o", "counts.parquet"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(scratch)},
            text=True,
        )
        assert process.stdout.readline() == "begun\n"
        began = time.monotonic()
        if took is not None:
            time.sleep(moment.uniform(0, took))
            process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
        if took is None:
            took = time.monotonic() - began
            continue
        codes.append(process.returncode)
        assert process.returncode in (0, 130), err
        assert "Traceback" not in err and "KeyboardInterrupt" not in err
        assert process.returncode == 0 or err.count("Stopped.") == 1
        assert [*scratch.iterdir()] == []
        assert {path.name for path in tmp_path.iterdir()} == {"scratch", "counts.parquet"}
    assert codes.count(130) > INTERRUPTS / 2


def test_ctrl_c_does_not_list_what_the_shell_listed(rankdrift, tmp_path, monkeypatch):
    """Nor does it say more than that to who wants no talk."""

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankdrift.cli.options.read_log", stop)
    monkeypatch.chdir(tmp_path)
    files = [f"log-{number}.parquet" for number in range(4)]
    for name in files:
        (tmp_path / name).touch()
    done = rankdrift("inspect", *files, "--max-rank", 20)
    assert done.code == 130 and done.err.endswith(
        "\nNext: rankdrift inspect 'log-*.parquet' --max-rank 20\n"
    )
    assert rankdrift("inspect", *files, "--quiet").err.strip() == "Stopped."


@pytest.mark.slow
def test_kill_at_any_moment_and_finish_later(tmp_path):
    """What the days of a disturbed run end up as is what an undisturbed run writes."""
    searches(tmp_path / "log", rows=16_000, days=4, queries=30, depth=50)
    words = [*COMMAND, "harvest", "log", "--by", "day", "--segment", "platform", "-o"]

    def start(folder):
        return subprocess.Popen(
            [*words, folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
        )

    began = time.monotonic()
    whole, _ = start("whole").communicate(timeout=120)
    took = time.monotonic() - began
    assert whole.count("written") == 4

    moment = random.Random(1)
    progress = set()
    for attempt in range(32):
        if attempt >= 4 and len(progress) > 1:  # `make torture` kills many more
            break
        process = start("parts")
        time.sleep(moment.uniform(0.3, 1.0) * took)
        process.kill()
        process.communicate(timeout=60)
        done = (
            sorted((tmp_path / "parts").glob("*.parquet")) if (tmp_path / "parts").exists() else []
        )
        progress.add(len(done))
        if len(done) == 4:  # begin again, to be stopped elsewhere
            for path in done[moment.randrange(4) :]:
                path.unlink()
    assert len(progress) > 1  # it was really stopped at different points
    last, _ = start("parts").communicate(timeout=120)
    assert last.count("written") + last.count("unchanged") == 4

    def contents(folder):
        return {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}

    assert contents("parts") == contents("whole")
