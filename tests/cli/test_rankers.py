"""train, evaluate and export-training, as typed."""

import json
import shlex
from dataclasses import replace

import pytest
from support.clicklogs import curve, frame, power

from rankdrift.core.errors import BadOption
from rankdrift.reproduce.table import SIZES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("rankers")
    frame().to_parquet(where / "train.parquet")
    frame(seed=1, searches=200, prefix="t").to_parquet(where / "test.parquet")
    curve(power(12)).save(where / "p.csv")
    curve(power(6)).save(where / "short.csv")
    return where


@pytest.fixture(scope="module")
def models(folder):
    """biased.txt and fair.txt, trained on first use."""
    from rankdrift.cli import run

    common = ["train", str(folder / "train.parquet"), "-q", "--trees", "5", "--threads", "1"]
    assert run([*common, "-o", str(folder / "biased.txt")]) == 0
    given = ["--propensities", str(folder / "p.csv")]
    assert run([*common, *given, "-o", str(folder / "fair.txt")]) == 0
    return folder / "biased.txt", folder / "fair.txt"


def test_train(rankdrift, folder, tmp_path):
    done = rankdrift(
        "train", folder / "train.parquet", "--features", "f_1,f_2", "--propensities",
        folder / "p.csv", "--clip", 3, "--validation", 0.2, "--early-stopping", 4, "--trees", 30,
        "--threads", 1, "-o", tmp_path / "m.txt", "--json",
    )  # fmt: skip
    assert done.code == 0
    assert done.json["features"] == ["f_1", "f_2"] and done.json["gains"]["largest"] == 3
    assert done.json["trees"] <= 30 and done.json["history"]
    assert done.err.startswith("Guessed the columns: query = query,")
    assert "about" in done.err and "worth" in done.err and "clipped" in done.err
    meta = json.loads((tmp_path / "m.txt.meta.json").read_text())
    assert meta["options"]["clip"] == 3 and meta["propensities"]
    assert (tmp_path / "m.txt").read_text().startswith("tree")


def test_propensities_may_be_learnt(rankdrift, folder, tmp_path):
    words = ["train", folder / "train.parquet", "--trees", 5, "--threads", 1, "--propensities"]
    done = rankdrift(*words, "dual", "--fixed", "-o", tmp_path / "m.txt", "--json")
    assert done.code == 0 and done.json["options"]["gains"] == "dual"
    learnt = tmp_path / "m.txt.propensities.json"
    assert done.json["learnt"] == str(learnt) and f"learnt are in {learnt}" in done.err
    again = rankdrift(*words, learnt, "--fixed", "-o", tmp_path / "again.txt")
    assert again.code == 0 and "weights  up to" in again.out
    refused = rankdrift(*words, "dual", "--backend", "xgboost", "-o", tmp_path / "x.json")
    assert refused.code == 2 and "trees of LightGBM only" in refused.err


def test_what_was_chosen_is_said_and_fixed_chooses_nothing(rankdrift, tmp_path, monkeypatch):
    from rankdrift.ranking import choosing

    monkeypatch.setattr(choosing, "TREES", 2)
    frame(searches=900, queries=200).to_parquet(tmp_path / "log.parquet")
    words = ["train", tmp_path / "log.parquet", "--trees", 2, "--threads", 1, "-o"]
    done = rankdrift(*words, tmp_path / "a.txt", "--leaves", 6, "--min-rows", 30)
    assert done.code == 0 and "Choosing among 2 settings" in done.err
    assert "6 leaves, 30 rows a leaf, norm" in done.out and "of the ideal DCG" in done.out
    fixed = rankdrift(*words, tmp_path / "b.txt", "--fixed", "--no-norm", "--json").json
    assert fixed["choice"]["tried"] == [] and fixed["choice"]["reason"] == "as given"
    assert (fixed["options"]["leaves"], fixed["options"]["min_rows"]) == (31, 20)


def test_gains_have_a_name_or_are_judgments(rankdrift, folder, tmp_path):
    log, given = folder / "train.parquet", ["--propensities", folder / "p.csv"]
    judged = tmp_path / "judged.parquet"
    assert rankdrift("judge", log, *given, "--min-exposure", 0, "-o", judged, "-q").code == 0
    words = ["train", log, *given, "--fixed", "--trees", 3, "--threads", 1]
    for gains, weights in (
        ("dr", "and beyond that what features expect"),
        ("poisson", "none: clicks are counted by exposure"),
        (judged, "none: judged relevance, up to 0."),
    ):
        done = rankdrift(*words, "--gains", gains, "-o", tmp_path / "m.txt")
        assert done.code == 0 and weights in done.out, gains
    # Of the rows that are learnt from, all were judged.
    rows = done.err.split(" rows show a doc that was judged")[0].splitlines()[-1].split(" of ")
    assert rows[0] == rows[1] and int(rows[0].replace(",", "")) > 1000
    wrong = rankdrift(*words, "--gains", "doubly", "-o", tmp_path / "m.txt")
    assert wrong.code == 2 and "There are ipw, dr, poisson" in wrong.err
    missing = rankdrift(*words, "--gains", "none.parquet", "-o", tmp_path / "m.txt")
    assert missing.code == 2 and "none.parquet" in missing.err


def test_validation_may_be_another_log(rankdrift, folder, tmp_path):
    done = rankdrift(
        "train", folder / "train.parquet", "--validation", folder / "test.parquet", "--trees", 3,
        "--threads", 1, "--backend", "xgboost", "-o", tmp_path / "m.json",
    )  # fmt: skip
    assert done.code == 0
    assert "of the ideal DCG" in done.out and "share of gain" in done.out
    assert "all 1: biased" in done.out


def test_evaluate(rankdrift, folder, models, tmp_path):
    biased, fair = models
    words = ["evaluate", folder / "test.parquet", "--model", biased, "--model", fair]
    done = rankdrift(*words, "--ranks", "1,4,99", "--bootstrap", 60, "--relevance", "relevance",
                     "--propensities", folder / "p.csv", "-o", tmp_path / "t.tex")  # fmt: skip
    assert done.code == 0
    assert "fair over biased" in done.out and "true NDCG" in done.out
    assert "Rank 99: no result was shown at rank 99." in done.out
    assert "fair was trained with these very propensities" in done.err
    assert (tmp_path / "t.tex").read_text().startswith(r"\begin{tabular}")
    _, *told = shlex.split(done.err.splitlines()[-1].removeprefix("Next: "))
    assert told[: len(words)] == [str(word) for word in words]
    assert sorted(told[len(words) :]) == sorted(map(str, [
        "--ranks", "1,4,99", "--bootstrap", 60, "--relevance", "relevance", "--propensities",
        folder / "p.csv", "--output", tmp_path / "t.tex", "-o", "comparison.json",
    ]))  # fmt: skip
    twice = rankdrift("evaluate", folder / "test.parquet", "--model", fair, "--model", fair,
                      "--bootstrap", 20)  # fmt: skip
    assert "AUC fair" in twice.out and "0.5 is chance" in twice.out and "±" not in twice.out
    again = rankdrift(*words, "--baseline", fair, "--bootstrap", 20, "--json", "-q")
    assert again.json["baselines"] == ["fair"] and again.json["models"] == ["biased", "fair"]
    assert again.err == ""


def test_training_queries_in_the_test_are_warned_of(rankdrift, folder, models):
    done = rankdrift("evaluate", folder / "train.parquet", "--model", models[0], "--bootstrap", 20)
    assert done.code == 0 and "of these queries are among those biased was trained" in done.err


def test_export_training(rankdrift, folder, tmp_path):
    done = rankdrift("export-training", folder / "train.parquet", "--propensities",
                     folder / "p.csv", "-o", tmp_path / "t.tsv")  # fmt: skip
    assert done.code == 0
    assert done.out.split() == [str(tmp_path / f"t.tsv{e}") for e in ("", ".query", ".weight",
                                                                       ".conf")]  # fmt: skip
    assert f"in the folder {tmp_path}: lightgbm config=t.tsv.conf" in done.err


@pytest.mark.parametrize("form", ["lightgbm", "weights"])
def test_the_next_of_export_training_trains_on_the_same(rankdrift, folder, tmp_path, form,
                                                        monkeypatch):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    chosen = ["--features", "f_1,f_word", "--propensities", folder / "short.csv", "--beyond",
              "clip", "--clip", "1.5", "--max-rank", "10"]  # fmt: skip
    done = rankdrift("export-training", folder / "train.parquet", *chosen, "--form", form,
                     "-o", "w.csv")  # fmt: skip
    _, *words = shlex.split(done.err.splitlines()[-1].removeprefix("Next: "))
    trained = rankdrift(*words, "--trees", 2, "--json").json
    assert trained["features"] == ["f_1", "f_word"] and trained["gains"]["largest"] == 1.5
    assert trained["gains"]["borrowed"] and trained["file"] == "ranker.txt"


@pytest.mark.parametrize(
    ("words", "told"),
    [(["train", "LOG", "-o", "m.txt", "--features", "g_*"], "No column of the log matches"),
     (["train", "LOG", "-o", "m.txt", "--propensities", "SHORT"], "--beyond clip"),
     (["train", "LOG", "-o", "m.txt", "--propensities", "no.csv"], "no.csv"),
     (["train", "LOG", "-o", "LOG"], "is also an input"),
     (["train", "LOG", "-o", "m.txt", "--early-stopping", "3"], "validation="),
     (["train", "LOG", "-o", "m.txt", "--validation", "0"], "between 0 and 1"),
     (["evaluate", "LOG", "--model", "MODEL", "--clip", "3"], "give propensities too"),
     (["evaluate", "LOG", "--model", "LOG"], "no model"),
     (["evaluate", "LOG", "--model", "MODEL", "--ranks", "1,x"], "whole numbers"),
     (["evaluate", "LOG", "--model", "MODEL", "-o", "a.doc"], "cannot be written as"),
     (["evaluate", "LOG", "--model", "MODEL", "--seed", "-1"], "'-1' is not a whole number from 0"),
     (["reproduce", "table", "--seeds", "1,x"], "whole numbers"),
     (["reproduce", "table", "--seeds", "-1"], "whole numbers from 0"),
     (["reproduce", "table", "--seeds", ""], "whole numbers from 0"),
     (["reproduce", "table", "--models", "ours"], "needs the models"),
     (["reproduce", "table", "--market", "level"], "Did you mean 'levels'"),
     (["reproduce", "table", "-o", "t.doc"], "written as"),
     (["export-training", "LOG", "-o", "a", "--form", "svmlite"], "Did you mean 'svmlight'")],
)  # fmt: skip
def test_what_will_not_do_is_explained(
    rankdrift, folder, models, words, told, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    names = {"LOG": folder / "train.parquet", "SHORT": folder / "short.csv", "MODEL": models[0]}
    done = rankdrift(*(names.get(word, word) for word in words))
    # Rows at ranks that the curve does not reach are a matter of the data.
    assert done.code == (1 if "SHORT" in words else 2)
    assert told in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_no_input_is_written_over(rankdrift, folder, models, tmp_path):
    log, model, test = folder / "train.parquet", models[0], tmp_path / "test.parquet"
    p = tmp_path / "p.csv"
    p.write_bytes((folder / "p.csv").read_bytes())
    test.write_bytes((folder / "test.parquet").read_bytes())
    mine = tmp_path / "mine.json"
    mine.write_text(model.read_text())
    weighed = ["--propensities", p, "-o", p]
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for words in (
        ["train", log, *weighed], ["train", log, "--validation", test, "-o", test],
        ["export-training", log, *weighed], ["evaluate", log, "--model", model, *weighed],
        ["evaluate", log, "--model", mine, "-o", mine],
        ["evaluate", log, "--model", model, "--baseline", mine, "-o", mine],
        ["estimate", test, "-o", test], ["compare", test, "--chart", test],
    ):  # fmt: skip
        done = rankdrift(*words)
        assert done.code == 2 and "is also an input, which would be lost" in done.err, words
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_the_table_is_as_large_as_asked_for(rankdrift, monkeypatch):
    asked = []

    def stand_in(*, size, seeds, **_):
        asked.append((SIZES.get(size, size), tuple(seeds)))
        raise BadOption("seen")

    monkeypatch.setattr("rankdrift.reproduce.table.reproduce_table", stand_in)
    for words in ([], ["--small"], ["--small", "--searches", 1000], ["--searches", 80_000]):
        assert rankdrift("reproduce", "table", *words).code == 2
    assert rankdrift("reproduce", "table", "--small", "--seeds", "4,5").code == 2
    paper, small = SIZES["paper"], SIZES["small"]
    tenth = replace(small, train=1000, test=500, train_rows=400_000, test_rows=150_000, queries=250)
    twice = replace(
        paper, train=80_000, test=20_000, train_rows=32 * 10**6, test_rows=6 * 10**6, queries=20_000
    )
    assert asked == [(paper, (1, 2, 3)), (small, (1,)), (tenth, (1,)), (twice, (1, 2, 3)),
                     (small, (4, 5))]  # fmt: skip


def test_features_that_the_model_needs_and_the_log_lacks(rankdrift, folder, models, tmp_path):
    frame(seed=1, searches=20).drop(columns="f_2").to_parquet(tmp_path / "less.parquet")
    done = rankdrift("evaluate", tmp_path / "less.parquet", "--model", models[0])
    assert done.code == 2 and "'f_2'" in done.err
