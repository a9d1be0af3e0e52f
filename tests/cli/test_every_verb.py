"""What holds of every verb: its JSON has the keys that the docs name, no more, no less, inside and
out, and what it says ends with the next command to try."""

import json
import re
import shlex
import shutil
from pathlib import Path

import click
import duckdb
import pytest
from click.testing import CliRunner
from support.json_page import documented, inside

from rankdrift.cli import VERBS
from rankdrift.cli import rankdrift as group
from rankdrift.experiments import Experiment
from rankdrift.reproduce import table
from rankdrift.simulate import market, world

# Run once, by one worker.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("every verb")]
READ = ["--query", "keywords,category,aspects", "--segment", "platform", "--max-rank", "20"]
LOG = ["log/*.parquet", *READ]
JUDGED = ["log/*.parquet", *READ[:2], *READ[4:]]
RUN = {
    "demo": ["--rows", "600", "-o", "demo"],  # too small for the last steps: see test_verbs
    "inspect": LOG,
    "formats": [],
    "init": [*LOG, "-o", "settings.toml"],
    "harvest": [*LOG, "-o", "counts.parquet"],
    "harvest --by day": [*LOG, "-o", "days"],
    "merge": ["days", "-o", "all.parquet"],
    "counts": ["counts.parquet"],
    "estimate": ["counts.parquet", "--by", "platform", "-o", "propensities.json"],
    "diagnose": ["counts.parquet"],
    "compare": [*LOG, "--methods", "loglog,ctr"],
    "models": [*JUDGED, "--models", "ubm,dbn"],
    "train": [*LOG, "--trees", "2", "-o", "model.txt"],
    "evaluate": [*LOG, "--model", "model.txt", "--ranks", "1,2", "--bootstrap", "10"],
    "judge": [*JUDGED, "--propensities", "propensities.json", "-o", "judgments.parquet"],
    "experiment plan": ["counts.parquet", "--ratio", "3,1", "--share", "0.5", "-o", "swap.json"],
    "experiment assign": ["swap.json", "a", "b"],
    "experiment analyse": ["during/*.parquet", "--experiment", "swap.json"],
    "experiment wins": ["teams.parquet"],
    "judge --by day": [*JUDGED, "-o", "appearances"],
    "drift": ["days", "--reference", "2"],
    "report": ["counts.parquet", "-o", "report.html"],
    "run": [*LOG, "-o", "runs"],
    "export-training": [*LOG, "-o", "training.tsv"],
    "sql": [*LOG, "--dialect", "duckdb", "--table", "shop"],
    "import-counts": ["result.parquet", "-o", "imported.parquet"],
    "simulate market": ["-o", "market", "--rows", "2000"],
    "simulate pairs": ["-o", "pairs.parquet", "--pairs", "1000"],
    "simulate world": ["valid", "-o", "world", "--pairs", "500"],
    "simulate like": ["counts.parquet", "--replays", "2"],
    "reproduce figures": ["-o", "figures"],
    "reproduce table": ["--small", "--models", "biased,ours", "--threads", "1"],
    "reproduce real-features": ["train.txt", "test.txt"],
    "config": ["estimate", "--curve", "loglog"],
}
TINY = table.Size(500, 100, 200_000, 60_000, 130, bootstrap=20, trees=2)


def verbs() -> set[str]:
    """As typed: those that have verbs of their own with each of them."""
    found = set()
    for name in VERBS:
        command = group.get_command(None, name)
        more = command.commands if isinstance(command, click.Group) else [""]
        found |= {f"{name} {verb}".strip() for verb in more}
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Each verb's result, run once, without --quiet."""
    folder = tmp_path_factory.mktemp("verbs")
    market(folder / "log", rows=40_000, queries=20, days=2, click_rate=0.3)
    done = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(table.SIZES, "small", TINY)
        # The web and mobile figures and real features take long; the docs' tests draw the former.
        patch.setattr("rankdrift.reproduce.paper_figures.platforms", lambda *_: ([], {}))
        patch.setattr(
            "rankdrift.reproduce.real_features.reproduce_real", lambda *_, **__: {"shown": [0.5]}
        )
        for name, words in RUN.items():
            if name == "experiment wins":
                with duckdb.connect() as database:
                    database.execute(
                        "COPY (SELECT s AS search, 'q' AS query, s % 9 * 2 + r AS doc, r AS rank,"
                        " CAST(s % 3 = r % 3 AS INT) AS click, DATE '2024-01-01' AS day,"
                        " CASE WHEN (s + r) % 2 = 0 THEN 'A' ELSE 'B' END AS ranker"
                        " FROM range(60) AS x(s), range(1, 5) AS y(r)) TO 'teams.parquet'"
                    )
            if name == "experiment analyse":
                running = Experiment.load("swap.json")
                world("valid", pairs=300, ranks=5, queries=60, experiment=running).write("during")
            done[name] = CliRunner().invoke(group, [*name.split(), *words, "--json"])
            assert done[name].exit_code in (0, 1), f"{name}: {done[name].output}"
            if name == "sql":
                with duckdb.connect() as database:
                    database.execute("CREATE VIEW shop AS FROM 'log/*.parquet'")
                    statement = json.loads(done[name].stdout)["sql"]
                    database.execute(f"COPY ({statement}) TO 'result.parquet'")
    return folder, done


def test_no_verb_is_forgotten():
    assert {name.split(" --")[0] for name in RUN} == verbs()
    assert RUN.keys() == documented().keys()


@pytest.mark.parametrize("name", RUN)
def test_the_keys_of_the_json_are_those_documented(runs, name):
    printed = set(json.loads(runs[1][name].stdout))
    if name == "demo":  # as far as it came
        assert {"folder", "rows", "inspect"} < printed < documented()[name]
    else:
        assert printed == documented()[name]


@pytest.mark.parametrize(("name", "key"), inside())
def test_the_fields_inside_are_those_documented(runs, name, key):
    found = json.loads(runs[1][name].stdout)[key]
    assert found
    for record in found if isinstance(found, list) else [found]:
        assert set(record) == inside()[name, key]


@pytest.mark.parametrize("name", RUN)
def test_the_last_line_is_a_command_to_try(runs, name, monkeypatch):
    monkeypatch.chdir(runs[0])
    last = runs[1][name].stderr.splitlines()[-1]
    assert last.startswith("Next: ")
    program, *words = shlex.split(last.removeprefix("Next: "))
    assert program == "rankdrift"
    parse(words)


def parse(words: list[str]) -> None:
    """Raises click.UsageError at what the verb would not take."""
    command: click.Command = group
    context = click.Context(group, info_name="rankdrift")
    while isinstance(command, click.Group):
        found = command.get_command(None, words[0])
        assert found, words
        command, name, words = found, words[0], words[1:]
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=name, parent=context)
    command.make_context(name, words, parent=context)


def test_every_help_has_an_example_that_the_verb_takes():
    for name in ("", *sorted(verbs())):
        told = CliRunner().invoke(group, [*name.split(), "--help"], prog_name="rankdrift").stdout
        typed = re.findall(r"^ {6}(rankdrift .+)", re.sub(r"\\\n +", "", told), re.M)
        # What comes after a gap says what the command does.
        examples = [re.split(r" {2,}| > ", example)[0] for example in typed]
        assert any(example.startswith(f"rankdrift {name}".strip()) for example in examples), name
        for example in examples:
            parse(shlex.split(example)[1:])


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["inspct", "x"], "rankdrift --help"),
        (["inspect", "no-such-log"], "rankdrift inspect --help"),
        (["harvest", "x"], "rankdrift harvest --help"),
        (["simulate", "market", "--rows", "many"], "rankdrift simulate market --help"),
        (["simulate", "like", "no.parquet"], "rankdrift simulate like --help"),
        (["report", "no.json", "-o", "x.html"], "rankdrift report --help"),
    ],
)
def test_an_error_too_says_where_to_go_on(rankdrift, tmp_path, monkeypatch, words, command):
    monkeypatch.chdir(tmp_path)
    done = rankdrift(*words)
    *_, error, empty, last = done.err.splitlines()
    assert (done.code, empty, last) == (2, "", f"Next: {command}") and error.startswith("Error: ")
    quiet = rankdrift(*words, "--quiet")
    assert quiet.code == 2 and quiet.err.splitlines()[-1] == error


def test_logs_without_pairs_are_to_be_looked_at(rankdrift, still_log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, log in (
        (["harvest", still_log, "--max-rank", "9", "-o", "c.parquet"], f"{still_log} --max-rank 9"),
        (["counts", "c.parquet"], "LOG"),
        (["merge", "c.parquet", "-o", "m.parquet"], "LOG"),
    ):
        done = rankdrift(*words)
        assert done.code == 1
        assert done.err.splitlines()[-1] == f"Next: rankdrift inspect {log}"


def test_results_are_not_taken_for_logs(rankdrift, runs, monkeypatch):
    monkeypatch.chdir(runs[0])
    assert rankdrift("estimate", "counts.parquet", "-o", "p.csv", "-q").code == 0
    Path("by-day").mkdir()
    shutil.copy("counts.parquet", "by-day/2024-05-01.parquet")
    for path, told in (
        ("by-day", "These are counts, made by rankdrift: try `rankdrift estimate by-day"),
        ("counts.parquet", "These are counts, made by rankdrift: try `rankdrift estimate"),
        ("p.csv", "These are propensities, made by rankdrift: try `rankdrift train LOG"),
        ("propensities.json", "These are propensities"),
        ("log/truth.json", "This is a truth, made by rankdrift: try `rankdrift report log/truth"),
    ):
        done = rankdrift("inspect", path)
        assert done.code == 2 and f"Error: {path!r} is no log. {told}" in done.err
    for path in ("p.csv", "propensities.json"):
        for words in (["estimate", path], ["diagnose", path], ["harvest", path, "-o", "h.parquet"]):
            done = rankdrift(*words)
            assert done.code == 2 and f"{path!r} is no log. These are propensities" in done.err
