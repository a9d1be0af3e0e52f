"""The code to copy is the same wherever it is shown, runs, and weighs clicks as `train` does."""

import textwrap
from pathlib import Path

import numpy as np
import pytest
from support.curve_example import DEVICES, by_device, hand

import rankdrift
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.ranking.gains import ideal_dcg
from rankdrift.ranking.recipes import IDEAL, LIBRARIES, recipe
from rankdrift.report.page.snippets import snippets

PAGE = Path(__file__).parents[2] / "docs" / "using-the-weights.md"
SEARCHES, RANKS = 90, (1, 2, 3, 5)


def rows():
    """Searches of four results each, of three devices, one of them missing."""
    rng = np.random.default_rng(0)
    many = SEARCHES * len(RANKS)
    return {
        "x": rng.normal(size=(many, 2)),
        "rank": np.tile(RANKS, SEARCHES),
        "click": rng.random(many) < 0.3,
        "sizes": np.full(SEARCHES, len(RANKS)),
        "segment": np.repeat([DEVICES[i % 3][0] for i in range(SEARCHES)], len(RANKS)),
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_segments_are_weighed_each_by_its_own_curve(library, tmp_path):
    by_device().save(tmp_path / "p.json")
    names = rows()
    code = recipe(library, str(tmp_path / "p.json"), segments=True)
    exec(code.replace("num_boost_round=100", "num_boost_round=2"), names)
    p, gain = by_device(), np.zeros(len(names["rank"]))
    for (device,) in DEVICES:
        here = names["click"] & (names["segment"] == device)
        gain[here] = np.minimum(1 / p.segment(device).at(names["rank"][here]), 50)
    assert names["gain"] == pytest.approx(gain)
    assert len(set(names["gain"].round(9))) > len(RANKS)  # segments differ
    search = np.repeat(np.arange(SEARCHES), len(RANKS))
    assert names["ideal"] == pytest.approx(ideal_dcg(gain, search, SEARCHES))
    assert len(names["ranker"].predict(data_of(library, names["x"]))) == len(names["rank"])


def data_of(library, x):
    if library == "LightGBM":
        return x
    import xgboost

    return xgboost.DMatrix(x)


def test_the_page_the_docs_and_the_docstring_show_the_same():
    text = PAGE.read_text()
    assert recipe("LightGBM", "propensities.csv", segments=False) in text
    assert LIBRARIES["XGBoost"] in text
    shown = {s.title: s.code for s in snippets(by_device(), "p.json", queries=False)}
    for library in LIBRARIES:
        assert shown[library] == recipe(library, "p.json", segments=True)
    told = rankdrift.Propensities.weights.__doc__
    assert textwrap.indent(IDEAL, " " * 12) in told
    assert "gain[click] = p.weights(rank[click], clip=50, segments=segment[click])" in told


def test_weights_of_segments_that_there_are_not():
    p = by_device()
    assert p.weights([2], segments=["web"]) == pytest.approx(1 / p.segment("web").at([2]))
    assert p.weights([2], segments=[np.nan]) == pytest.approx(1 / p.segment(None).at([2]))
    assert p.weights([5], clip=3, segments=[["web"]]).tolist() == [3]
    with pytest.raises(NotIdentified, match=r"1 of 2 clicks is of segments without .*'tv'"):
        p.weights([2, 2], segments=["web", "tv"])
    with pytest.raises(BadOption, match=r"shape \(1,\) for 2 ranks.*the device"):
        p.weights([2, 2], segments=["web"])
    with pytest.raises(BadOption, match="have no segments"):
        hand().weights([2], segments=["web"])
