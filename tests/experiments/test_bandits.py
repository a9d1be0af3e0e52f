"""Bandits and judging rankings by their logs."""

import os
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.experiments.bandits import POLICIES, run_bandit
from rankdrift.experiments.off_policy import policy_value
from rankdrift.methods.experiments import experiment
from rankdrift.methods.tallies import Tally

P = np.array([1.0, 0.6, 0.4])
Z = np.array([0.1, 0.5, 0.2, 0.4, 0.15, 0.3])  # the third best stands first
SEARCHES, RUNS = 1_500, 20
BEST = float(np.sort(Z)[::-1][:3] @ P)


@pytest.fixture(scope="module")
def runs():
    return {name: run_bandit(name, P, Z, searches=SEARCHES, runs=RUNS) for name in POLICIES.names}


def test_regret_of_what_learns_nothing_is_what_eq_1_says(runs):
    lost = BEST - float(Z[:3] @ P)
    assert np.isclose(runs["fixed"].regret[-1], lost * SEARCHES)
    any_order = BEST - Z.mean() * P.sum()
    assert abs(runs["shuffle"].regret[-1] / SEARCHES - any_order) < 4 * runs["shuffle"].error[-1]


@pytest.mark.parametrize("name", ["ranked-ucb", "ranked-ts", "pbm-ucb", "pbm-ts"])
def test_what_learns_loses_less_and_ever_less(runs, name):
    found = runs[name]
    assert found.regret[-1] < 0.5 * runs["shuffle"].regret[-1]
    half = np.searchsorted(found.searches, SEARCHES // 2)
    late = found.regret[-1] - found.regret[half]
    assert late < 0.8 * found.regret[half]


def test_who_knows_the_propensities_beats_a_bandit_a_rank(runs):
    assert runs["pbm-ts"].regret[-1] < 0.6 * runs["ranked-ts"].regret[-1]


@pytest.mark.parametrize("name", ["cascade-ucb", "cascade-ts"])
def test_cascades_learn_where_users_stop(name):
    found, drawn = (
        run_bandit(each, P, Z, searches=SEARCHES, runs=RUNS, users="cascade")
        for each in (name, "shuffle")
    )
    assert found.regret[-1] < 0.3 * drawn.regret[-1]


def test_a_log_with_its_probabilities_judges_another_order():
    """A bandit's log, reweighted, tells what the fixed order gets, and that of a shuffle."""
    found = run_bandit("pbm-ts", P, Z, searches=40, runs=100, draws=200, log=True, seed=2)
    c = found.columns
    rank, doc = c["rank"] - 1, c["doc"]
    target = (doc == rank).astype(float)  # `fixed` shows doc r at rank r
    truth = float(Z[:3] @ P) / 3
    told = policy_value(
        c["click"], c["probability"], np.full(len(doc), 1 / len(Z)), groups=c["query"]
    )
    any_order = float(Z.mean() * P.mean())
    assert told.interval.low < any_order < told.interval.high
    drawn = run_bandit("shuffle", P, Z, searches=300, runs=60, log=True, seed=3).columns
    target = (drawn["doc"] == drawn["rank"] - 1).astype(float)
    logged = np.full(len(target), 1 / len(Z))
    for method in ("ips", "snips"):
        found = policy_value(drawn["click"], logged, target, method=method, groups=drawn["search"])
        assert found.interval.low < truth < found.interval.high
    assert found.effective < found.rows / 3


def test_what_its_log_is_worth_for_propensities():
    """Docs that a bandit moves tell the ratio of ranks as any drift does, if it learns fast."""
    log = run_bandit("shuffle", P, Z, searches=200, runs=60, log=True, seed=4).columns
    drift = estimate(harvest(read_log(pd.DataFrame(log), day="")), curve="direct")
    ratio = drift.ratio(3, 1)
    assert ratio.low < P[2] < ratio.high


def oracle(rng, n=40_000):
    """Rows of a known policy: two docs, ranks, a target that turns the odds round."""
    logged = rng.choice([0.8, 0.2], p=[0.8, 0.2], size=n)
    good = logged == 0.2  # the doc that is shown less is the better one
    clicks = rng.random(n) < np.where(good, 0.3, 0.1)
    return clicks, logged, np.where(good, 0.8, 0.2), good


def test_estimates_are_right_and_doubly_robust_is_right_twice():
    rng = np.random.default_rng(1)
    clicks, logged, target, good = oracle(rng)
    truth = 0.8 * 0.3 + 0.2 * 0.1
    right = np.where(good, 0.3, 0.1)
    wrong = np.full(len(clicks), 0.05)
    cases = {
        "ips": {},
        "snips": {},
        "right model": {"forecast": right, "target_forecast": np.full(len(clicks), truth)},
        "wrong model": {"forecast": wrong, "target_forecast": np.full(len(clicks), 0.05)},
    }
    found = {}
    for name, options in cases.items():
        method = name if name in ("ips", "snips") else "dr"
        found[name] = policy_value(clicks, logged, target, method=method, **options)
        assert found[name].interval.low < truth < found[name].interval.high, name
    # Weights that are wrong do no harm where the model is right.
    off = policy_value(
        clicks, np.full(len(clicks), 0.5), target, method="dr", **cases["right model"]
    )
    assert off.interval.low < truth < off.interval.high
    spread = {name: v.interval.high - v.interval.low for name, v in found.items()}
    assert spread["right model"] < spread["ips"]


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(2)
    inside = dict.fromkeys(("ips", "snips"), 0)
    for _ in range(400):
        clicks, logged, target, _ = oracle(rng, 1_000)
        for method in inside:
            found = policy_value(clicks, logged, target, method=method).interval
            inside[method] += found.low < 0.26 < found.high
    # 400 draws at 95%: three standard errors.
    assert all(0.917 < n / 400 < 0.983 for n in inside.values())


def test_position_based_weights_need_less_luck_than_those_of_docs_at_ranks():
    rng = np.random.default_rng(3)
    curve = experiment(
        Tally(np.full((64, 3), 5_000), (5_000 * 0.1 * np.tile(P, (64, 1))).astype(int))
    )
    n, errors = 600, {"pbm": [], "snips": []}
    place = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])  # doc x rank, logged
    wanted = place[::-1]
    truth = float((wanted * np.outer([0.5, 0.3, 0.2], P)).sum() / 3)
    for _ in range(150):
        doc = rng.integers(3, size=n)
        rank = (rng.random(n)[:, None] > np.cumsum(place[doc], axis=1)).sum(axis=1)
        clicks = rng.random(n) < np.array([0.5, 0.3, 0.2])[doc] * P[rank]
        each = policy_value(clicks, place[doc, rank], wanted[doc, rank], method="snips")
        errors["snips"].append(each.value - truth)
        found = policy_value(clicks, place[doc], wanted[doc], method="pbm", propensities=curve)
        errors["pbm"].append(found.value - truth)
    spread = {name: np.sqrt(np.mean(np.square(off))) for name, off in errors.items()}
    assert spread["pbm"] < spread["snips"]
    assert abs(np.mean(errors["pbm"])) < 4 * spread["pbm"] / np.sqrt(150) + 0.002


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"logged": [0.5, 0.0]}, "1 row of the log had probability 0"),
        ({"target": [0.0, 0.0]}, "every weight is 0"),
        ({"target": [0.5, 1.5]}, "probabilities"),
        ({"target": [0.5]}, "one number a row"),
        ({"method": "dm"}, "There are ips"),
        ({"method": "dr"}, "forecast="),
        ({"clip": 0.5}, "1 or more"),
        ({"clicks": [np.nan, 1]}, "no numbers"),
    ],
)
def test_what_cannot_be_judged_is_told(options, told):
    given = {"clicks": [1, 0], "logged": [0.5, 0.5], "target": [0.5, 0.5], **options}
    with pytest.raises((BadOption, NotIdentified), match=told):
        policy_value(given.pop("clicks"), given.pop("logged"), given.pop("target"), **given)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: run_bandit("ucb", P, Z), "No policy 'ucb'"),
        (lambda: run_bandit("fixed", P, Z[:2]), "as many docs as ranks"),
        (lambda: run_bandit("fixed", P, Z, users="dbn"), "use pbm or cascade"),
        (lambda: run_bandit("pbm-ts", P, Z, known=[1, 0, 1]), "above 0"),
        (lambda: run_bandit("fixed", P, Z, searches=0), "1 or more"),
    ],
)
def test_what_cannot_be_run_is_told(call, told):
    with pytest.raises(BadOption, match=told):
        call()


@pytest.mark.data
@pytest.mark.skipif("RANKDRIFT_DATA" not in os.environ, reason="names no directory of real logs")
def test_the_random_policy_is_judged_by_the_log_of_a_bandit():
    """Open Bandit: what items at random get, from the log of Thompson sampling, whose
    probabilities are taken to be how often it showed each item of a campaign."""
    folder = Path(os.environ["RANKDRIFT_DATA"]) / "open-bandit"
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT click, count(*) OVER (PARTITION BY query, doc)"
            " / count(*) OVER (PARTITION BY query) AS logged, query, session"
            f" FROM '{folder / 'bts.parquet'}'"
        ).fetchnumpy()
        items = dict(
            database.execute(
                "SELECT query, count(DISTINCT doc)"
                f" FROM '{folder / 'random.parquet'}' GROUP BY query"
            ).fetchall()
        )
        ((truth, n),) = database.execute(
            f"SELECT avg(click), count(*) FROM '{folder / 'random.parquet'}'"
        ).fetchall()
    target = np.array([1 / items[query] for query in rows["query"]])
    found = policy_value(rows["click"], rows["logged"], target, groups=rows["session"])
    error = np.sqrt(truth * (1 - truth) / n)
    reach = (found.interval.high - found.interval.low) / 2
    assert abs(found.value - truth) < np.hypot(reach, 2 * error)
    assert found.interval.high - found.interval.low < 2 * truth


OBP = """
import sys
import numpy as np
from obp import ope
rows = np.load(sys.argv[1])
given = {name: rows[name] for name in ("reward", "action", "pscore", "action_dist")}
given["position"] = np.zeros(len(given["reward"]), int)
for way in (ope.InverseProbabilityWeighting(), ope.SelfNormalizedInverseProbabilityWeighting()):
    print(repr(float(way.estimate_policy_value(**given))))
given["estimated_rewards_by_reg_model"] = rows["forecast"]
print(repr(float(ope.DoublyRobust().estimate_policy_value(**given))))
"""


@pytest.mark.skipif("RANKDRIFT_OBP" not in os.environ, reason="no Python that has obp is named")
def test_values_are_those_of_open_bandit_pipeline(tmp_path):
    random = np.random.default_rng(7)
    rows, items = 5_000, 4
    logging, wanted = (random.dirichlet(np.ones(items), rows) for _ in range(2))
    item = (random.random(rows)[:, None] > np.cumsum(logging, axis=1)).sum(axis=1)
    click = (random.random(rows) < np.array([0.1, 0.2, 0.3, 0.4])[item]).astype(float)
    forecast = random.random((rows, items, 1))
    each = np.arange(rows)
    np.savez(
        tmp_path / "rows.npz", reward=click, action=item, pscore=logging[each, item],
        action_dist=wanted[:, :, None], forecast=forecast,
    )  # fmt: skip
    words = [os.environ["RANKDRIFT_OBP"], "-c", OBP, str(tmp_path / "rows.npz")]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    theirs = [float(line) for line in done.stdout.split()]
    given = click, logging[each, item], wanted[each, item]
    ours = [
        policy_value(*given, method="ips"),
        policy_value(*given, method="snips"),
        policy_value(
            *given,
            method="dr",
            forecast=forecast[each, item, 0],
            target_forecast=(forecast[:, :, 0] * wanted).sum(axis=1),
        ),
    ]
    assert np.allclose([one.value for one in ours], theirs, rtol=1e-9)
