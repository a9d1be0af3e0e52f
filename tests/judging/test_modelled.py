"""Judgments by click models: looks by brute force, known truth recovered, parts that add up."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

import rankdrift
from rankdrift.clickmodels.model import log_likelihood
from rankdrift.clickmodels.models import MODELS, judging_models
from rankdrift.clickmodels.searches import make_searches
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.judging.judging import judge
from rankdrift.judging.modelled import read_modelled

RANKS, QUERIES, DOCS = 6, 60, 12
LOOKS = np.append(0.5, 0.9 / np.arange(1, RANKS + 1) ** 0.7)
AFTER = np.outer(LOOKS, np.append(1.0, np.full(RANKS, 0.6)))


def truth_of(name, pairs, rng):
    z, satisfies = rng.beta(1, 4, pairs), rng.beta(3, 2, pairs)
    numbers = {
        "dctr": (z,),
        "pbm": (z, LOOKS),
        "cm": (z,),
        "dcm": (z, np.append(0.5, np.linspace(0.4, 0.8, RANKS))),
        "ccm": (z, 0.9, 0.8, 0.2),
        "ubm": (z, AFTER),
        "sdbn": (z, satisfies),
        "dbn": (z, satisfies, 0.85),
    }
    return MODELS.get(name)(*numbers[name])


def top(model):
    """What a look at the top of a list is, in the units of the model."""
    return {"pbm": LOOKS[1], "ubm": AFTER[1, 0]}.get(model.name, 1.0)


@pytest.mark.parametrize("name", judging_models())
def test_looks_are_what_own_relevance_is_multiplied_with(name):
    """Set the relevance of one result of every search: the likelihood of the search is to fall in
    proportion to it where that result was not clicked."""
    rng = np.random.default_rng(3)
    n = 60
    lists = make_searches(
        np.full(n, RANKS),
        np.arange(n * RANKS),
        np.tile(np.arange(1, RANKS + 1), n),
        np.zeros(n * RANKS, bool),
        np.repeat(np.arange(n), RANKS),
    )
    model = truth_of(name, n * RANKS, rng)
    data = model.sample(lists, rng)
    of, relevance = data.lists.list_of_rows(), "rates" if name == "dctr" else "z"
    looked = model.looked_at(data)

    def likelihoods(rank, z):
        changed = model.relevance().copy()
        changed[data.pair[data.rank == rank]] = z
        given = replace(model, **{relevance: changed}).conditional_click_probabilities(data)
        return np.bincount(of, log_likelihood(given, data.click))

    missed = 0
    for rank in range(1, RANKS + 1):
        fall = np.exp(likelihoods(rank, 0.6) - likelihoods(rank, 1e-9))
        here = np.flatnonzero((data.rank == rank) & ~data.click)
        expected = 1 - 0.6 * top(model) * looked[here]
        np.testing.assert_allclose(fall[of[here]], expected, atol=1e-6)
        missed += len(here)
    assert n < missed < n * RANKS
    given = model.conditional_click_probabilities(data) / model.relevance()[data.pair]
    np.testing.assert_allclose(looked[data.click] * top(model), given[data.click], rtol=1e-9)


def drawn(name, seed=5, n=9_000):
    """(table, relevance at the top by doc): the ranker knows half of what is relevant."""
    rng = np.random.default_rng(seed)
    model = truth_of(name, QUERIES * DOCS, rng)
    query = rng.choice(QUERIES, n, p=(w := 1 / np.arange(1, QUERIES + 1) ** 0.7) / w.sum())
    known = 0.5 * np.log(model.relevance().reshape(-1, DOCS)[query])
    doc = np.argsort(-known - 0.5 * rng.gumbel(size=known.shape), axis=1)[:, :RANKS]
    lists = make_searches(
        np.full(n, RANKS),
        (query[:, None] * DOCS + doc).ravel(),
        np.tile(np.arange(1, RANKS + 1), n),
        np.zeros(n * RANKS, bool),
        np.repeat(np.arange(QUERIES), DOCS),
    )
    data = model.sample(lists, rng)
    table = {
        "search": data.lists.list_of_rows(),
        "query": data.query_of_pair[data.pair],
        "doc": data.pair,
        "rank": data.rank,
        "click": data.click,
    }
    return pa.table(table), model.relevance() * top(model)


@pytest.mark.parametrize("name", ["ubm", "dbn"])
def test_relevance_is_recovered_where_the_model_is_right(name):
    table, z = drawn(name)
    found = judge(table, model=name)
    truth = z[found.docs[found.doc].astype(int)]
    rate = found.clicks / found.appearances
    assert spearmanr(found.relevance, truth)[0] > spearmanr(rate, truth)[0] + 0.03
    away, away_rate = (np.sqrt(((x - truth) ** 2).mean()) for x in (found.relevance, rate))
    assert away < 0.5 * away_rate
    seen = found.exposure > 10  # of others the prior tells most
    inside = (found.low <= truth) & (truth <= found.high)
    assert seen.sum() > 500
    assert 0.91 < inside[seen].mean() < 0.99  # four standard errors around 0.95
    assert found.propensities is None and found.options["model"] == name
    assert found.options["reference"] == 1
    assert any("for certain" in remark for remark in found.remarks)


def test_queries_are_dealt_into_parts_and_named_as_they_are(tmp_path):
    """Texts, one of them missing; and as many models as there are parts."""
    table, _ = drawn("dbn", n=4_000)
    query = table["query"].to_numpy()
    words = pa.array([f"words {q // 2:02}" for q in query])
    kind = pa.array([None if q % 2 else "a" for q in query], pa.string())
    texts = table.drop_columns("query").append_column("w", words).append_column("k", kind)
    log = rankdrift.read_log(texts, query=["w", "k"], search="search")
    whole, dealt = read_modelled(log, "dbn"), read_modelled(log, "dbn", searches=900)
    assert whole.funnel == dealt.funnel
    assert whole.funnel.used.rows == table.num_rows and whole.funnel.used.pairs == len(whole)
    numbers = read_modelled(rankdrift.read_log(table), "dbn")
    for found in (whole, dealt):
        assert found.queries.tolist() == sorted(
            found.queries.tolist(), key=lambda row: (row[0], row[1] is None)
        )
        names = found.queries[found.query]
        back = 2 * np.array([int(w[-2:]) for w, _ in names]) + [k is None for _, k in names]
        doc = found.docs[found.doc].astype(int)
        np.testing.assert_array_equal(back, doc // DOCS)
        own = np.bincount(table["doc"].to_numpy(), table["click"].to_numpy(), QUERIES * DOCS)
        np.testing.assert_array_equal(found.clicks, own[doc])
        order, same = np.argsort(doc), np.argsort(numbers.docs[numbers.doc].astype(int))
        if found is whole:
            np.testing.assert_allclose(found.exposure[order], numbers.exposure[same], rtol=1e-6)
    # Parts have patience of their own, about the same.
    np.testing.assert_allclose(dealt.exposure.sum(), whole.exposure.sum(), rtol=0.05)
    judge(log, model="dbn", min_exposure=0).save(tmp_path / "j.parquet")
    loaded = rankdrift.Judgments.load(tmp_path / "j.parquet")
    assert len(loaded) == len(whole) and loaded.rest["pairs"] == 0


def test_clicks_that_a_model_calls_impossible_are_told():
    table, _ = drawn("dbn", n=2_000)
    found = judge(table, model="cm")
    first = found.funnel.used.clicks - found.clicks.sum()
    assert first > 0
    assert any(f"{int(first):,} clicks on what nobody" in remark for remark in found.remarks)


def test_what_it_will_not_do():
    table, _ = drawn("dbn", n=300)
    for name in ("rcm", "rctr", "drctr"):
        with pytest.raises(BadOption, match=r"tells no relevance\. Take one of dctr, pbm"):
            judge(table, model=name)
    with pytest.raises(BadOption, match="Did you mean"):
        judge(table, model="dbm")
    for more in ({"features": "f_*"}, {"last": 3}, {"half_life": 2.0}, {"pool": True}):
        with pytest.raises(BadOption, match=r"leave out --(features|last|half-life|pool), or"):
            judge(table, model="dbn", **more)
    with pytest.raises(BadOption, match="give one of the two"):
        judge(table, "p.json", model="dbn")
    with pytest.raises(BadLog, match="does not tell searches apart"):
        judge(table.drop_columns("search"), model="dbn")
