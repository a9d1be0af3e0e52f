"""Where things are read from and written to, as typed: what cannot be is told before the work."""

import shutil
from pathlib import Path

import pytest

from rankdrift.counts.counts import Counts


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "c.parquet", "-o", ""],
        ["compare", "c.parquet", "--chart", ""],
        ["inspect", "c.parquet", "--html", ""],
        ["drift", "days", "--chart", ""],
        ["evaluate", "c.parquet", "--model", "m.txt", "-o", ""],
        ["sql", "--table", "shop", "--dialect", "duckdb", "--dbt", ""],
        ["run", "c.parquet", "--metrics", ""],
    ],
)
def test_an_empty_name_is_no_wish_to_write_nothing(rankdrift, tmp_path, monkeypatch, words):
    """As of a variable of a shell that is not set."""
    monkeypatch.chdir(tmp_path)
    done = rankdrift(*words)
    assert done.code == 2 and "has an empty name" in done.err
    assert not list(tmp_path.iterdir())


def test_an_empty_name_of_a_log_is_not_the_folder_one_is_in(rankdrift, log, tmp_path, monkeypatch):
    monkeypatch.chdir(log)
    done = rankdrift("harvest", "", "-o", tmp_path / "c.parquet")
    assert done.code == 2 and "No log was named" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["models", "no.parquet"],
        ["drift", "no-days"],
        ["compare", "no.parquet"],
        ["experiment", "plan", "no.parquet"],
        ["experiment", "analyse", "no.parquet", "--experiment", "no.json"],
    ],
)
def test_what_no_chart_can_be_is_told_before_anything_is_read(rankdrift, words):
    done = rankdrift(*words, "--chart", "x.gif")
    assert done.code == 2 and "No chart can be written as '.gif'" in done.err


def test_files_without_an_end_are_not_read_to_their_end(rankdrift, moving_log, tmp_path):
    for words in (
        ["formats", "--config", "/dev/zero"],
        ["experiment", "assign", "/dev/zero"],
        ["evaluate", moving_log, "--model", "/dev/zero"],
    ):
        done = rankdrift(*words)
        assert done.code == 2 and "it has more than 1,048,576 bytes" in done.err, words
    large = tmp_path / "log.csv"
    large.write_bytes(b"#\n" * (1 << 19) + b"#")
    done = rankdrift("formats", "--config", large)
    assert done.code == 2 and "it has more than 1,048,576 bytes" in done.err
    assert rankdrift("formats", "--config", "/dev/null").code == 0


def test_a_run_and_its_metrics_are_in_two_places(rankdrift, moving_log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = rankdrift("run", moving_log, "-o", "runs", "--metrics", "./runs")
    assert done.code == 2 and "-o and --metrics are both 'runs'" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["harvest", ".", "-o", "counts.parquet"],
        ["harvest", ".", "--by", "day", "-o", "days"],
        ["harvest", "../log", "--by", "day", "-o", "days/of/may"],
        ["run", "."],
        ["judge", ".", "--propensities", "../p.json", "-o", "judgments.parquet"],
        ["train", ".", "--propensities", "../p.json", "-o", "ranker.txt"],
    ],
)
def test_no_result_is_written_into_a_folder_that_is_the_log(
    rankdrift, tmp_path, monkeypatch, words
):
    """It would be read as a part of the log the next time."""
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "log.csv").write_text("query,doc,rank,click\n")
    (tmp_path / "p.json").write_text("{}")
    monkeypatch.chdir(folder)
    done = rankdrift(*words)
    assert done.code == 2 and "all of which is read" in done.err, done.err
    assert [path.name for path in folder.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["inspect", "."], "counts.parquet"),
        (["init", ".", "-o", ".settings.toml"], "counts.parquet"),
        (["diagnose", "."], "propensities.json"),
        (["compare", "../log", "--methods", "auto,ctr"], "propensities.json"),
    ],
)
def test_advice_leads_out_of_a_folder_that_is_the_log(
    rankdrift, log, tmp_path, monkeypatch, words, name
):
    monkeypatch.chdir(shutil.copytree(log, tmp_path / "log"))
    done = rankdrift(*words)
    assert done.code in (0, 1), done.err
    advised = done.err[done.err.rindex("rankdrift ") :].split()
    assert advised[-2:] == ["-o", f"../{name}"]
    assert rankdrift(*advised[1:]).code in (0, 1) and (tmp_path / name).exists()


def test_pages_and_hidden_files_may_lie_beside_a_log(rankdrift, log, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(log, tmp_path / "log"))
    assert rankdrift("inspect", ".", "--html", "page.html", "-q").code in (0, 1)
    assert rankdrift("harvest", ".", "-o", ".counts/all.parquet", "-q").code in (0, 1)
    again = rankdrift("harvest", ".", "-o", ".counts/again.parquet", "-q")
    assert again.code in (0, 1)
    first, second = (Path(f".counts/{name}.parquet") for name in ("all", "again"))
    assert Counts.load(first).equals(Counts.load(second))


@pytest.mark.parametrize(
    "words",
    [
        ["harvest", "LOG", "-o", "s3://me:secret@bucket/c.parquet"],
        ["harvest", "LOG", "--by", "day", "-o", "s3://me:secret@bucket/days"],
        ["compare", "LOG", "--chart", "https://me:secret@host/c.svg"],
        ["judge", "LOG", "--propensities", "p.json", "-o", "gs://bucket/j.parquet"],
        ["run", "LOG", "-o", "s3://me:secret@bucket/results"],
        ["simulate", "market", "-o", "s3://me:secret@bucket/market"],
        ["demo", "-o", "file:///tmp/demo"],
        ["sql", "LOG", "--table", "t", "--dialect", "duckdb", "--dbt", "s3://bucket/dbt"],
    ],
)
def test_an_address_is_no_place_to_write_to(rankdrift, moving_log, tmp_path, monkeypatch, words):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    done = rankdrift(*(moving_log if word == "LOG" else word for word in words))
    assert done.code == 2 and "it is an address, and what is written stays" in done.err, done.err
    assert "secret" not in done.err and not list(here.iterdir())
