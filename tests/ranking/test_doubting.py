"""Robust DCG, and who would be ahead by a curve that is not as given."""

from dataclasses import replace

import numpy as np
import pytest
from support.clicklogs import curve, frame, matrix, power

from rankdrift.ranking.comparison import ROBUST_DCG, TRUE_NDCG, WEIGHTED_DCG, Comparison, Measure
from rankdrift.ranking.doubting import CLIP, STEEPNESS, by_steepness, make_robust
from rankdrift.ranking.evaluation import evaluate
from rankdrift.ranking.gains import weigh
from rankdrift.ranking.measures import new_ranks
from rankdrift.ranking.training import train

ROUNDING = 1e-9
P = curve(power(12, 1.0))
# A log p that is off by .1 at every rank but the first, all together.
UNSURE = replace(P, deviations=np.where(np.arange(12) > 0, 0.1, 0.0)[:, None], errors="model")


@pytest.fixture(scope="module")
def judged():
    """Rankers that were trained with the truth and without, and rows to judge them on."""
    options = {"trees": 20, "leaves": 8, "min_rows": 100, "norm": True, "threads": 1}
    world = {"p": power(12, 1.0), "presort": 3.0}
    rows = matrix(frame(searches=1500, queries=400, **world))
    models = {
        "biased": train(rows, **options),
        "ours": train(rows, propensities=P, clip=np.inf, **options),
    }
    return models, matrix(frame(seed=5, searches=1200, queries=300, prefix="t", **world))


def measure(found, name):
    return next(m for m in found.measures if m.name == name)


@pytest.fixture(scope="module")
def found(judged):
    return evaluate(*judged, propensities=UNSURE, bootstrap=200)


def test_robust_dcg_by_hand(judged, found):
    models, rows = judged
    robust = make_robust(models, rows, P, pool=False, seed=0)
    p = power(12, 1.0)[rows.rank - 1]
    rank = new_ranks(rows, models["ours"].predict(rows))
    total = 0.0
    for i in range(len(rows)):
        weight = min(1 / p[i], CLIP)
        gain = weight * rows.click[i] + (1 - p[i] * weight) * robust.relevance[i]
        total += gain / np.log2(rank[i] + 1)
    value = measure(found, ROBUST_DCG).value["ours"]
    assert value == pytest.approx(total / rows.n_searches, rel=ROUNDING)
    assert robust.others is None  # this curve has no errors


def test_it_agrees_with_the_truth_and_is_calmer(found):
    true, weighted, robust = (
        measure(found, name).improvements["ours", "biased"]
        for name in (TRUE_NDCG, WEIGHTED_DCG, ROBUST_DCG)
    )
    assert true.mean > 0 and robust.mean > 0 and robust.is_more_than_luck
    assert robust.sd < weighted.sd


def test_errors_of_the_curve_are_in_its_deviation(judged):
    wide = replace(UNSURE, deviations=10 * UNSURE.deviations)
    for bootstrap in (0, 200):
        sure, unsure = (
            measure(evaluate(*judged, propensities=p, bootstrap=bootstrap), ROBUST_DCG)
            for p in (P, wide)
        )
        pair = "ours", "biased"
        assert unsure.improvements[pair].sd > sure.improvements[pair].sd
        assert unsure.value == sure.value


def test_steepness_by_hand(judged, found):
    models, rows = judged
    scores = {name: model.predict(rows) for name, model in models.items()}
    weight = weigh(rows, P).gain
    by = by_steepness(rows, scores, weight, ("biased",), 3.0, 0)["ours", "biased"]
    assert tuple(by) == STEEPNESS
    discount = {n: 1 / np.log2(new_ranks(rows, s) + 1) for n, s in scores.items()}
    p = power(12, 1.0)[rows.rank - 1]
    for steep, one in by.items():
        gain = rows.click * np.minimum(p**-steep, 3.0)
        ours, biased = (float((gain * discount[n]).sum()) for n in ("ours", "biased"))
        assert one.mean == pytest.approx(ours / biased - 1, rel=ROUNDING)
    free = found.by_steepness["ours", "biased"][1.0]
    weighted = measure(found, WEIGHTED_DCG)
    assert free.mean == pytest.approx(
        weighted.value["ours"] / weighted.value["biased"] - 1, rel=ROUNDING
    )


def test_the_verdict_says_what_it_hangs_on(found):
    """Raw clicks prefer the biased ranker: it is like the one that showed the results."""
    clicks = replace(found, measures=tuple(m for m in found.measures if "true" not in m.name))
    says = clicks.verdict("ours", "biased")
    assert "were the curve half as steep, biased would be ahead." in says
    steep = dict(found.by_steepness["ours", "biased"])
    worse = replace(steep[1.0], mean=-0.01)
    same = dict.fromkeys(steep, steep[1.0])
    for turned, words in (
        ({**same, 1.5: worse}, "were it 1.5 times as steep, biased would be ahead"),
        ({**same, 0.0: worse}, "Only if all ranks were looked at alike, biased would be ahead."),
        (same, "The same is ahead if all ranks were looked at alike and were it 2 times"),
    ):
        other = replace(clicks, by_steepness={("ours", "biased"): turned})
        assert words in other.verdict("ours", "biased")
    assert "hangs" not in found.verdict("ours", "biased")  # the truth decides there
    assert {row["steepness"] for row in found.to_dict()["by_steepness"]} == set(STEEPNESS)


def test_robust_dcg_is_heard_where_weighted_dcg_cannot_tell(found):
    by_name = {m.name: m for m in found.measures}
    pair = "ours", "biased"
    sure = by_name[ROBUST_DCG].improvements[pair]
    blurred = replace(sure, sd=1.0, p_value=0.9)

    def says(weighted, robust):
        measures = tuple(
            Measure(name, {}, {pair: one})
            for name, one in ((WEIGHTED_DCG, weighted), (ROBUST_DCG, robust))
        )
        return Comparison(
            found.models, found.baselines, (), {}, measures, 0, 0, 9, with_curve_errors=True
        ).judge

    assert "believe it if features tell relevance well" in says(blurred, sure)
    assert "says the contrary" in says(sure, replace(sure, mean=-sure.mean))
    assert "obust" not in says(sure, sure)


def test_without_features_there_is_none(judged):
    models, rows = judged
    scores = {name: model.predict(rows) for name, model in models.items()}
    found = evaluate(scores, rows, propensities=P, bootstrap=0)
    assert ROBUST_DCG not in [m.name for m in found.measures]
    assert found.by_steepness
