"""Each model finds its own numbers again, and the maximum of its likelihood."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from support.search_lists import DOCS, made_searches

from rankdrift.clickmodels import click_chain, dynamic_bayesian, products
from rankdrift.clickmodels.climbing import SETTLED, Expected, climb
from rankdrift.clickmodels.model import log_likelihood
from rankdrift.clickmodels.models import MODELS
from rankdrift.core.errors import NotConverged

QUERIES = 12
RNG = np.random.default_rng(7)
Z = RNG.uniform(0.1, 0.7, QUERIES * DOCS)
S = RNG.uniform(0.2, 0.8, QUERIES * DOCS)
LOOKS = np.append(0.5, 0.95 * np.arange(1, 7) ** -0.7)
FREE = 1e-3  # the strength of a prior that hardly matters


def truths():
    side = 7
    after = np.outer(LOOKS, np.append(1.0, np.full(side - 1, 0.6)))
    made = {
        "rcm": (0.2, len(Z)),
        "rctr": (LOOKS / 3, len(Z)),
        "dctr": (Z,),
        "pbm": (Z, LOOKS),
        "ubm": (Z, after),
        "cm": (Z,),
        "dcm": (Z, LOOKS),
        "ccm": (Z, 0.9, 0.75, 0.3),
        "sdbn": (Z, S),
        "dbn": (Z, S, 0.85),
    }
    return {name: MODELS.get(name)(*numbers) for name, numbers in made.items()}


TRUTHS = truths()
LISTS = made_searches(60_000, QUERIES, seed=1)
NEW = made_searches(20_000, QUERIES, seed=2)


@pytest.mark.parametrize("name", TRUTHS)
def test_a_model_finds_its_own_chances_again(name):
    truth = TRUTHS[name]
    data = truth.sample(LISTS, np.random.default_rng(5))
    fitted = type(truth).fit(data)
    new = truth.sample(NEW, np.random.default_rng(6))
    expected = truth.conditional_click_probabilities(new)
    found = fitted.conditional_click_probabilities(new)
    # Some 2,000 results a pair, of which a third to all are reached: one or two hundredths each.
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.02
    assert abs(np.mean(found - expected)) < 0.003
    loss = log_likelihood(expected, new.click).mean() - log_likelihood(found, new.click).mean()
    assert loss < 0.002
    if name in ("dbn", "ccm", "sdbn"):
        close = {"dbn": 0.02, "ccm": 0.08, "sdbn": 0.03}[name]
        np.testing.assert_allclose(fitted.going_on(), truth.going_on(), atol=close)
    if name == "dcm":  # nobody goes on from the last rank
        np.testing.assert_allclose(fitted.go_on[1:-1], truth.go_on[1:-1], atol=0.05)
    if name == "pbm":
        ratio = fitted.parameters()["propensities"]
        np.testing.assert_allclose(ratio, LOOKS[1:] / LOOKS[1], rtol=0.06)


@pytest.mark.parametrize("name", ["pbm", "ubm", "cm", "dcm", "ccm", "sdbn", "dbn", "dctr"])
def test_nothing_near_it_makes_the_clicks_likelier(name):
    """Almost without a prior, the numbers found are at the top of the likelihood itself."""
    data = TRUTHS[name].sample(made_searches(3_000, 2, seed=3), np.random.default_rng(4))
    fitted = MODELS.get(name).fit(data, strength=FREE)

    def likely(model):
        return float(log_likelihood(model.conditional_click_probabilities(data), data.click).sum())

    top = likely(fitted)
    rng = np.random.default_rng(8)
    # EM ends where a round gains SETTLED a result: so far below the top it may be, some rounds.
    slack = 100 * SETTLED * data.rows + 3 * FREE * data.pairs
    for field in fields(fitted):
        value = getattr(fitted, field.name)
        for size in (0.03, 0.005):
            for _ in range(4):
                moved = np.clip(value + size * rng.standard_normal(np.shape(value)), 1e-4, 1 - 1e-4)
                there = replace(fitted, **{field.name: moved})
                assert likely(there) <= top + slack


@pytest.mark.parametrize(
    "name, module", [("pbm", products), ("ccm", click_chain), ("dbn", dynamic_bayesian)]
)
def test_what_is_climbed_is_the_likelihood(name, module, monkeypatch):
    climbed = []
    monkeypatch.setattr(
        module, "climb", lambda *of, **more: climbed.append(of) or climb(*of, **more)
    )
    data = TRUTHS[name].sample(made_searches(300, 2, seed=3), np.random.default_rng(4))
    type(TRUTHS[name]).fit(data)
    ((expect, start),) = climbed
    for numbers in (start, tuple(0.1 + 0.7 * x for x in start)):
        model = type(TRUTHS[name])(*(x if len(x) > 1 else float(x[0]) for x in numbers))
        clicks = log_likelihood(model.conditional_click_probabilities(data), data.click)
        assert expect(numbers).likely == pytest.approx(clicks.sum(), rel=1e-9)


@pytest.mark.parametrize("places", [7, 10_000])
def test_misses_are_counted_whether_places_are_few_or_many(places):
    data = TRUTHS["pbm"].sample(made_searches(300, 2, seed=3), np.random.default_rng(4))
    found = products.tally(data, data.rank, places)
    missed = np.stack([data.pair, data.rank])[:, ~data.click]
    cells, misses = np.unique(missed, axis=1, return_counts=True)
    np.testing.assert_array_equal([found.pair, found.place], cells)
    np.testing.assert_array_equal(found.misses, misses)
    assert found.clicks_of_place.sum() + found.misses.sum() == found.rows == data.rows


def test_docs_that_nearly_all_click_are_told_apart():
    rng = np.random.default_rng(7)
    truth = type(TRUTHS["pbm"])(rng.uniform(0.6, 0.95, 2 * DOCS), np.full(7, 0.95))
    data = truth.sample(made_searches(3_000, 2, seed=1), rng)
    assert data.click.mean() > 0.6
    found = type(truth).fit(data)
    assert np.corrcoef(found.z, truth.z)[0, 1] > 0.9


def test_a_single_search_is_enough_for_an_answer():
    data = TRUTHS["pbm"].sample(made_searches(1, 1, seed=2), np.random.default_rng(1))
    found = type(TRUTHS["pbm"]).fit(data)
    given = found.conditional_click_probabilities(data)
    assert given[data.click].min() > given[~data.click].max()


def test_places_at_which_nothing_was_shown_change_nothing():
    data = TRUTHS["pbm"].sample(made_searches(3_000, 2, seed=3), np.random.default_rng(4))
    all_shown = products.tally(data, data.rank - 1, 6)
    some_not = products.tally(data, data.rank, 9)
    (z, looks), (same_z, wider) = (
        products.fit_product(t, 4.0, "places") for t in (all_shown, some_not)
    )
    np.testing.assert_allclose(wider[1:7], looks, rtol=0.01)
    np.testing.assert_allclose(same_z, z, rtol=0.01)


def test_what_was_never_shown_has_the_mean_of_all():
    data = TRUTHS["dbn"].sample(made_searches(2_000, 3, seed=1), np.random.default_rng(1))
    wider = replace(data, query_of_pair=np.append(data.query_of_pair, [3, 3]).astype(np.uint32))
    for model in MODELS:
        z = model.fit(wider).relevance()
        assert len(z) == wider.pairs
        assert ((z > 0) & (z < 1)).all()
        assert z[-1] == pytest.approx(z[-2])
        assert z.min() <= z[-1] <= z.max()


def test_strength_is_how_many_results_the_prior_counts_for():
    data = TRUTHS["dctr"].sample(made_searches(400, 3, seed=1), np.random.default_rng(1))
    clicks, shown = data.by_pair
    found = MODELS.get("dctr").fit(data, strength=10.0).relevance()
    np.testing.assert_allclose(found, (clicks + 10 * data.click.mean()) / (shown + 10), rtol=1e-9)


def test_gaps_in_ranks_do_not_end_a_list():
    lists = made_searches(30_000, QUERIES, seed=1, gaps=True)
    looks = np.append(0.5, 0.95 * np.arange(1, lists.ranks + 1) ** -0.5)
    truth = MODELS.get("dcm")(Z, looks)
    fitted = type(truth).fit(truth.sample(lists, np.random.default_rng(2)))
    shown = lists.by_rank[1] > 20_000
    np.testing.assert_allclose(fitted.go_on[shown], looks[shown], atol=0.05)


def test_a_climb_without_end_is_an_error_not_an_answer(monkeypatch):
    monkeypatch.setattr("rankdrift.clickmodels.climbing.MOST_ROUNDS", 6)
    height = iter(range(1_000))

    def expect(at):
        return Expected((np.array([1.0]),), (np.array([3.0]),), float(next(height)))

    with pytest.raises(NotConverged, match="still gets better"):
        climb(expect, (np.array([0.5]),), rows=1, strength=4.0, what="dbn")
