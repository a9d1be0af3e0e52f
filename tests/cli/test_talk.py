"""Who hears what: stdout, stderr, terminals, pipes, and text typed by strangers."""

import os
import pty
import re
import shlex
import subprocess
import sys
from importlib import import_module

import pytest
from support.clicklogs import frame

from rankdrift import Counts
from rankdrift.cli.screen import Screen
from rankdrift.core.words import percent, printable, share
from rankdrift.harvesting.plan import Sizes, harvest_plan

pytestmark = pytest.mark.slow  # nearly every test starts the command line anew, some in a terminal
ANSI = re.compile(r"\x1b")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
COMMAND = (sys.executable, "-m", "rankdrift.cli")
EVIL = "[bold red]x[/] \x1b[31mred\x1b[0m \u202eevil\u2066 \x07"


def in_terminal(words, env=(), code=None):
    """What a person sees: stdout and stderr on one terminal of 80 columns."""
    parent, child = pty.openpty()
    command = [sys.executable, "-c", code] if code else COMMAND
    process = subprocess.Popen(
        [*command, *map(str, words)],
        stdout=child,
        stderr=child,
        stdin=child,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **dict(env)},
    )
    os.close(child)
    seen = b""
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(parent)
    return process.wait(60), seen.decode()


def test_piped_output_is_plain(shell, log):
    done = shell("inspect", log)
    assert not ANSI.search(done.out + done.err)
    assert "█" in done.out
    assert all(line == line.rstrip() for line in done.out.splitlines())
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_terminal_gets_colour_unless_it_is_refused(log):
    code, seen = in_terminal(["inspect", log])
    assert code == 0 and "\x1b[1;32mgood" in seen
    code, seen = in_terminal(["inspect", log], env={"NO_COLOR": "1"})
    assert code == 0 and "good" in seen
    assert not COLOUR.search(seen)  # moving the cursor for the bar is no colour


def test_a_terminal_without_unicode_gets_ascii(shell, log):
    done = shell("inspect", log, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.code == 0
    assert (done.out + done.err).isascii()
    assert "##" in done.out and "+/-" in done.out and "3-5" in done.out


def test_quiet_and_json_keep_the_streams_apart(rankdrift, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (
        ["inspect", log],
        ["harvest", log, "-o", "c.parquet"],
        ["harvest", log, "--by", "day", "-o", "days"],
        ["merge", "days", "-o", "m.parquet"],
        ["counts", "m.parquet"],
        ["sql", log, "--dialect", "trino", "--table", "t"],
    ):
        quiet = rankdrift(*words, "--quiet")
        assert (quiet.code, quiet.err) == (0, ""), words
        assert quiet.out
        loud = rankdrift(*words, "--json")
        assert isinstance(loud.json, dict), words
        assert words[0] == "counts" or loud.err, words


@pytest.mark.parametrize("verb", ["inspect", "counts", "sql", "help"])
def test_a_reader_that_leaves_early_is_no_error(verb, log, tmp_path, shell):
    words = {
        "inspect": ["inspect", log],
        "counts": ["counts", "c.parquet", "--json"],
        "sql": ["sql", log, "--dialect", "duckdb", "--table", "t"],
        "help": ["--help"],
    }[verb]
    if verb == "counts":
        shell("harvest", log, "-o", "c.parquet")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *map(str, words)], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, text=True
    )
    os.close(writer)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr and "rror" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_may_be_closed(closed, log, tmp_path):
    command = shlex.join([*COMMAND, "harvest", str(log), "-o", "c.parquet"])
    done = subprocess.run(
        f"{command} {closed}", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert Counts.load(tmp_path / "c.parquet").n_pairs
    assert bool(done.stdout) == (closed == "2>&-") and bool(done.stderr) == (closed == ">&-")


def test_a_harvest_survives_a_reader_that_leaves(log, tmp_path):
    """The verdict of the exit code and the file do not depend on who listens."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [*COMMAND, "harvest", str(log), "-o", "c.parquet"]
    done = subprocess.run(words, stdout=writer, stderr=writer, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 0
    assert (tmp_path / "c.parquet").exists()


def test_no_progress_unless_somebody_watches(shell, log, tmp_path):
    hurry, wait = (
        f"import rankdrift.cli.progress as p; p.PATIENCE = {seconds}\n"
        "from rankdrift.cli import main; main()"
        for seconds in (0, 1000)
    )
    words = ["harvest", log, "-o", tmp_path / "c.parquet"]
    _, seen = in_terminal(words, code=hurry)
    assert re.search(r"\d of 60,000 rows", seen) and "pairs" in seen
    assert re.search(r"[-\d]:[-\d]{2}:[-\d]{2} left", COLOUR.sub("", seen))
    _, seen = in_terminal([*words[:-1], tmp_path / "days", "--by", "day"], code=hurry)
    assert "1 day done" in seen and "30,000 of 60,000 rows" in seen
    _, seen = in_terminal([*words, "--quiet"], code=hurry)
    assert "of 60,000 rows" not in seen
    _, seen = in_terminal(words, code=wait)  # over before it is worth a bar
    assert "of 60,000 rows" not in seen


def test_trees_are_counted_as_they_grow(tmp_path):
    frame(searches=60).to_parquet(tmp_path / "log.parquet")
    words = ["train", tmp_path / "log.parquet", "--trees", "300", "-o", tmp_path / "m.txt"]
    _, seen = in_terminal(words, env={"OMP_NUM_THREADS": "1"})
    shown = COLOUR.sub("", seen)
    bars = re.findall(r"(reading|growing trees) [━╸╺ ]+ (\d+)/300 [-\d:]+ left", shown)
    assert bars[0] == ("reading", "0") and bars[-1] == ("growing trees", "300")


def test_the_bar_only_moves_forward():
    progress = import_module("rankdrift.cli.progress")

    class Recorder:
        places: list

        def __init__(self):
            self.places = []

        def add_task(self, *args, **options):
            return 0

        def update(self, task, *, completed, **options):
            self.places.append(completed)

        def start(self):
            pass

    for first in ([], ["parsing csv"]):
        recorder = Recorder()
        bar = progress.Bar(recorder, 100, by_day=False)
        for step in [*first, "shown_source", "outside", *progress.STEPS]:
            for fraction in (0.0, 0.5, 1.0):
                bar(step, fraction)
        known = [place for place in recorder.places if place]
        assert known == sorted(known)
        assert known[-1] == pytest.approx(1.0)


def test_the_steps_of_the_bar_are_those_of_the_plan(log):
    from rankdrift import read_log

    progress = import_module("rankdrift.cli.progress")
    plan = [step.name for step in harvest_plan(read_log(log).planner(), Sizes()).steps if step.keep]
    timed = [name for name in progress.STEPS if name in plan]
    assert [name for name in plan if name in progress.STEPS] == timed
    # A bar that skips a little is no harm, one that has lost the long steps is.
    assert sum(progress.STEPS[name][0] for name in timed) > 0.75


def test_text_of_strangers_is_shown_not_obeyed(rankdrift, write_log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"query": EVIL, "doc": 1, "rank": rank, "click": click, EVIL: EVIL}
        for rank, click in ((1, 1), (2, 0), (2, 1), (1, 0))
    ]
    path = write_log(rows)
    for words in (
        ["inspect", path, "--segment", EVIL],
        ["harvest", path, "--segment", EVIL, "-o", "c.parquet"],
        ["counts", "c.parquet"],
        ["inspect", path, "--doc", EVIL + "?"],
        ["inspect", path, "--where", f"x = '{EVIL}'"],
        ["inspect", f"no-{EVIL[:20]}"],
    ):
        done = rankdrift(*words)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\u2066]", done.out + done.err), words
    shown = rankdrift("inspect", path, "--segment", EVIL)
    squeezed = re.sub(r"\s", "", shown.out)
    assert r"[boldred]x[/]\x1b[31mred\x1b[0m\u202eevil\u2066\x07" in squeezed


def test_printable():
    assert printable("naïve 日本 \u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f52c") == (
        "naïve 日本 \u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f52c"
    )
    assert printable("a\nb\r\t\x1b[0m\x9b\ud800") == r"a\nb\r\t\x1b[0m\x9b\ud800"


def test_numbers_for_people():
    assert [percent(x) for x in (0, 0.5, 0.049, 0.00049, 1, None)] == [
        "0%", "50%", "4.9%", "0.049%", "100%", "",
    ]  # fmt: skip
    assert [share(*x) for x in ((0, 5), (5, 5), (1, 10**6), (999_999, 10**6), (1, 3))] == [
        "0%", "100%", "<0.1%", ">99.9%", "33.3%",
    ]  # fmt: skip


def test_remarks_are_told(rankdrift, write_log):
    rows = [
        {"search": s, "query": "lamp", "doc": d, "rank": d, "click": int(d == s % 3 + 1)}
        for s in range(30)
        for d in (1, 2, 3)
        for _ in range(2)
    ]
    done = rankdrift("inspect", write_log(rows))
    assert "Note: 90 of the first 180 rows repeat the search" in done.err


def test_a_screen_with_nobody_there(capsys):
    Screen(quiet=True, json=False).say("hello")
    assert capsys.readouterr().err == ""


def test_in_a_terminal_no_line_of_talk_is_broken_inside_a_word(tmp_path, shell):
    """Piped it is one line, for programs; what is to be typed is one line in any case."""
    name = "a log that is not there, under a rather long name.parquet"
    piped = shell("inspect", name).err.splitlines()
    code, seen = in_terminal(["inspect", name], env={"COLUMNS": "40"})
    lines = seen.replace("\r", "").rstrip().splitlines()
    assert code == 2 and max(map(len, lines)) <= 40 and len(lines) > len(piped)
    assert " ".join(lines[:-2]) == piped[0] and lines[-2:] == piped[-2:]
