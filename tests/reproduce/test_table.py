"""The paper's table, small."""

import json
from dataclasses import replace

import pytest

from rankdrift.core.errors import BadOption
from rankdrift.reproduce.table import (
    PAPER,
    Size,
    Tables,
    is_ours_better,
    reproduce_table,
    save_table,
)


@pytest.mark.slow
def test_ours_beats_biased_by_the_truth(tmp_path):
    """`rankdrift reproduce table` with the two models whose order matters, at a tenth of the
    paper's size and with fewer trees. Seeds 1 to 3 all agree."""
    size = Size(4_000, 2_000, 1_600_000, 650_000, 1_500, trees=40, bootstrap=200)
    found = reproduce_table(
        market="alike", size=size, seeds=(1,), models=("biased", "ours"), threads=1
    )
    assert is_ours_better(found)
    (run,) = found.runs
    assert run.comparison.data["searches"] == size.test
    # Where queries are alike, fixed ranks show it only if the rank says nothing of relevance.
    assert found.expected("ours", "mixed")[0] > 0 > found.expected("ours", "shown")[0]
    assert found.expected("ours", "centred").shape == (1,)
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
    several = Tables((found, replace(found, market="levels")))
    lines = several.to_text().splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["alike", "levels"]
    assert any(line.split()[:2] == ["paper", "+3.4%"] for line in lines)
    plain = several.to_dict()
    assert plain["market"] == "alike" and [o["market"] for o in plain["others"]] == ["levels"]
    assert Tables((found,)).to_text() == found.to_text()
    save_table(several, tmp_path / "several.tex")
    assert (tmp_path / "several.tex").read_text().count("begin{tabular}") == 2
    with pytest.raises(BadOption, match=r"not '\.doc'"):
        save_table(found, tmp_path / "t.doc")


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
