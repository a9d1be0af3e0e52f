"""The paper's table, small; what fixed ranks tell; and real features."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from support.clicklogs import frame, matrix, power

from rankdrift.core.errors import BadLog, BadOption
from rankdrift.ranking.auc import auc
from rankdrift.ranking.matrix import Matrix
from rankdrift.reproduce.fixed_ranks import expected_auc, slopes
from rankdrift.reproduce.real_features import as_text, judge, read_svmlight, reproduce_real
from rankdrift.reproduce.table import (
    PAPER,
    SIZES,
    Size,
    is_ours_better,
    reproduce_table,
    save_table,
)

DATA = os.environ.get("RANKDRIFT_DATA")


@pytest.mark.slow
def test_ours_beats_biased_by_the_truth(tmp_path):
    """`rankdrift reproduce table --small`, of which two models are needed for their order."""
    found = reproduce_table(size="small", models=("biased", "ours"), threads=1)
    assert is_ours_better(found)
    (run,) = found.runs
    assert run.comparison.data["searches"] == SIZES["small"].test
    # Fixed ranks show it only where the rank says nothing of relevance.
    assert found.expected("ours", "mixed")[0] > 0 > found.expected("ours", "shown")[0]
    alone, given_features = run.fixed_ranks.slopes
    assert alone < 0 < given_features
    biased, ours = (found.measure("true NDCG", model)[0] for model in ("biased", "ours"))
    assert 0.75 < biased < ours < 1
    drawn = found.plot().chart.data.values
    assert [row["ndcg"] for row in drawn] == [biased, ours]
    for ending in ("json", "txt", "tex"):
        save_table(found, tmp_path / f"t.{ending}")
    plain = json.loads((tmp_path / "t.json").read_text())
    assert plain["ours"]["biased"]["1"]["by_seed"] == [
        found.improvements("ours", "biased", 1)[0, 0]
    ]
    text = (tmp_path / "t.txt").read_text()
    assert "over biased, paper" in text and "+6.8 ± 1.7%" in text and "true NDCG" in text
    assert r"$\pm$" in (tmp_path / "t.tex").read_text()
    with pytest.raises(BadOption, match=r"not '\.doc'"):
        save_table(found, tmp_path / "t.doc")


def test_expected_auc_is_the_mean_over_draws_of_clicks():
    table = frame(searches=400, size=3)
    rows, p = matrix(table, ("f_1",)), power(3)
    score = table["f_1"].to_numpy() + table["f_3"].to_numpy()
    rng, drawn = np.random.default_rng(5), []
    chance = rows.relevance * p[rows.rank - 1]
    for _ in range(400):
        click = rng.random(len(rows)) < chance
        at = [rows.rank == rank for rank in (1, 2)]
        drawn.append(np.average([auc(score[a], click[a]) for a in at],
                                weights=[chance[a].sum() for a in at]))  # fmt: skip
    error = np.std(drawn) / np.sqrt(len(drawn))
    # Four standard errors, and what 400 results compared with themselves may add.
    assert expected_auc(rows, score, p) == pytest.approx(np.mean(drawn), abs=4 * error + 1 / 400)


def test_slopes_tell_rank_from_features():
    """Further up the feature is larger, and relevance less than the feature says."""
    rng = np.random.default_rng(0)
    rank = np.tile(np.arange(1, 41), 50)
    x = rng.normal(size=len(rank)) - np.log(rank)
    logit = x + 0.5 * np.log(rank)
    z = 1 / (1 + np.exp(-logit))
    rows = Matrix.from_arrays(x[:, None], rank=rank, click=z > 2, query=rank * 0, relevance=z)
    alone, given_features = slopes(rows)
    assert alone == pytest.approx(-0.5, abs=0.1)  # noise of 2,000 rows
    assert given_features == pytest.approx(0.5, abs=1e-4)  # features are 32 bits


def test_the_papers_numbers_are_the_papers():
    assert list(PAPER) == [1, 2, 4, 8, 16, 32]
    assert PAPER[16] == (6.8, 1.7, 1.1, 0.6)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"size": "smal"}, "Did you mean 'small'"), ({"seeds": ()}, "one seed"),
     ({"models": ("biased",)}, "needs the models"), ({"models": ("EMM",)}, "No model 'EMM'"),
     ({"size": Size(10**6, 10, 20_000, 5_000, 50), "models": ("biased", "ours")}, "more rows")],
)  # fmt: skip
def test_bad_requests_are_explained(options, words):
    with pytest.raises(BadOption, match=words):
        reproduce_table(**options)


def test_svmlight_is_read_with_its_queries(tmp_path):
    (tmp_path / "a").write_text("2 0:1.5 2:3\n0 1:4\n1 2:-1 9:1\n")
    (tmp_path / "a.query").write_text("2\n1\n")
    found = read_svmlight(tmp_path / "a", features=3)
    assert found.x.tolist() == [[1.5, 0, 3], [0, 4, 0], [0, 0, -1]]
    assert found.label.tolist() == [2, 0, 1] and found.query.tolist() == [0, 0, 1]
    assert found.gain.tolist() == [3, 0, 1]
    (tmp_path / "a.query").write_text("2\n")
    with pytest.raises(BadLog, match="3 rows, but its queries 2"):
        read_svmlight(tmp_path / "a")
    with pytest.raises(BadLog, match="Cannot read"):
        read_svmlight(tmp_path / "b")
    for rows, sizes, words in (
        ("hello world\n", "1\n", "a is no ranking set"), ("1 0:1\n", "x\n", "is no ranking set"),
        ("1 0:1\n0 0:2\n", "2\n", "has 1 queries and 2 values"), ("", "", "has 0 queries"),
        ("1 -1:1\n0 0:2\n", "1\n1\n", "count from 0"),
        ("9 0:1\n0 0:2\n", "1\n1\n", "labels from 0 to 9"),
    ):  # fmt: skip
        (tmp_path / "a").write_text(rows)
        (tmp_path / "a.query").write_text(sizes)
        with pytest.raises(BadLog, match=words):
            read_svmlight(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\xdf\xff")
    with pytest.raises(BadLog, match="is no ranking set"):
        read_svmlight(tmp_path / "a")
    (tmp_path / "z.gz").write_bytes(gzip.compress(b"1 0:1\n" * 99)[:-9])
    with pytest.raises(BadLog, match="Cannot read"):
        read_svmlight(tmp_path / "z.gz")


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="RANKDRIFT_DATA is not set")
def test_real_features_with_simulated_clicks():
    """All models learn from clicks what helps by labels; 50 test queries do not tell them apart."""
    folder = Path(DATA) / "lambdarank"
    found = reproduce_real(
        folder / "rank.train.gz", folder / "rank.test.gz", seeds=(1,),
        models=("biased", "ours", "oracle"), trees=15, searches=8, threads=1,
    )  # fmt: skip
    test = read_svmlight(folder / "rank.test.gz")
    by_lot = np.random.default_rng(0).random(len(test.label))
    chance = judge(test, by_lot)
    assert set(found) == {"shown", "biased", "ours", "oracle", "labels"}
    for model in ("biased", "ours", "oracle", "labels"):
        assert found[model][0] > chance + 0.05
    assert as_text(found).splitlines()[2].split() == ["biased", f"{found['biased'][0]:.4f}"]
