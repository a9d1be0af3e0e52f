"""Likelihoods against sums over everything that may have gone on unseen."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rankdrift.clickmodels.cascade import Cascade
from rankdrift.clickmodels.chain import ChainModel
from rankdrift.clickmodels.click_chain import ClickChain
from rankdrift.clickmodels.dependent_click import DependentClick
from rankdrift.clickmodels.dynamic_bayesian import DynamicBayesian
from rankdrift.clickmodels.models import MODELS
from rankdrift.clickmodels.position_based import PositionBased
from rankdrift.clickmodels.searches import make_searches
from rankdrift.clickmodels.simplified_dbn import SimplifiedDbn
from rankdrift.clickmodels.user_browsing import UserBrowsing

EXACT = 1e-12  # sums of some hundred products
LENGTH = 4
RANKS = np.array([1, 2, 4, 5])  # with a gap
Z = np.array([0.3, 0.6, 0.15, 0.5])
S = np.array([0.5, 0.2, 0.8, 0.35])
LOOKS = np.array([0.5, 0.95, 0.7, 0.6, 0.4, 0.3])


def user_browsing():
    return UserBrowsing(Z, np.random.default_rng(3).uniform(0.1, 0.9, (6, 6)))


MADE = {
    "pbm": PositionBased(Z, LOOKS),
    "ubm": user_browsing(),
    "cm": Cascade(Z),
    "dcm": DependentClick(Z, LOOKS),
    "ccm": ClickChain(Z, 0.85, 0.6, 0.3),
    "sdbn": SimplifiedDbn(Z, S),
    "dbn": DynamicBayesian(Z, S, 0.8),
}


def by_hand(name, clicks, attracts=Z):
    """The probability of clicks: over all ways of looking, being satisfied and going on."""
    model = MADE[name]
    total = 0.0
    if name in ("pbm", "ubm"):
        for looks in product((0, 1), repeat=LENGTH):
            p, last = 1.0, 0
            for i, rank in enumerate(RANKS):
                look = LOOKS[rank] if name == "pbm" else model.looks[rank, last]
                p *= look if looks[i] else 1 - look
                wanted = attracts[i] if looks[i] else 0.0
                p *= wanted if clicks[i] else 1 - wanted
                last = rank if clicks[i] else last
            total += p
        return total
    # (satisfied, goes on) after each result; what could not be is worth nothing.
    for states in product(product((0, 1), repeat=2), repeat=LENGTH):
        p, here = 1.0, True
        for i, (satisfied, on) in enumerate(states):
            wanted = attracts[i] if here else 0.0
            p *= wanted if clicks[i] else 1 - wanted
            sat, go = chances(name, i, bool(clicks[i]), bool(satisfied))
            if not here:
                sat, go = 0.0, 0.0
            p *= sat if satisfied else 1 - sat
            p *= go if on else 1 - go
            here = bool(on)
        total += p
    return total


def chances(name, i, click, satisfied):
    """(of being satisfied, of going on then)"""
    if name == "cm":
        return 0.0, 0.0 if click else 1.0
    if name == "dcm":
        return 0.0, LOOKS[RANKS[i]] if click else 1.0
    if name == "ccm":
        return (Z[i], 0.3 if satisfied else 0.6) if click else (0.0, 0.85)
    patience = 0.8 if name == "dbn" else 1.0
    return (S[i] if click else 0.0), 0.0 if satisfied else patience


ALL_CLICKS = list(product((0, 1), repeat=LENGTH))


def searches_of(clicks):
    return make_searches([LENGTH], np.arange(LENGTH), RANKS, np.array(clicks), np.zeros(LENGTH), 5)


@pytest.mark.parametrize("name", MADE)
def test_given_the_clicks_above_products_are_what_sums_over_the_unseen_are(name):
    expected = {clicks: by_hand(name, clicks) for clicks in ALL_CLICKS}
    assert sum(expected.values()) == pytest.approx(1, abs=EXACT)
    for clicks, p in expected.items():
        s = searches_of(clicks)
        given = MADE[name].conditional_click_probabilities(s)
        assert np.prod(np.where(s.click, given, 1 - given)) == pytest.approx(p, abs=EXACT)


@pytest.mark.parametrize("name", MADE)
def test_whatever_is_clicked_above_it_is_the_sum_over_that(name):
    expected = sum(by_hand(name, clicks) * np.array(clicks) for clicks in ALL_CLICKS)
    found = MADE[name].click_probabilities(searches_of((0,) * LENGTH))
    np.testing.assert_allclose(found, expected, atol=EXACT)


@pytest.mark.parametrize("name", ["cm", "dcm", "ccm", "sdbn", "dbn"])
def test_what_was_not_clicked_was_looked_at_as_often_as_its_relevance_would_have_told(name):
    for clicks in ALL_CLICKS:
        if not (p := by_hand(name, clicks)):
            continue  # a second click of a cascade
        looked = MADE[name].looked_at(searches_of(clicks))
        for i in np.flatnonzero(np.array(clicks) == 0):
            irrelevant = by_hand(name, clicks, np.where(np.arange(LENGTH) == i, 0.0, Z))
            assert looked[i] * Z[i] == pytest.approx(1 - p / irrelevant, abs=1e-9)


@pytest.mark.parametrize("name", MADE)
def test_clicks_are_drawn_as_often_as_they_are_likely(name):
    n = 20_000
    many = make_searches(
        np.full(n, LENGTH),
        np.tile(np.arange(LENGTH), n),
        np.tile(RANKS, n),
        np.zeros(n * LENGTH, bool),
        np.zeros(LENGTH),
        5,
    )
    drawn = MADE[name].sample(many, np.random.default_rng(1))
    code = np.zeros(n, int)
    np.add.at(code, drawn.lists.list_of_rows(), drawn.click * 2 ** drawn.pair.astype(int))
    found = np.bincount(code, minlength=16)
    for clicks in ALL_CLICKS:
        p = by_hand(name, clicks)
        place = sum(c << i for i, c in enumerate(clicks))
        # Five standard deviations, and one search where it is next to impossible.
        assert abs(found[place] - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1


def test_every_model_that_has_something_hidden_is_looked_at():
    rates = {"rcm", "rctr", "dctr", "drctr"}
    assert {model.name for model in MODELS} == rates | set(MADE)
    chains = {model.name for model in MODELS if issubclass(model, ChainModel)}
    assert chains == {"cm", "dcm", "ccm", "sdbn", "dbn"}
