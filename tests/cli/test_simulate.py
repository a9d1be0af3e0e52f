"""rankdrift simulate and rankdrift reproduce"""

import json

import pytest

from rankdrift.counts import Counts


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
