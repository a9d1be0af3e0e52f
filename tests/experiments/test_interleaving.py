"""Interleaving: fair to rankers that are alike, telling of those that are not; examples by hand."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdrift import read_log
from rankdrift.core.errors import BadOption, MissingColumns, NoUsablePairs
from rankdrift.experiments.interleaving import (
    INTERLEAVINGS,
    STEEPNESS,
    Interleaved,
    credit,
    interleave,
)
from rankdrift.experiments.winning import Wins, count_wins, wins

A, B = tuple("abcdef"), tuple("badcfe")
WORSE = tuple("fedcba")
LENGTH = 4
P = 1 / np.arange(1, LENGTH + 1)
RELEVANCE = {doc: 0.8 - 0.1 * i for i, doc in enumerate(A)}
SEARCHES = 600
METHODS = INTERLEAVINGS.names


def fought(first, second, method, relevance, seed=1, searches=SEARCHES):
    random = np.random.default_rng(seed)
    credits = []
    for i in range(searches):
        shown = interleave([first, second], str(i), method=method, length=LENGTH)
        chance = P * np.array([relevance[doc] for doc in shown.docs])
        credits.append(credit(shown, random.random(LENGTH) < chance, method=method))
    return count_wins(np.array(credits))


@pytest.mark.parametrize("method", METHODS)
def test_the_better_ranker_wins_and_no_other(method):
    searches = 60 if method == "optimised" else SEARCHES
    better = fought(A, WORSE, method, RELEVANCE, searches=searches)
    assert better.interval.low > 0
    turned = fought(WORSE, A, method, RELEVANCE, searches=searches)
    assert turned.interval.high < 0
    # Docs that are all alike: neither ranker is better, whatever rank does to clicks.
    alike = fought(A, B, method, dict.fromkeys(A, 0.5), searches=searches)
    assert abs(alike.delta) < 4 * alike.error
    # A ranker against itself.
    same = fought(A, A, method, RELEVANCE, searches=100)
    assert abs(same.delta) < 4 * same.error


@settings(deadline=None, max_examples=40)
@given(
    st.permutations(range(7)), st.permutations(range(7)), st.integers(1, 5),
    st.sampled_from([m for m in METHODS if m != "optimised"]), st.text(max_size=5),
)  # fmt: skip
def test_a_list_has_each_doc_once_and_begins_with_a_best_one(first, second, length, method, unit):
    shown = interleave([first, second], unit, method=method, length=length)
    assert len(set(shown.docs)) == len(shown.docs) == length
    assert shown == interleave([first, second], unit, method=method, length=length)
    if method != "probabilistic":
        left = [list(first), list(second)]
        for doc in shown.docs:  # the best that is left of either
            assert doc in (next(d for d in r if d not in shown.docs[: shown.docs.index(doc)])
                           for r in left)  # fmt: skip
    assert credit(shown, [False] * length, method=method).tolist() == [0, 0]


def test_credit_by_hand():
    shown = Interleaved(("a", "b", "d", "c"), (0, 1, 1, 0), (A, B))
    assert credit(shown, [1, 0, 1, 0]).tolist() == [1, 1]
    assert credit(shown, [0, 1, 1, 0]).tolist() == [0, 2]
    # The lowest click, d, is 4th of A and 3rd of B: of the first 3 of each A has a, and B a and d.
    assert credit(shown, [1, 0, 1, 0], method="balanced").tolist() == [1, 2]
    # a is better than b, next below; d than b, passed over, and than c, next below. A breaks the
    # last two, B the first two.
    assert credit(shown, [1, 0, 1, 0], method="constraints").tolist() == [-2, -2]
    # b is better than a, d than a and c: A breaks all three, B that d is better than a.
    assert credit(shown, [0, 1, 1, 0], method="constraints").tolist() == [-3, -1]


def test_marginal_credit_is_the_mean_over_all_ways_the_list_may_have_come_about():
    shown = Interleaved(("b", "a", "c"), (0, 1, 0), (A, B))
    clicked = np.array([True, False, True])
    weight = [dict(zip(r, np.arange(1.0, 7) ** -STEEPNESS, strict=True)) for r in (A, B)]
    total, mean = 0.0, np.zeros(2)
    for teams in product((0, 1), repeat=3):
        chance, gone = 1.0, []
        for doc, team in zip(shown.docs, teams, strict=True):
            left = sum(w for d, w in weight[team].items() if d not in gone)
            chance *= weight[team][doc] / left / 2
            gone.append(doc)
        total += chance
        mean += chance * np.bincount(np.array(teams)[clicked], minlength=2)
    assert np.allclose(credit(shown, clicked, method="probabilistic"), mean / total)


def test_several_rankers_take_turns():
    shown = interleave([A, B, WORSE], "x", length=6)
    assert sorted(shown.teams[:3]) == [0, 1, 2] and sorted(shown.teams[3:]) == [0, 1, 2]
    with pytest.raises(BadOption, match="balanced takes 2 rankings, not 3"):
        interleave([A, B, WORSE], "x", method="balanced")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: interleave([A, ("a", "a")], "x"), "Ranking 2 has a doc twice"),
        (lambda: interleave([A, B], "x", length=9), "9 results cannot be shown"),
        (lambda: interleave([A, B], "x", method="team-drft"), "Did you mean 'team-draft'"),
        (lambda: credit(interleave([A, B], "x"), [1]), "each of 6 results"),
        (lambda: count_wins(np.ones(3)), "two numbers a search"),
        (lambda: count_wins(np.ones((3, 2))).searches_for(0), "delta is 0"),
    ],
)
def test_what_cannot_be_interleaved_is_told(call, told):
    with pytest.raises(BadOption, match=told):
        call()


def test_wins_are_counted_by_hand_and_errors_are_those_of_groups():
    credits = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], float)
    found = count_wins(np.tile(credits, (100, 1)), groups=np.repeat(np.arange(100), 4))
    assert (found.won.sum(), found.lost.sum(), found.tied.sum()) == (200, 100, 100)
    assert found.delta == 0.125  # (200 + 50) / 400 - 1/2
    # Every group is alike, but searches are not known better than if they were independent.
    values = np.repeat([0.5, -0.5, 0, 0.5], 100)
    assert np.isclose(found.error, values.std() / np.sqrt(400))
    together = count_wins(np.repeat(credits, 100, axis=0), groups=np.repeat(np.arange(20), 20))
    assert together.error > 3 * found.error
    needed = found.searches_for(0.01)
    assert np.isclose(needed, 400 * (found.smallest / 0.01) ** 2, rtol=0.01)


def test_looks_every_day_do_not_add_up_to_false_alarms():
    random = np.random.default_rng(3)
    runs, looks = 100, np.arange(400, 8_001, 400)
    outcome = random.choice([-1, 0, 1], p=[0.3, 0.4, 0.3], size=(runs, looks[-1]))
    alarms, naive = 0, 0
    for run in outcome:
        won, lost = (np.cumsum(run == side)[looks - 1] for side in (1, -1))
        bounds = [
            Wins("a", "b", *(np.array([n]) for n in (w, x, size - w - x)))
            for w, x, size in zip(won, lost, looks, strict=True)
        ]
        alarms += any(w.anytime.low > 0 or w.anytime.high < 0 for w in bounds)
        naive += any(abs(w.delta) > 1.96 * w.error for w in bounds)
    assert alarms <= 0.05 * runs < naive


def test_a_log_of_teams_is_counted_in_the_engine():
    random = np.random.default_rng(5)
    rows, credits = [], []
    for i in range(400):
        shown = interleave([A, WORSE], str(i), length=LENGTH)
        clicked = random.random(LENGTH) < P * [RELEVANCE[doc] for doc in shown.docs]
        credits.append(credit(shown, clicked))
        rows += [
            {"search": i, "query": f"q{i % 40}", "doc": doc, "rank": k + 1, "click": int(c),
             "day": "2024-01-01", "ranker": ("new", "old")[team]}
            for k, (doc, team, c) in enumerate(zip(shown.docs, shown.teams, clicked, strict=True))
        ]  # fmt: skip
    (found,) = wins(read_log(pd.DataFrame(rows)))
    by_hand = count_wins(np.array(credits), names=("new", "old"))
    assert [int(n.sum()) for n in (found.won, found.lost, found.tied)] == [
        int(n.sum()) for n in (by_hand.won, by_hand.lost, by_hand.tied)
    ]
    assert found.first == "new" and found.interval.low > 0
    assert "cannot be told apart yet" in found.words  # not if one may look every day
    frame = pd.DataFrame(rows)
    with pytest.raises(MissingColumns, match="for the ranker"):
        wins(read_log(frame.drop(columns="ranker")))
    with pytest.raises(NoUsablePairs, match="No search has results of two rankers"):
        wins(read_log(frame.assign(ranker="new")))


def test_events_of_ubi_tell_who_wins(tmp_path):
    """Impressions that say which ranker brought the doc, and clicks that do not have to."""
    lines, credits = [], []
    for n in range(60):
        shown = interleave([list("abcd"), list("cdab")], f"s{n}", length=4)
        clicks = [doc == "c" or (doc == "a" and n % 3 == 0) for doc in shown.docs]
        credits.append(credit(shown, clicks))
        for place, (doc, team, click) in enumerate(
            zip(shown.docs, shown.teams, clicks, strict=True), 1
        ):
            event = {
                "query_id": f"s{n}", "user_query": f"q{n % 9}", "timestamp": "2024-05-05T10:00:00Z",
                "event_attributes": {
                    "object": {"object_id": doc, "search_config": "AB"[team]},
                    "position": {"ordinal": place},
                },
            }  # fmt: skip
            lines.append(json.dumps({"action_name": "impression", **event}))
            if click:
                del event["event_attributes"]["object"]["search_config"]
                lines.append(json.dumps({"action_name": "click", **event}))
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join(lines))
    (found,) = wins(read_log(path, ranker="search_config"))
    by_hand = count_wins(np.array(credits))
    assert (found.first, found.second) == ("A", "B") and found.delta < 0
    for name in ("won", "lost", "tied"):
        assert getattr(found, name).sum() == getattr(by_hand, name).sum()
