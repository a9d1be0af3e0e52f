"""Who is better, by how much, and whether that is luck."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, roc_auc_score
from support.clicklogs import curve, frame, matrix, power

from rankdrift import evaluate, read_log, train
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.ranking.comparison import Comparison, Improvement, Measure
from rankdrift.ranking.evaluation import CHUNK
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.measures import measures, new_ranks

ROUNDING = 1e-12
# Of a deviation of some 1,500 samples, 2% are noise; the rest is what the first order leaves out.
FIRST_ORDER = 0.15
RANKS = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def test_rows():
    return matrix(frame(seed=2, searches=600, queries=150, prefix="t"))


@pytest.fixture(scope="module")
def scores(test_rows):
    """One that knows the relevance, one that knows some of it, one that knows nothing."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=len(test_rows))
    logit = np.log(test_rows.relevance / (1 - test_rows.relevance))
    return {"blind": noise, "half": logit + 2 * noise, "seeing": logit}


def test_auc_is_of_the_rows_at_one_rank(test_rows, scores):
    found = evaluate(scores, test_rows, ranks=RANKS, bootstrap=2)
    for at in found.at_rank:
        rows = test_rows.rank == at.rank
        assert (at.rows, at.clicks) == (rows.sum(), test_rows.click[rows].sum())
        for name, score in scores.items():
            expected = roc_auc_score(test_rows.click[rows], score[rows])
            assert at.auc[name] == pytest.approx(expected, abs=ROUNDING)


def test_bootstrap_is_of_queries_with_the_same_samples_for_all(test_rows, scores):
    """Written out: draw queries, take all their rows as often, compare both on the same draw."""
    samples, seed = 2 * CHUNK, 5
    found = evaluate(scores, test_rows, ranks=(2, 4), bootstrap=samples, seed=seed)
    rng = np.random.default_rng(seed)
    n = test_rows.n_queries
    drawn = np.concatenate([rng.integers(0, n, (CHUNK, n)) for _ in range(2)])
    rows = np.flatnonzero(test_rows.rank == 4)
    improved = []
    for queries in drawn:
        w = np.bincount(queries, minlength=n)[test_rows.query[rows]]
        blind, half = (
            roc_auc_score(test_rows.click[rows], scores[name][rows], sample_weight=w)
            for name in ("blind", "half")
        )
        improved.append(half / blind - 1)
    told = found.improvement("half", "blind", 4)
    assert told.mean == pytest.approx(np.mean(improved), abs=ROUNDING)
    assert told.sd == pytest.approx(np.std(improved, ddof=1), abs=ROUNDING)
    beyond = min((np.array(improved) <= 0).sum(), (np.array(improved) >= 0).sum())
    assert told.p_value == pytest.approx(min(1, 2 * (beyond + 1) / (samples + 1)))


def test_verdicts(test_rows, scores):
    found = evaluate(scores, test_rows, ranks=RANKS, baseline=["blind", "seeing"], bootstrap=300)
    assert found.verdict("seeing", "blind").startswith("seeing is better than blind (+")
    assert found.verdict("blind", "seeing").startswith("blind is worse than seeing (-")
    assert len(found.verdicts) == 4
    rng = np.random.default_rng(1)
    other = evaluate(
        {"blind": scores["blind"], "as blind": rng.normal(size=len(test_rows))}, test_rows,
        ranks=RANKS, bootstrap=300,
    )  # fmt: skip
    words = other.verdicts[0]
    assert words.startswith("Cannot tell whether as blind or blind is better (95%: between -")
    assert str(other) == words


def judged(mean, sd, p_value, measures=()):
    """Two rankers, compared so."""
    found = Improvement(mean, sd, p_value, 300)
    return Comparison(("new", "old"), ("old",), (), {("new", "old"): found}, measures, 300, 1, 50)


def test_no_difference_is_said_only_where_one_worth_having_is_excluded():
    """A difference below 1% is not worth having: 0.1 ± 0.4% excludes it, 0.1 ± 0.5% does not."""
    assert judged(0.001, 0.004, 0.8).verdicts == [
        "No difference worth having between new and old (95%: between -0.7 and +0.9% in AUC at "
        "fixed ranks; less than 1% either way)."
    ]
    assert judged(0.001, 0.005, 0.8).verdicts == [
        "Cannot tell whether new or old is better (95%: between -0.9 and +1.1% in AUC at fixed "
        "ranks): a difference of 1.4% would be seen here four times out of five. More queries to "
        "judge by would show smaller ones."
    ]


def test_the_true_order_decides_where_it_is_known():
    pair = "new", "old"
    true = Measure("true NDCG", {}, {pair: Improvement(0.02, 0.003, 0.002, 300)})
    assert judged(0.001, 0.02, 0.9, (true,)).verdicts == [
        "new is better than old (+2.0 ± 0.3% in NDCG by true relevance, p = 0.002)."
    ]


def test_propensities_with_errors_decide_and_say_why():
    pair = "new", "old"
    clicks = Measure("weighted DCG", {}, {pair: Improvement(0.02, 0.003, 0.002, 300)})
    plain = judged(0.001, 0.02, 0.9, (clicks,))
    assert "AUC at fixed ranks" in plain.verdicts[0] and "needs no propensities" in plain.judge
    known = replace(plain, propensities="abc")
    assert "AUC at fixed ranks" in known.verdicts[0] and "without errors" in known.judge
    found = replace(known, with_curve_errors=True)
    assert found.verdicts == [
        "new is better than old (+2.0 ± 0.3% in DCG weighted by 1 / propensity, p = 0.002)."
    ]
    assert "order within a search" in found.judge and found.to_dict()["judge"] == found.judge
    against = replace(found, overall={pair: Improvement(-0.02, 0.003, 0.002, 300)})
    assert "says the contrary (-2.0 ± 0.3%)" in against.verdicts[0]
    true = Measure("true NDCG", {}, {pair: Improvement(0.02, 0.003, 0.002, 300)})
    assert "true relevance" in replace(found, measures=(clicks, true)).judge


def test_deviations_without_samples_are_those_of_many(test_rows, scores):
    """DeLong's, with queries as units; true measures and weighted ones to first order too."""
    p = replace(curve(power(12)), deviations=0.2 * np.log(np.arange(1.0, 13))[:, None])
    one, many = (
        evaluate(scores, test_rows, ranks=RANKS, bootstrap=b, propensities=p) for b in (0, 1500)
    )
    assert "by DeLong's way" in one.spread and "1,500 samples of 1" in many.spread

    def told(found):
        return [
            i[pair]
            for pair in found.pairs
            for i in (found.overall, *(m.improvements for m in (*found.at_rank, *found.measures)))
        ]

    for quick, drawn in zip(told(one), told(many), strict=True):
        assert quick.sd == pytest.approx(drawn.sd, rel=FIRST_ORDER)
        assert quick.mean == pytest.approx(drawn.mean, abs=FIRST_ORDER * drawn.sd + 0.02)
        assert quick.is_more_than_luck == drawn.is_more_than_luck or 0.01 < quick.p_value < 0.2


def test_errors_of_the_curve_are_in_the_deviation_of_weighted_measures(test_rows, scores):
    """Log p wrong by a normal number times log rank moves a ratio of DCGs by its derivative: most
    for a model that orders results as they were shown."""
    scores = {"half": scores["half"], "shown": -test_rows.rank.astype(float)}
    sure = curve(power(12))
    wide = replace(sure, deviations=0.3 * np.log(np.arange(1.0, 13))[:, None])

    def dcg(p, bootstrap=3000):
        found = evaluate(scores, test_rows, propensities=p, bootstrap=bootstrap, baseline="half")
        assert found.with_curve_errors == bool(p.deviations.any())
        (whole,) = (m for m in found.measures if m.name == "weighted DCG")
        return whole

    values = [dcg(curve(power(12, 0.7 + d)), 2).value for d in (-0.03, 0.03)]
    ratio = [v["shown"] / v["half"] for v in values]
    slope = (ratio[1] - ratio[0]) / 0.06
    alone, both = (dcg(p).improvements["shown", "half"].sd for p in (sure, wide))
    assert abs(0.3 * slope) > 0.3 * alone  # or the test would not notice
    assert both == pytest.approx(np.hypot(alone, 0.3 * slope), rel=FIRST_ORDER)
    assert dcg(wide).value == dcg(sure).value
    clipped = evaluate(scores, test_rows, propensities=wide, clip=1, bootstrap=50, seed=1)
    unsure = evaluate(scores, test_rows, propensities=sure, clip=1, bootstrap=50, seed=1)
    # Every weight is clipped to 1 by all curves that fall, which nearly all of these do.
    assert clipped.measures[0].improvements["shown", "half"].sd == pytest.approx(
        unsure.measures[0].improvements["shown", "half"].sd, rel=0.05
    )


def test_p_values_are_fair_when_there_is_no_difference():
    """Two models as good as each other, over and over: few small p-values."""
    small = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = 800
        rows = Matrix.from_arrays(np.zeros((n, 1)), rank=np.ones(n), click=rng.random(n) < 0.2,
                                  query=np.arange(n) // 2, search=np.arange(n))  # fmt: skip
        scores = {"a": rng.normal(size=n), "b": rng.normal(size=n)}
        found = evaluate(scores, rows, ranks=(1,), bootstrap=200, seed=seed)
        small.append(found.improvement("b", "a").p_value < 0.1)
    # Binomial(60, 0.1): 6 expected, more than 13 in 1 of 400.
    assert 0 < sum(small) <= 13


def test_true_measures_are_scikit_learns(test_rows, scores):
    found = measures(test_rows, scores["half"], None)
    lists = (test_rows.n_searches, 12)
    expected = ndcg_score(test_rows.relevance.reshape(lists), scores["half"].reshape(lists))
    assert found["true NDCG"].value == pytest.approx(expected, abs=ROUNDING)
    ranks = new_ranks(test_rows, scores["half"]).reshape(lists)
    assert (np.sort(ranks, axis=1) == np.arange(1, 13)).all()
    best = scores["half"].reshape(lists).argmax(axis=1)
    assert (ranks[np.arange(lists[0]), best] == 1).all()
    dcg = (test_rows.relevance.reshape(lists) / np.log2(ranks + 1)).sum(axis=1).mean()
    assert found["true DCG"].value == pytest.approx(dcg, abs=ROUNDING)


def test_weighted_measures_are_those_of_all_results_seen():
    """Weighted by the true propensities, clicks tell what relevance tells."""
    p = power(12)
    rows = matrix(frame(seed=8, searches=8000, queries=4000))
    score = np.log(rows.relevance) + np.random.default_rng(0).normal(size=len(rows))
    found = evaluate({"m": score}, rows, propensities=curve(p), bootstrap=50)
    value = {m.name: m.value["m"] for m in found.measures}
    rank = new_ranks(rows, score)
    z = rows.relevance
    # 20,000 weighted clicks leave about 1% of noise.
    assert value["weighted DCG"] == pytest.approx(value["true DCG"], rel=0.03)
    assert value["weighted MRR"] == pytest.approx((z / rank).sum() / z.sum(), rel=0.03)
    mean_rank = value["weighted mean rank of clicks"]
    assert mean_rank == pytest.approx((z * rank).sum() / z.sum(), rel=0.03)
    biased = evaluate({"m": score}, rows, propensities=curve(np.ones(12)), bootstrap=2)
    plain = {m.name: m.value["m"] for m in biased.measures}
    assert abs(plain["weighted DCG"] / value["true DCG"] - 1) > 0.2


def test_less_is_better_for_the_mean_rank(test_rows, scores):
    found = evaluate(scores, test_rows, propensities=curve(power(12)), bootstrap=50)
    told = {m.name: m.improvements["seeing", "blind"].mean for m in found.measures}
    assert len(told) == 5 and min(told.values()) > 0


def test_models_are_scored_from_a_log_and_warnings_given():
    p = curve(power(12))
    table = frame(searches=400)
    biased = train(matrix(table), trees=10, fixed=True, threads=1, name="biased")
    fair = train(matrix(table), propensities=p, trees=10, fixed=True, threads=1, name="fair")
    test = frame(seed=3, searches=300, prefix="other")
    log = read_log(test)
    found = evaluate([biased, fair], log, ranks=RANKS, bootstrap=50)
    again = evaluate([biased, fair], matrix(test), ranks=RANKS, bootstrap=50)
    assert [at.auc for at in found.at_rank] == [at.auc for at in again.at_rank]
    assert found.remarks == () and found.data["rows"] == 4 * 300
    warned = evaluate([biased, fair], read_log(table), propensities=p, relevance="relevance",
                      bootstrap=10)  # fmt: skip
    assert any("About 100% of these queries are among those biased" in r for r in warned.remarks)
    flattered = [r.split()[0] for r in warned.remarks if "very propensities" in r]
    assert flattered == ["fair"]
    assert {m.name for m in warned.measures} >= {"weighted DCG", "true NDCG"}
    same = evaluate([biased, biased], read_log(test), ranks=(1,), bootstrap=10)
    assert same.models == ("biased", "biased (2)")
    assert same.improvement("biased (2)", "biased").mean == 0
    assert same.improvement("biased (2)", "biased").p_value == 1


def test_a_rank_without_clicks_is_a_stated_gap(test_rows, scores):
    rows = test_rows.take(~(test_rows.click & (test_rows.rank == 2)))
    kept = {n: s[~(test_rows.click & (test_rows.rank == 2))] for n, s in scores.items()}
    found = evaluate(kept, rows, ranks=(1, 2, 40), bootstrap=20)
    one, two, deep = found.at_rank
    assert one.gap is None and two.gap.startswith("none of") and deep.gap.startswith("no result")
    assert two.auc == {} and found.improvement("half", "blind", 2) is None
    assert found.improvement("half", "blind").samples == 20
    assert two.gap in found._repr_html_()
    true = evaluate(kept, rows, ranks=(40,), bootstrap=20)
    assert "better than blind" in true.verdicts[0] and "true relevance" in true.verdicts[0]
    nothing = evaluate(kept, replace(rows, relevance=None), ranks=(40,), bootstrap=20)
    assert "cannot be compared" in nothing.verdicts[0]
    with pytest.raises(BadOption, match="nothing to draw"):
        nothing.plot()


@pytest.mark.filterwarnings("error")
def test_samples_in_which_the_baseline_has_nothing_right_are_left_out():
    click = np.array([True, False] * 6)
    rows = Matrix.from_arrays(np.zeros((12, 1)), rank=np.ones(12), click=click,
                              query=np.arange(12) // 2, search=np.arange(12))  # fmt: skip
    worst, good = np.where(click, 0.0, 1.0), np.where(click, 1.0, 0.0)
    worst[0] = 2.0
    found = evaluate({"worst": worst, "good": good}, rows, ranks=(1,), bootstrap=200)
    told = found.improvement("good", "worst")
    assert 0 < told.samples < 200 and np.isfinite(told.mean)


def test_ranks_of_a_log_without_clicks_are_stated_gaps_too():
    table = frame(searches=60)
    made = train(matrix(table), trees=1, fixed=True, threads=1)
    still = table[(table["rank"] != 2) | (table.click == 0)]
    for ranks, gaps in (((2,), ["none of"]), ((1, 2), [None, "none of"])):
        found = evaluate(made, read_log(still), ranks=ranks, bootstrap=20)
        assert [at.gap and at.gap[:7] for at in found.at_rank] == gaps
    with pytest.raises(BadLog, match="None of the 720 results was shown at rank 40, 41"):
        evaluate(made, read_log(table), ranks=(40, 41))
    with pytest.raises(BadLog, match="None of the 720 results shown was clicked"):
        evaluate(made, read_log(table.assign(click=0)), ranks=(2,))


def test_bad_requests_are_explained(test_rows, scores):
    silent = test_rows.take(~test_rows.click)
    with pytest.raises(BadLog, match="was clicked"):
        evaluate({"m": np.zeros(len(silent))}, silent)
    made = train(test_rows, trees=1, fixed=True, threads=1)
    other = matrix(frame(), ("f_1", "f_2"))
    with pytest.raises(BadOption, match="not here: f_3"):
        evaluate(made, other)
    for models, options, words in (
        ({}, {}, "No model"), (scores, {"baseline": "blnd"}, "Did you mean 'blind'"),
        (scores, {"ranks": (0,)}, "from 1"), (scores, {"ranks": ()}, "from 1"),
        (scores, {"bootstrap": 1}, "2 or more"), ({"m": np.zeros(3)}, {}, "one number a row"),
        ({"m": np.full(len(test_rows), np.nan)}, {}, "none missing"), (["x"], {}, "Cannot judge"),
        (scores, {"seed": -1}, "seed must"), (scores, {"clip": 3.0}, "give propensities too"),
    ):  # fmt: skip
        with pytest.raises(BadOption, match=words):
            evaluate(models, test_rows, **options)
    with pytest.raises(BadOption, match=f"relevance is 0 in all {len(test_rows):,} rows"):
        evaluate(scores, replace(test_rows, relevance=np.zeros(len(test_rows))))
    with pytest.raises(BadOption, match="no relevance, which 'grade' is asked for"):
        evaluate(scores, replace(test_rows, relevance=None), relevance="grade")
    with pytest.raises(BadOption, match="need a Matrix"):
        evaluate({"m": np.zeros(3)}, read_log(frame(searches=5)))
    with pytest.raises(BadOption, match="Cannot judge on"):
        evaluate(scores, frame())


def test_files(test_rows, scores, tmp_path):
    models = {"a_b": scores["blind"], "<x> & 5%": scores["half"]}
    found = evaluate(models, test_rows, ranks=(1, 2, 99), bootstrap=60, propensities=None)
    for ending in ("csv", "json", "tex", "svg"):
        found.save(tmp_path / f"out.{ending}")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    at_one = next(r for r in rows if r["rank"] == "1" and r["baseline"])
    assert float(at_one["improvement"]) == found.improvement("<x> & 5%", "a_b", 1).mean
    assert [r["note"] for r in rows if r["rank"] == "99"] == ["no result was shown at rank 99"] * 2
    plain = json.loads((tmp_path / "out.json").read_text())
    assert plain["verdicts"] == found.verdicts and plain["table"][0]["model"] == "a_b"
    tex = (tmp_path / "out.tex").read_text()
    assert r"<x> \& 5\% over a\_b" in tex and r"$99$ & -- \\" in tex and r"\pm" in tex
    assert "improvement of AUC" in (tmp_path / "out.svg").read_text()
    page = found._repr_html_()
    assert "&lt;x&gt; &amp; 5%" in page and "<x>" not in page
    with pytest.raises(BadOption, match="cannot be written as"):
        found.save(tmp_path / "out.doc")
