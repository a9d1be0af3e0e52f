"""rankdrift simulate and rankdrift reproduce"""

import json
import re
import shlex

import duckdb
import pytest

from rankdrift import Propensities
from rankdrift.counts.counts import Counts
from rankdrift.simulate.worlds import WORLDS
from rankdrift.simulate.worlds.scene import WorldKind


def test_market(rankdrift, tmp_path):
    folder = tmp_path / "market"
    done = rankdrift("simulate", "market", "-o", folder, "--rows", 3_000, "--days", 2, "--json")
    assert done.code == 0
    assert done.json["rows"] == 3_000
    assert sorted(path.name for path in folder.iterdir()) == [
        "market-2024-01-01.parquet",
        "market-2024-01-02.parquet",
        "truth.json",
    ]
    assert json.loads((folder / "truth.json").read_text())["options"]["rows"] == 3_000
    assert "rankdrift harvest" in done.err


def test_what_follows_a_market_has_what_checks_over_time_need(rankdrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--rows", 150_000, "--days", 2, "--queries", 40, "--click-rate", 0.3, "--no-features"]
    made = rankdrift("simulate", "market", *words)
    verb, *follow = shlex.split(made.err.splitlines()[-1].removeprefix("Next: rankdrift "))
    assert verb == "harvest" and rankdrift(verb, *follow).code == 0
    checks = {
        c["name"]: c for c in rankdrift("diagnose", "counts.parquet", "--json").json["checks"]
    }
    for name in ("trend", "gaps"):
        assert "p_value" in checks[name]["numbers"], checks[name]["words"]


def test_the_folder_of_a_market_is_a_log(rankdrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rankdrift("simulate", "market", "-o", "market", "--rows", 20_000, "--queries", 20)
    words = ["--query", "keywords,category,aspects"]
    for more in (
        ["inspect", "market"],
        ["harvest", "market", "-o", "counts.parquet"],
        ["compare", "market", "--methods", "ctr", "--max-rank", 5],
        ["export-training", "market", "--max-rank", 5, "-o", "training"],
        ["train", "market", "--max-rank", 10, "--trees", 2, "-o", "ranker.txt"],
        ["evaluate", "market", "--max-rank", 10, "--model", "ranker.txt"],
    ):
        done = rankdrift(*more, *words)
        assert done.code in (0, 1), done.err
    assert Counts.load("counts.parquet").funnel.rows == 20_000


def test_market_refuses(rankdrift, tmp_path):
    done = rankdrift("simulate", "market", "-o", tmp_path / "m", "--bots", 2)
    assert (done.code, done.out) == (2, "")
    assert "bots is a share" in done.err


def test_pairs_then_like(rankdrift, tmp_path):
    file = tmp_path / "counts.parquet"
    words = ["--pairs", 20_000, "--ranks", 30, "--relevance", 0.3]
    made = rankdrift("simulate", "pairs", "-o", file, *words, "--json")
    assert made.code == 0
    assert len(made.json["truth"]) == 30
    assert Counts.load(file).n_pairs == 20_000
    done = rankdrift("simulate", "like", file, "--replays", 6)
    assert done.code == 0
    assert "Overall the curve comes back" in done.out
    told = rankdrift("simulate", "like", file, "--replays", 6, "--json", "--quiet")
    assert told.json["replays"] == 6
    assert told.err == ""


def test_like_tells_of_pairs_that_the_truth_does_not(rankdrift, tmp_path):
    file, short = tmp_path / "counts.parquet", tmp_path / "short.csv"
    words = ["--pairs", 5_000, "--ranks", 30, "--relevance", 0.3]
    rankdrift("simulate", "pairs", "-o", file, *words)
    assert rankdrift("estimate", file, "-o", short).code == 0
    rows = short.read_text().splitlines(keepends=True)
    short.write_text("".join(rows[:11]))  # ranks 1 to 10
    assert Propensities.load(short).ranks[-1] == 10
    call = ["simulate", "like", file, "--truth", short, "--replays", 3]
    many = rankdrift(*call, "--json").json["left_out"]
    told = " ".join(rankdrift(*call).out.split())
    assert f"{many:,} pairs were left out: the truth tells of ranks 1–10 only." in told
    assert many > 0 and "left out" not in rankdrift("simulate", "like", file, "--replays", 3).out


def test_a_world_is_written_with_its_truth(rankdrift, tmp_path):
    words = ["--pairs", 300, "--strength", 2, "--days", 2, "--ranks", 20, "--queries", 40]
    call = ["simulate", "world", "bots", "-o", tmp_path, *words, "--columns", "user,platform"]
    done = rankdrift(*call, "--json")
    assert done.code == 0
    days = ["world-2024-01-01.parquet", "world-2024-01-02.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["truth.json", *days]
    assert [done.json["valid"], done.json["harmful"]] == [False, True]
    assert done.json["options"]["queries"] == 40
    names = duckdb.read_parquet(done.json["files"]).columns
    assert names == "day search time query doc rank click user platform".split()
    assert len(json.loads((tmp_path / "truth.json").read_text())["propensities"]) == 20
    verb, *follow = shlex.split(done.err.splitlines()[-1].removeprefix("Next: rankdrift "))
    counts = tmp_path / "counts.parquet"
    assert verb == "harvest" and rankdrift(verb, *follow[:-1], counts).code == 0
    assert Counts.load(counts).n_pairs > 100
    told = rankdrift(*call)
    assert "Some users are bots" in told.err and f"in {tmp_path}" in told.out


def test_the_help_lists_the_worlds_of_the_registry(rankdrift):
    own = WorldKind("own", "Nothing at all.", valid=False)
    with WORLDS.registered(own):
        told = rankdrift("simulate", "world", "--help-all").out
        short = " ".join(rankdrift("simulate", "world", "--help").out.split())
    for kind in (*WORLDS, own):
        assert f"  {kind.name} " in told and kind.name in re.split(",? ", short)
    valid, broken = told.split("Assumptions hold:")[1].split("Assumptions are broken:")
    assert " valid " in valid and " own " in broken and "Nothing at all." in broken


def test_a_world_that_there_is_not(rankdrift, tmp_path):
    done = rankdrift("simulate", "world", "price-cut", "-o", tmp_path / "w")
    assert done.code == 2 and "Did you mean 'price-cuts'?" in done.err
    done = rankdrift("simulate", "world", "bots", "-o", tmp_path / "w", "--columns", "scores")
    assert done.code == 2 and "Did you mean 'score'?" in done.err


def test_like_of_too_little_exits_with_1(rankdrift, tmp_path):
    file = tmp_path / "counts.parquet"
    rankdrift("simulate", "pairs", "-o", file, "--pairs", 60, "--ranks", 30)
    assert rankdrift("simulate", "like", file, "--replays", 5).code == 1


def test_pairs_follow_curves_from_files(rankdrift, tmp_path):
    rates = tmp_path / "ctr.csv"
    rates.write_text("rank,ctr\n1,0.5\n20,0.5\n")
    counts, curve, log = (tmp_path / name for name in ("c.parquet", "p.csv", "log.parquet"))
    words = ["--pairs", 2_000, "--ranks", 20]
    assert rankdrift("simulate", "pairs", "-o", counts, *words).code == 0
    assert rankdrift("estimate", counts, "-o", curve).code == 0
    done = rankdrift(
        "simulate", "pairs", "-o", log, "--log", *words, "--propensities", curve, "--json"
    )
    assert done.code == 0
    assert done.json["truth"][0] == 1
    assert rankdrift("harvest", log, "-o", tmp_path / "again.parquet").code == 0
    done = rankdrift("simulate", "pairs", "-o", tmp_path / "log", "--log", *words)
    assert done.code == 2 and "Call it log.parquet." in done.err  # what comes next would not know
    done = rankdrift("simulate", "pairs", "-o", counts, *words, "--ctr", rates)
    assert done.code == 2  # more clicks than the paper's curve allows deep down
    assert "click-through rates must be below the propensities" in done.err


@pytest.mark.parametrize("text", ["rank,ctr\n1,0.1\n", "place,rate\n1,2\n", "rank,ctr\n1,much\n"])
def test_click_rates_that_do_not_tell(rankdrift, tmp_path, text):
    rates = tmp_path / "ctr.csv"
    rates.write_text(text)
    done = rankdrift("simulate", "pairs", "-o", tmp_path / "c", "--ranks", 20, "--ctr", rates)
    assert done.code == 2
    assert "columns rank and ctr" in done.err


def test_figures_of_too_little_are_refused(rankdrift, tmp_path):
    done = rankdrift("reproduce", "figures", "-o", tmp_path / "f", "--rows", 1_000)
    assert done.code == 2
    assert "would be noise" in done.err
