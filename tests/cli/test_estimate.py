"""rankdrift estimate --adjust, and how verbs that diagnose end."""

import json

import numpy as np
import pytest
from support.worlds import listed

from rankdrift import Propensities, harvest, read_log
from rankdrift.cli.estimate import ADJUST
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.diagnosing import Check, Diagnosis
from rankdrift.estimation.adjusting import ADJUSTMENTS
from rankdrift.simulate import pairs, world

PAIRS = 6_000  # enough for the sign and the size of the correction, in seconds
TWELVE_DIGITS = 1e-11  # of propensities in a file
COLUMNS = ("score", "ranker", "platform")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Counts of a ranker that knows each user's taste: the plain curve is far too steep."""
    folder = tmp_path_factory.mktemp("personalised")
    made = world("personalised", pairs=PAIRS, seed=1, columns=COLUMNS)
    made.write(folder / "log")
    counts = harvest(read_log(folder / "log", time="time", segment="platform", threads=1))
    counts.save(folder / "counts.parquet")
    return made, folder / "counts.parquet"


def test_the_corrected_curve_stands_beside_the_plain_one(rankdrift, lab, tmp_path):
    made, counts = lab
    file = tmp_path / "p.json"
    done = rankdrift("estimate", counts, "--adjust", "score", "-o", file)
    assert done.code == 0, done.err
    told = rankdrift("estimate", counts, "--adjust", "score", "--json").json
    plain = rankdrift("estimate", counts, "--json").json
    assert told["plain"] == plain["table"] and plain["plain"] is None
    assert told["provenance"]["adjust"] == "score"
    heads, _, first, *_ = done.out.splitlines()[2:]
    assert heads.split()[:5] == ["rank", "propensity", "low", "high", "plain"]
    assert first.split()[:5] == ["1", "1.000", "1.000", "1.000", "1.000"]
    (last,) = (row for row in done.out.splitlines() if row.startswith("40 "))
    after, before = told["table"]["propensity"][-1], plain["table"]["propensity"][-1]
    assert last.split()[1] == f"{after:.3f}" and last.split()[4] == f"{before:.3f}"
    moved = np.log(told["table"]["propensity"]) - np.log(plain["table"]["propensity"])
    words = " ".join(done.out.split())
    mean = f"{np.expm1(moved.mean()):.0%} above the plain ones"
    assert f"Adjusted by score: on average over ranks propensities are {mean}" in words
    kept = Propensities.load(file)
    assert kept.method.endswith("adjusted for the old ranker's score and time")
    assert kept.values == pytest.approx(told["table"]["propensity"], rel=TWELVE_DIGITS)
    truth = np.log(made.truth[-1])
    assert abs(np.log(after) - truth) < abs(np.log(before) - truth)


def test_each_segment_is_corrected_by_its_own_clicks(rankdrift, lab, tmp_path):
    file = tmp_path / "p.json"
    words = ["estimate", lab[1], "--adjust", "score", "--by", "platform"]
    done = rankdrift(*words, "-o", file)
    assert done.code == 0, done.err
    for name in ("web", "mobile"):
        assert f"{name}, by its own clicks: on average" in " ".join(done.out.split())
    assert done.out.count(" plain ") >= 3  # a column of each table
    told = rankdrift(*words, "--full", "--json").json
    assert told["plain"]["segment"] == told["table"]["segment"]
    moved = {
        (segment, pooling): after / before
        for segment, pooling, rank, after, before in zip(
            *(told["table"][name] for name in ("segment", "pooling", "rank", "propensity")),
            told["plain"]["propensity"],
            strict=True,
        )
        if rank == 40
    }
    assert len({round(ratio, 6) for ratio in moved.values()}) == len(moved) == 5
    assert Propensities.load(file).segment("web").method.count("score and time") == 1


def test_counts_without_the_column_are_told_what_they_lack(rankdrift, lab, log):
    done = rankdrift("estimate", log, "--adjust", "score")
    assert (done.code, done.out) == (1, "")
    assert "cannot be adjusted by score: the counts do not have it" in done.err
    assert "--score NAME" in done.err
    done = rankdrift("estimate", lab[1], "--adjust", "scor")
    assert done.code == 2 and "'scor' is not one of 'score', 'ranker'" in done.err
    done = rankdrift("estimate", lab[1], "--adjust", "score", "--clicks", "single")
    assert done.code == 2 and "--clicks every" in done.err


def test_the_adjustments_in_the_help_are_those_there_are():
    assert tuple(ADJUST.choices) == ADJUSTMENTS.names


@pytest.mark.parametrize("verdict", Verdict)
def test_only_what_is_serious_ends_with_1(rankdrift, lab, tmp_path, monkeypatch, verdict):
    found = Diagnosis(
        (
            Check("score", verdict, "So."),
            Check("relevance", Verdict.GOOD, "So."),
            Check("queries", Verdict.GOOD, "So."),
        )
    )
    assert found.verdict is verdict
    monkeypatch.setattr("rankdrift.diagnosis.diagnosing.diagnose", lambda *_, **__: found)
    code = 1 if verdict is Verdict.SERIOUS else 0
    assert rankdrift("diagnose", lab[1]).code == code
    file = tmp_path / "diagnosis.json"
    file.write_text(json.dumps(rankdrift("diagnose", lab[1], "--json").json))
    done = rankdrift("report", file, "-o", tmp_path / "report.html", "--json")
    assert (done.code, done.json["verdict"]) == (code, verdict)


def test_diagnose_tells_everything_as_json(rankdrift, lab):
    done = rankdrift("diagnose", lab[1], "--json")
    assert done.json.keys() >= {"verdict", "unseen", "checks"}
    (score,) = (check for check in done.json["checks"] if check["name"] == "score")
    numbers = score["numbers"]
    assert len(numbers["ranks"]) == len(numbers["difference"]) == len(numbers["error"])


@pytest.mark.parametrize("worst", [0, 1])
def test_a_demo_ends_as_its_diagnosis_does(rankdrift, tmp_path, monkeypatch, worst):
    codes = {"diagnose": worst}
    monkeypatch.setattr("rankdrift.cli.demo._step", lambda _, words: (codes.get(words[0], 0), {}))
    assert rankdrift("demo", "-o", tmp_path / "demo").code == worst


def test_counts_are_cut_at_max_rank_and_take_no_option_of_a_log(rankdrift, lab):
    _, counts = lab
    cut = rankdrift("estimate", counts, "--max-rank", 8, "--json")
    assert max(cut.json["table"]["rank"]) == 8
    assert "moved within ranks 1–8 and got a click there" in cut.err
    refused = rankdrift("estimate", counts, "--query", "q")
    assert refused.code == 2 and "--query: that is how to read a log" in refused.err
    shown = rankdrift("estimate", counts, "--max-rank", 10).out
    assert {line.split()[0] for line in shown.splitlines() if line.strip()} >= set("123456789")


def test_a_curve_that_says_nothing_is_told_and_ends_with_1(rankdrift, tmp_path):
    """Seven clicks between each two ranks: intervals reach from one number to many times that."""
    rows = [(((rank, c), (rank + 1, 1 - c)), b, 1) for rank in range(1, 9) for b in range(4)
            for c in (0, 1)]  # fmt: skip
    listed(rows, buckets=16).save(tmp_path / "few.parquet")
    few = rankdrift("estimate", tmp_path / "few.parquet", "--curve", "direct")
    assert few.code == 1
    assert "This curve says nothing: at " in few.err and "rankdrift inspect" in few.err
    many = [(shown, b, 200) for shown, b, _ in rows]
    listed(many, buckets=16).save(tmp_path / "many.parquet")
    enough = rankdrift("estimate", tmp_path / "many.parquet", "--curve", "direct")
    assert enough.code == 0 and "says nothing" not in enough.err


def test_a_posterior_says_that_its_intervals_are_credible(rankdrift, tmp_path):
    pairs(800, ranks=5, seed=1, relevance=0.2).counts.save(tmp_path / "counts.parquet")
    words = ["estimate", tmp_path / "counts.parquet", "--method", "bayes", "--draws", "800"]
    done = rankdrift(*words, "--reference", "1", "-o", tmp_path / "p.json")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "intervals at 95%, credible ones, from draws of the posterior" in told
    kept = Propensities.load(tmp_path / "p.json")
    assert kept.errors == "posterior" and len(kept.draws) == 800
    refused = rankdrift(*words, "--curve", "direct")
    assert refused.code == 2 and "--curve does not go with --method bayes" in refused.err
