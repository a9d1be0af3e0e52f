"""What is learnt from: clicks by weight, doubly robust gains, counts of clicks, judgments."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.clicklogs import curve, frame, matrix, power

from rankdrift.core.errors import BadLog, BadOption, NotIdentified
from rankdrift.ranking.backends import BACKENDS, Settings
from rankdrift.ranking.expecting import expect_clicks
from rankdrift.ranking.gains import Weighting
from rankdrift.ranking.judged import judged_relevance
from rankdrift.ranking.matrix import key_of
from rankdrift.ranking.measures import measures
from rankdrift.ranking.training import train

P = curve(power(12, 1.0))
SMALL = {"trees": 30, "leaves": 8, "min_rows": 100, "norm": True, "threads": 1}
# Lists are ordered by a feature that tells nothing, so that raw clicks blame it.
PRESORTED = {"p": power(12, 1.0), "presort": 3.0}


@pytest.fixture(scope="module")
def rows():
    return matrix(frame(searches=1500, queries=400, **PRESORTED))


@pytest.fixture(scope="module")
def test_rows():
    return matrix(frame(seed=9, searches=300, prefix="t", **PRESORTED))


def ndcg(ranker, rows):
    return measures(rows, ranker.predict(rows), None)["true NDCG"].value


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_every_gain_corrects_what_raw_clicks_get_wrong(rows, test_rows, backend):
    options = dict(SMALL, backend=backend)
    biased = ndcg(train(rows, **options), test_rows)
    for gains in ("ipw", "dr", "poisson"):
        more = {**options, "norm": False} if gains == "poisson" else options
        made = train(rows, propensities=P, gains=gains, **more)
        assert made.options["gains"] == gains
        # The biased ranker loses more than this to the feature that sorts.
        assert ndcg(made, test_rows) > biased + 0.01, gains
    assert train(rows, propensities=P, gains="dr", **options).options["clip"] == 2.0


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_what_features_expect_is_the_relevance(rows, backend):
    """Searches with a click are a part of all, so that the level is free; the order is not."""
    how = Weighting(P, None, "error", False)
    found = expect_clicks(rows, how, Settings(trees=60, threads=1), BACKENDS.get(backend))
    assert found.max() <= 1 and found.min() > 0
    assert np.corrcoef(np.log(found), np.log(rows.relevance))[0, 1] > 0.85
    assert found.mean() == pytest.approx(rows.relevance.mean(), rel=0.1)


def test_what_is_expected_of_a_query_never_saw_its_clicks(rows):
    how, settings = Weighting(P, None, "error", False), Settings(trees=5, threads=1)
    backend = BACKENDS.get("lightgbm")
    one = rows.query == 7
    turned = replace(rows, click=np.where(one, ~rows.click, rows.click))
    before, after = (expect_clicks(each, how, settings, backend) for each in (rows, turned))
    np.testing.assert_array_equal(before[one], after[one])
    assert (before != after).any()
    with pytest.raises(BadLog, match="5 queries or more: there are 3"):
        expect_clicks(rows.take(rows.query < 3), how, settings, backend)


def test_judgments_take_the_place_of_clicks(rows, test_rows):
    """The truth as judgments, but for a tenth of the pairs and some that no row shows."""
    texts = np.sort([f"q{i}" for i in range(400)])
    place = {key_of(str(text)): i for i, text in enumerate(texts)}
    query = np.array([place[key] for key in rows.query_keys])[rows.query]
    rows = replace(rows, doc=np.array([f"d{i}" for i in range(len(rows))]))
    docs = np.append(rows.doc, "d_unseen")
    kept = np.arange(len(rows)) % 10 > 0
    at = np.append(np.flatnonzero(kept), len(rows))
    judgments = SimpleNamespace(
        queries=texts[:, None], docs=docs, query=np.append(query, 0)[at], doc=at,
        relevance=np.append(rows.relevance, 1.0)[at], prior={"relevance": 0.1},
    )  # fmt: skip
    found, known = judged_relevance(rows, judgments)
    assert known == kept.sum()
    np.testing.assert_array_equal(found, np.where(kept, rows.relevance, 0.1))
    made = train(rows, propensities=P, gains=judgments, **SMALL)
    assert made.options["gains"] == "judgments" and made.options["clip"] is None
    assert ndcg(made, test_rows) > 0.97
    with pytest.raises(BadOption, match="docs=True"):
        judged_relevance(replace(rows, doc=None), judgments)
    with pytest.raises(BadOption, match="None of the rows"):
        judged_relevance(replace(rows, doc=np.char.add(rows.doc, "x")), judgments)


def test_what_does_not_go_together_is_said(rows):
    for options, words in (
        ({"gains": "dR"}, "Did you mean"),
        ({"gains": "dr", "propensities": None}, "need propensities"),
        ({"gains": "poisson", "clip": 3}, "have none"),
        ({"gains": "poisson", "norm": True}, "compare no pairs"),
        ({"gains": "poisson", "validation": 0.1}, "no lists"),
    ):
        with pytest.raises(BadOption, match=words):
            train(rows, **{"propensities": P, "trees": 2, **options})
    short = curve(power(4))
    with pytest.raises(NotIdentified, match="at ranks without a propensity"):
        train(rows, propensities=short, gains="poisson", trees=2, threads=1)
