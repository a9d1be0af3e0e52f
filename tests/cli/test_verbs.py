"""Each verb, on a small log: what it prints, what it writes, how it ends."""

import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from support.harness import within_days
from support.json_page import documented

from rankdrift import Counts, Propensities, harvest, merge, read_log
from rankdrift.cli import VERBS, demo
from rankdrift.cli import rankdrift as group
from rankdrift.core.errors import RankdriftError
from rankdrift.counts.file import each_counts
from rankdrift.simulate import pairs

COUNTS_KEYS = {"file", "counts", "funnel"}
SIX_DIGITS = 1e-5  # of intervals in files


def test_inspect_tells_the_whole_story(rankdrift, log):
    done = rankdrift("inspect", log, "--segment", "platform")
    assert done.code == 0
    for words in (
        "query      text    query     guessed",
        "platform   text    segment   named",
        "Layout: long, a row per result shown. A day: the date as written.",
        "rows   60,000",
        "about",
        "2024-01-01 to 2024-01-02",
        "Clicks per impression, by rank",
        "pair never got a click",
        "comparisons",
        "±",
        "can be compared with each other",
        "Worth logging",
        "score the ranker's score of each result",
        "Verdict",
        "good",
    ):
        assert " ".join(words.split()) in " ".join(done.out.split())
    last = done.err.rstrip().splitlines()[-1]
    assert last == f"Next: rankdrift harvest {log} --segment platform -o counts.parquet"


def test_a_large_log_is_counted_day_by_day(rankdrift, log, monkeypatch):
    monkeypatch.setattr("rankdrift.cli.inspect.BY_DAY", 50_000)
    done = rankdrift("inspect", log)
    assert done.err.rstrip().endswith(f"Next: rankdrift harvest {log} --by day -o counts/")


def test_inspect_as_json(rankdrift, log):
    found = rankdrift("inspect", log, "--json").json
    assert set(found) == {
        "columns", "roles", "guessed", "day", "sizes", "funnel", "ctr", "support", "connected",
        "unconnected", "remarks", "verdict", "reasons", "advice", "html", "worth_logging",
        "worth_segmenting", "ways", "origins",
    }  # fmt: skip
    assert list(found["worth_logging"]) == ["score", "ranker", "user", "outcome"]
    assert found["funnel"]["input"]["rows"] == found["sizes"]["rows"] == 60_000
    assert found["verdict"] == "good"


@pytest.mark.parametrize(("name", "code"), [("still_log", 1), ("moving_log", 1)])
def test_inspect_of_an_unfit_log(rankdrift, request, name, code):
    done = rankdrift("inspect", request.getfixturevalue(name))
    assert done.code == code
    assert "\n  unfit\n" in done.out
    assert "> Add days or traffic" in done.out
    assert "Next: rankdrift inspect" not in done.err


def test_harvest_writes_what_the_api_counts(rankdrift, log, tmp_path):
    path = tmp_path / "new" / "counts.parquet"
    done = rankdrift("harvest", log, "--same", "price", "--segment=platform", "-o", path)
    assert done.code == 0
    assert Counts.load(path).equals(harvest(read_log(log, same="price", segment="platform")))
    assert "Guessed the columns: query = query, doc = doc" in done.err
    assert "A day: the date as written." in done.err
    assert f"The counts are in {path}" in done.err
    following = f"Next: rankdrift estimate {path} --by platform -o propensities.json"
    assert done.err.rstrip().endswith(following)
    assert "used" in done.out and "deepest" in done.out


def test_harvest_as_json(rankdrift, log, tmp_path):
    path = tmp_path / "counts.parquet"
    told = rankdrift("harvest", log, "-o", path, "--json", "--buckets", 8, "--max-shown", 4).json
    assert set(told) == COUNTS_KEYS | {"log"}
    assert told["counts"]["buckets"] == 8
    assert told["counts"]["max_shown"] == 4
    assert told["counts"]["pairs"] == told["funnel"]["used"]["pairs"] > 0


def test_harvest_of_a_log_without_pairs(rankdrift, still_log, tmp_path):
    path = tmp_path / "counts.parquet"
    done = rankdrift("harvest", still_log, "-o", path)
    assert done.code == 1
    assert Counts.load(path).n_pairs == 0
    assert "There are no usable pairs. No pair appeared at two different ranks" in done.err
    assert "> Add days or traffic" in done.err
    assert rankdrift("counts", path).code == 1
    assert rankdrift("merge", path, "-o", tmp_path / "sum.parquet").code == 1


def test_harvest_by_day_then_merge_is_harvest(rankdrift, log, tmp_path):
    folder, total, whole = (tmp_path / name for name in ("days", "total.parquet", "whole.parquet"))
    first = rankdrift("harvest", log, "--by", "day", "-o", folder)
    assert first.code == 0
    assert [line.split()[:2] for line in first.out.splitlines()[:2]] == [
        ["2024-01-01", "written"],
        ["2024-01-02", "written"],
    ]
    assert f"2 days written to {folder}, 0 unchanged." in first.err
    assert f"Next: rankdrift merge {folder} -o counts.parquet" in first.err

    again = rankdrift("harvest", log, "--by", "day", "-o", folder, "--json").json
    assert set(again) == {"folder", "days", "funnel", "roles", "guessed"}
    assert [day["state"] for day in again["days"]] == ["unchanged", "unchanged"]
    assert sum(day["rows"] for day in again["days"]) == again["funnel"]["input"]["rows"] == 60_000

    added = rankdrift("merge", folder, "-o", total)
    assert added.code == 0
    assert "2 files added up" in added.err
    rankdrift("harvest", log, "-o", whole)
    assert Counts.load(total).equals(within_days(Counts.load(whole)))


def test_harvest_by_day_without_pairs(rankdrift, write_log, tmp_path):
    row = {"query": "lamp", "doc": 1, "rank": 1, "click": 1}
    path = write_log([{**row, "day": "2024-01-01"}, {**row, "day": "2024-01-02"}])
    done = rankdrift("harvest", path, "--by", "day", "-o", tmp_path / "days")
    assert done.code == 1
    assert "There are no usable pairs." in done.err


def test_merge_takes_files_folders_and_globs(rankdrift, log, tmp_path):
    folder = tmp_path / "days"
    rankdrift("harvest", log, "--by", "day", "-o", folder)
    files = sorted(folder.iterdir())
    (folder / "notes.txt").write_text("not counts")
    expected = merge([Counts.load(path) for path in files])
    for words in ([folder], [folder / "*.parquet"], files, [*files, files[0]]):
        done = rankdrift("merge", *words, "-o", tmp_path / "sum.parquet", "--json")
        assert done.code == 0
        assert set(done.json) == COUNTS_KEYS | {"inputs"}
        assert done.json["inputs"] == 2
        assert Counts.load(tmp_path / "sum.parquet").equals(expected)


def test_merge_reads_one_file_after_another(rankdrift, log, tmp_path, monkeypatch):
    """A year of counts need not fit in memory: parts are loaded as they are added, small ones some
    at a time."""
    rankdrift("harvest", log, "--by", "day", "-o", tmp_path / "days")
    loaded = []
    monkeypatch.setattr("rankdrift.counts.file._TOGETHER", 1)
    monkeypatch.setattr("rankdrift.counts.file.load", lambda path: loaded.append(path) or path)
    parts = each_counts(tmp_path / "days")
    next(parts)
    assert len(loaded) == 1
    assert len(list(parts)) + 1 == len(loaded) == len(list((tmp_path / "days").iterdir())) > 1


@pytest.mark.parametrize("missing", ["nothing.parquet", "no/*.parquet", "."])
def test_merge_of_nothing(rankdrift, tmp_path, monkeypatch, missing):
    monkeypatch.chdir(tmp_path)
    done = rankdrift("merge", missing, "-o", "sum.parquet")
    assert done.code == 2
    assert done.err.startswith("Error: No ")
    assert not Path("sum.parquet").exists()


def test_counts_shows_a_file(rankdrift, log, tmp_path):
    path = tmp_path / "counts.parquet"
    rankdrift("harvest", log, "-o", path)
    done = rankdrift("counts", path)
    assert done.code == 0
    assert "in the log" in done.out and "2024-01-01 to 2024-01-02" in done.out
    told = rankdrift("counts", path, "--json").json
    assert set(told) == COUNTS_KEYS | {"options", "version"}
    assert told["counts"] == Counts.load(path).summary()


def test_sql_and_back(rankdrift, log, tmp_path):
    """What DuckDB answers to the printed statement is what a harvest counts."""
    database, result = tmp_path / "shop.duckdb", tmp_path / "result.csv"
    with duckdb.connect(database) as con:
        con.execute(f"CREATE TABLE events AS FROM '{log}/*.parquet'")
        done = rankdrift("sql", log, "--dialect", "duckdb", "--table", "events", "--same", "price")
        assert done.code == 0
        con.execute(f"COPY ({done.out}) TO '{result}' (HEADER)")
    path = tmp_path / "counts.parquet"
    taken = rankdrift("import-counts", result, "-o", path)
    assert taken.code == 0
    assert f"The counts are in {path}." in taken.err
    assert Counts.load(path).n_pairs == harvest(read_log(log, same="price")).n_pairs > 0
    assert set(rankdrift("import-counts", result, "-o", path, "--json").json) == COUNTS_KEYS


@pytest.mark.parametrize(
    ("ending", "low"), [("json", "unnest(curves[1].low)"), ("csv", "low"), ("parquet", "low")]
)
def test_a_band_of_the_whole_curve_is_what_the_file_holds(rankdrift, log, tmp_path, ending, low):
    counts, file = tmp_path / "counts.parquet", tmp_path / f"curve.{ending}"
    rankdrift("harvest", log, "-o", counts)
    words = ["estimate", counts, "--level", 0.9, "-o", file]
    alone = rankdrift(*words, "--json").json
    told = rankdrift(*words, "--simultaneous", "--json").json
    assert told["simultaneous"] and told["summary"]["simultaneous"]
    assert told["summary"]["at"]["5"]["low"] == told["table"]["low"][4] < alone["table"]["low"][4]
    held = [value for (value,) in duckdb.sql(f"SELECT {low} FROM '{file}'").fetchall()]
    assert held == pytest.approx(told["table"]["low"], rel=SIX_DIGITS)
    shown = " ".join(rankdrift(*words, "--simultaneous").out.split())
    assert "intervals of the whole curve at once at 90%" in shown


def test_an_extrapolation_to_ranks_that_are_there_is_noted(rankdrift, log):
    done = rankdrift("estimate", log, "--extrapolate-to", 5)
    assert done.code == 0
    assert "Note: There was nothing to draw on to rank 5: pairs moved down to rank 60" in done.err
    assert "nothing to draw on" not in rankdrift("estimate", log, "--extrapolate-to", 70).err


def test_only_pairs_shown_below_a_rank(rankdrift, log, tmp_path):
    file = tmp_path / "counts.parquet"
    pairs(3_000, ranks=30, relevance=0.3, spread=0.5, seed=1).counts.save(file)
    words = ("estimate", file, "--clicks", "single", "--json")
    whole, done = rankdrift(*words).json, rankdrift(*words, "--shown-below", 9)
    counts = done.json["provenance"]["counts"]
    assert counts["options"]["restrict"] == {"shown_below": 9}
    assert 0 < counts["pairs"] < 3_000
    assert f"{counts['pairs']:,} of 3,000 pairs are used: those known to have been" in done.err
    assert "Left out" not in done.err
    assert done.json["table"]["propensity"] != whole["table"]["propensity"]
    done = rankdrift("estimate", file, "--shown-below", 30)
    assert done.code == 2 and "shown_below is 30" in done.err
    done = rankdrift("estimate", log, "--shown-below", 9, "--reference", 30)
    assert re.search(r"Note: Left out: 1,\d{3} pairs shown more than 8 times\.", done.err)


NAMED = ("--query=keywords", "--doc=item", "--rank=pos", "--click=hit", "--day=ts")


@pytest.mark.parametrize(
    "dialect", ["duckdb", "spark", "databricks", "bigquery", "snowflake", "trino"]
)
def test_sql_from_names_alone(rankdrift, dialect):
    types = ("--types", "hit=bool,ts=timestamp")
    done = rankdrift("sql", "--dialect", dialect, "--table", "shop.events", *NAMED, *types)
    assert done.code == 0
    assert "WITH" in done.out and "keywords" in done.out.lower()
    assert "import-counts" in done.err
    untried = dialect in ("databricks", "bigquery", "snowflake", "trino")
    assert ("in the warehouse itself they have never run it" in done.err) == untried
    told = rankdrift("sql", "--dialect", dialect, "--table", "t", *NAMED, "--json").json
    assert set(told) == {"dialect", "table", "sql"}


def test_sql_types_change_the_statement(rankdrift, log):
    base = ("sql", "--dialect", "duckdb", "--table", "t")
    plain, typed = (rankdrift(*base, *NAMED, *more).out for more in ([], ["--types", "ts=instant"]))
    assert plain != typed
    assert rankdrift(*base, log, "--types", "click=text").code == 0
    assert rankdrift(*base, *NAMED, "--types", "ts").code == 2
    assert "Did you mean 'bool'" in rankdrift(*base, *NAMED, "--types", "hit=bol").err


def test_sql_takes_options_from_a_file(rankdrift, tmp_path):
    config = tmp_path / "shop.toml"
    config.write_text(
        'query = "keywords"\ndoc = "item"\nrank = "pos"\nclick = "hit"\nmax_rank = 77'
    )
    words = ("sql", "--dialect", "duckdb", "--table", "t", "--config", config)
    assert '"max_rank": 77' in rankdrift(*words).out
    assert '"max_rank": 9' in rankdrift(*words, "--max-rank", 9).out


def test_import_counts_of_something_else(rankdrift, log, tmp_path):
    done = rankdrift("import-counts", log, "-o", tmp_path / "counts.parquet")
    assert done.code == 2
    assert "is not the result of `rankdrift sql`" in done.err
    assert not (tmp_path / "counts.parquet").exists()


@pytest.mark.slow
def test_demo_runs_the_real_steps(rankdrift, tmp_path):
    folder = tmp_path / "demo"
    done = rankdrift("demo", "-o", folder, "--rows", 60_000, "--seed", 3, "--json")
    assert done.code in (0, 1), done.err
    assert done.json.keys() == documented()["demo"]
    for step, verb in (("harvest", "harvest --by day"), ("later", "simulate market")):
        assert done.json[step].keys() == documented()[verb]
    shown = [line[2:].split()[1] for line in done.err.splitlines() if line.startswith("$ ")]
    assert shown == [
        "simulate", "simulate", "inspect", "harvest", "merge", "estimate", "diagnose", "judge",
        "train", "train", "evaluate", "report",
    ]  # fmt: skip
    assert Counts.load(folder / "counts.parquet").funnel.rows == 60_000
    assert len(list((folder / "days").iterdir())) == 4
    page = (folder / "report.html").read_text()
    assert "fair" in page and "biased" in page and "How relevant docs are to queries" in page
    assert f"Open {folder}/report.html" in done.err
    assert done.err.splitlines()[-1] == "Next: rankdrift inspect YOUR_LOG"
    assert done.err.count("Next: ") == 1  # each step is followed by the next one anyway


@pytest.mark.slow
def test_the_demo_s_intervals_hold_its_truth(rankdrift, tmp_path):
    """Of each platform's curve as the report shows it, at ranks 2 to 100. Over seeds 1 to 20 they
    hold 98.4% of the web's and 97.1% of mobile's."""
    steps = dict(demo._steps(tmp_path, demo.ROWS, demo.USUAL))
    steps["simulate"].append("--no-features")  # what rankers need makes no difference here
    for name in ("simulate", "harvest", "merge", "estimate"):
        assert rankdrift(*steps[name], "--quiet").code == 0
    found = Propensities.load(tmp_path / "propensities.json")
    truth = json.loads((tmp_path / "log" / "truth.json").read_text())["propensities"]
    for platform in ("web", "mobile"):
        curve, ranks = found.segment(platform), np.arange(2, 101)
        low, high = (bound[curve.ranks.searchsorted(ranks)] for bound in curve.interval())
        true = np.array(truth[platform]["best_match"])
        inside = (low <= true[ranks - 1] / true[0]) & (true[ranks - 1] / true[0] <= high)
        assert inside.mean() >= 0.9, platform
    assert "batch(40" in found.segment("mobile").method
    assert "batch" not in found.segment("web").method


def test_a_demo_too_small_says_what_is_missing(rankdrift, tmp_path):
    done = rankdrift("demo", "-o", tmp_path / "demo", "--rows", 600, "--json", "--quiet")
    assert done.code == 1
    *first, last = [name for name in done.json if name not in ("folder", "rows")]
    assert first[:3] == ["simulate", "later", "inspect"]
    assert len(done.json[last]["error"]) > 20
    assert done.json["merge"]["funnel"] == done.json["inspect"]["funnel"]
    assert done.err == ""


def test_every_verb_takes_json_and_quiet_and_has_help(rankdrift):
    for verb in VERBS:
        told = CliRunner().invoke(group, [verb, "--help"])
        assert told.exit_code == 0
        assert "--json" in told.output and "--quiet" in told.output
        first = told.output.split("\n\n")[1].strip().replace("\n  ", " ")
        assert first, verb


def test_the_verbs_in_the_help_say_what_their_own_help_says(rankdrift):
    for verb, (_, told) in VERBS.items():
        command = group.get_command(None, verb)
        assert command.name == verb
        assert command.help.startswith(told.rstrip(".?")[:20]), verb


def test_errors_of_the_api_reach_the_user(rankdrift, log, monkeypatch):
    def fail(*args, **options):
        raise RankdriftError("Something is wrong. Do this.")

    monkeypatch.setattr("rankdrift.cli.options.read_log", fail)
    done = rankdrift("inspect", log, "--json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: Something is wrong. Do this.\n")


def test_json_is_one_document(rankdrift, log):
    out = rankdrift("inspect", log, "--json").out
    assert json.loads(out) and out.isascii()
