"""estimate(..., method="bayes"): the truth comes back, draws and files agree, refusals help."""

from dataclasses import replace
from functools import cache
from io import StringIO

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from support.recovery_check import Case, check_recovery
from support.worlds import listed, simulate
from support.worlds import power as falling

from rankdrift import Propensities, estimate, read_log
from rankdrift.charts.curve import curve_chart
from rankdrift.core.errors import (
    BadOption,
    NotConverged,
    NotIdentified,
    NoUsablePairs,
    Remark,
)
from rankdrift.estimation.bayes import estimating
from rankdrift.pipeline import make_report
from rankdrift.report.terminal.curve import curve_report
from rankdrift.simulate import pairs
from rankdrift.simulate.counting import count_pairs

pytestmark = pytest.mark.xdist_group("bayes test_estimating")

RANKS = 12
# Draws that are enough for means and deviations; more only take time.
FEW = {"method": "bayes", "reference": 1, "draws": 800}


def power():
    return np.arange(1, RANKS + 1) ** -0.5


@cache
def world(seed):
    return pairs(2_000, ranks=RANKS, seed=seed, relevance=0.15, propensities=power())


@cache
def found(seed):
    return estimate(world(seed).counts, **FEW)


@pytest.fixture(autouse=True)
def soon_warm(monkeypatch):
    """Small worlds need less, and the draws are checked for convergence all the same."""
    monkeypatch.setattr(estimating, "WARM_UP", 120)


def scored(seed, size=6, many=6_000):
    """Pairs whose relevance a column tells, one in ten of which moved; and true log p."""
    rng = np.random.default_rng(seed)
    log_p = -0.6 * np.log(np.arange(1, size + 1))
    known = rng.integers(1, 4, many)
    mean = 0.06 * 2.0**known
    z = rng.beta(2, 2 * (1 - mean) / mean)
    usual = np.clip(rng.integers(1, size + 1, many) - (known - 2), 1, size)
    rank = np.repeat(usual[:, None], 3, axis=1)
    moves = rng.random(many) < 0.1
    rank[moves, 1] = rng.integers(1, size + 1, moves.sum())
    click = rng.random(rank.shape) < np.exp(log_p)[rank - 1] * z[:, None]
    counts = count_pairs(
        rank, click, rng.integers(0, 64, many), buckets=64, max_rank=size, known=known
    )
    return counts, log_p


@pytest.mark.slow
def test_the_truth_comes_back():
    check_recovery([Case(found(seed), np.log(power())) for seed in range(8)])


@pytest.mark.slow
def test_pairs_at_one_rank_help_where_the_column_tells_their_relevance():
    worlds = [scored(seed) for seed in range(16)]
    columns = [estimate(counts, **FEW, relevance="column") for counts, _ in worlds]
    check_recovery([Case(p, true) for p, (_, true) in zip(columns, worlds, strict=True)])
    column, (counts, _) = columns[0], worlds[0]
    plain = estimate(counts, curve="loglog", reference=1)
    rank = estimate(counts, **FEW, relevance="rank")
    # 5,400 pairs with three appearances beside some 200 that moved and were clicked.
    assert column.std_error[1:].mean() < 0.6 * plain.std_error[1:].mean()
    # With a free mean for each rank they say nothing: what is left is what the prior of the curve
    # takes off the error of pairs that moved.
    assert column.std_error[1:].mean() < 0.8 * rank.std_error[1:].mean()


def test_draws_tell_values_errors_and_credible_intervals():
    p = found(1)
    assert p.draws.shape == (800, RANKS)
    np.testing.assert_allclose(p.draws.mean(axis=0), p.log_p, atol=1e-12)
    np.testing.assert_allclose(p.draws.std(axis=0), p.std_error, atol=1e-12)
    low, high = p.interval(0.9)
    np.testing.assert_allclose(np.log([low, high]), np.quantile(p.draws, [0.05, 0.95], axis=0))
    inside = (np.log(p.interval(0.9, simultaneous=True)[0]) <= p.draws) & (
        p.draws <= np.log(p.interval(0.9, simultaneous=True)[1])
    )
    assert inside.all(axis=1).mean() >= 0.9
    ratio = p.ratio(9, 4, 0.9)
    apart = np.exp(np.quantile(p.draws[:, 8] - p.draws[:, 3], [0.05, 0.95]))
    np.testing.assert_allclose([ratio.low, ratio.high], apart)
    other = p.relative_to(4)
    np.testing.assert_allclose(other.ratio(9, 4, 0.9).low, ratio.low)
    assert p.summary()["intervals"] == "credible"
    assert p.provenance["r_hat"] < 1.01
    assert p.provenance["ess_bulk"] > 400 < p.provenance["ess_tail"]


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_files_keep_the_draws(tmp_path, ending):
    p = found(1)
    p.save(tmp_path / f"p.{ending}")
    back = Propensities.load(tmp_path / f"p.{ending}")
    np.testing.assert_allclose(back.draws, p.draws, atol=1e-9)
    np.testing.assert_allclose(back.interval(), p.interval())


def test_a_table_has_the_credible_intervals(tmp_path):
    p = found(1)
    p.save(tmp_path / "p.csv")
    rows = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True, dtype=None, encoding=None)
    np.testing.assert_allclose(
        [rows["low"][1:], rows["high"][1:]], np.array(p.interval())[:, 1:], rtol=1e-5
    )
    np.testing.assert_allclose(rows["std_error"][1:], p.std_error[1:], rtol=1e-5)


def test_other_curves_have_no_draws():
    plain = estimate(world(1).counts, curve="loglog", reference=1)
    assert plain.summary()["intervals"] == "confidence"
    with pytest.raises(NotIdentified, match="no draws"):
        _ = plain.draws


def test_the_same_seed_gives_the_same_draws():
    assert estimate(world(1).counts, **FEW).equals(found(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "bayse"}, "Did you mean 'bayes'"),
        ({"method": "bayes", "curve": "direct"}, "--curve does not go with"),
        ({"method": "bayes", "by": "device"}, "not split by 'device'"),
        ({"method": "bayes", "errors": "model"}, "--errors does not go with"),
        ({"method": "bayes", "relevance": "score"}, "Use 'rank', 'column', 'same'"),
        ({"method": "bayes", "relevance": "column"}, "--prior NAME"),
        ({"method": "bayes", "draws": 100}, "800 to 100,000"),
        ({"draws": 900}, "option of --method bayes"),
        ({"relevance": "same"}, "option of --method bayes"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(options, words):
    with pytest.raises(BadOption, match=words):
        estimate(world(1).counts, **options)


@cache
def by_device():
    """Of two devices, and of one that has next to nothing; some pairs are shown too often."""
    curves = {"app": falling(0.9), "tv": falling(0.3)}
    counts = simulate(1_500, 6, 3, segments=curves, shown=(2, 9)).counts
    return counts + listed([(((2, 1), (3, 0)), 0, 4)], 64, 6, names=("web",))


@cache
def found_by_device():
    with pytest.warns(Remark) as told:
        found = estimate(by_device(), by="device", **FEW)
    return found, told


def test_each_segment_has_its_own_posterior():
    found, _ = found_by_device()
    with pytest.warns(Remark):
        assert estimate(by_device().pool(), **FEW).equals(
            replace(found, segment_columns=(), by_segment={}, difference=None)
        )
    assert set(found.segments) == {("app",), ("tv",)}
    for name, slope in (("app", 0.9), ("tv", 0.3)):
        own = found.segment(name)
        with pytest.warns(Remark):
            assert own.equals(estimate(by_device().restrict(segments=[name]), **FEW))
        low, high = own.interval(0.999)
        truth = np.arange(1, 7) ** -slope
        assert ((low <= truth) & (truth <= high)).all()
    assert found.difference.p_value < 1e-4 and found.difference.spread > 0.2


def test_segments_that_have_no_posterior_are_named_and_remarks_told_once():
    found, told = found_by_device()
    assert list(found.difference.left_out) == [("web",)]
    assert "reference rank 1 is none of" in found.difference.left_out[("web",)]
    assert sum("are left out: counts keep them" in str(each.message) for each in told) == 1


def test_posteriors_of_segments_are_kept_shown_and_used(tmp_path):
    found, _ = found_by_device()
    found.save(tmp_path / "p.json")
    back = Propensities.load(tmp_path / "p.json")
    np.testing.assert_allclose(back.segment("tv").draws, found.segment("tv").draws, atol=1e-9)
    screen = Console(width=100, record=True, file=StringIO())
    screen.print(curve_report(back, 0.95, False))
    words = " ".join(screen.export_text().split())
    assert "credible ones" in words and "No curve for web" in words and "lean" not in words
    page = " ".join(make_report(back).html.split())
    assert "95% credible intervals" in page and "lean on the pool" not in page
    chart = " ".join(curve_chart(back).to_dict()["title"]["subtitle"])
    assert "95% credible interval of each rank" in chart
    weights = back.weights([4, 4], segments=["app", "tv"])
    np.testing.assert_allclose(weights, [1 / back.segment(s)[4] for s in ("app", "tv")])


def test_pairs_chosen_by_their_clicks_are_refused():
    with pytest.raises(BadOption, match="exactly one click"):
        estimate(world(1).counts.restrict(strict=True), method="bayes")


def test_pairs_that_are_all_shown_often_are_told_of():
    rows = {"query": ["q"] * 40, "doc": ["d"] * 40, "rank": [1, 2] * 20, "click": [1, 0] * 20}
    with pytest.raises(NoUsablePairs, match=r"shown more than \d+ times.*--max-shown"):
        estimate(read_log(pa.table(rows)), method="bayes")


def test_a_reference_that_was_never_shown_is_told():
    with pytest.raises(NotIdentified, match=r"reference rank 40 .*1–12"):
        estimate(world(1).counts, method="bayes", reference=40)


def test_pairs_shown_too_often_are_left_out_with_a_remark():
    rank = np.array([[1, 2, 0, 0], [3, 1, 0, 0], [1, 2, 3, 1]] * 20)
    click = np.arange(4) == np.zeros((60, 1))
    counts = count_pairs(rank, click, np.zeros(60, int), buckets=1, max_rank=3, max_shown=3)
    with pytest.warns(Remark, match=r"20 pairs shown more than 3 times are left out"):
        evidence = estimating.evidence_of(counts, "rank")
    assert evidence.clicks.sum() == 40


def test_what_has_not_converged_is_an_error_that_carries_what_there_was(monkeypatch):
    monkeypatch.setattr(estimating, "WARM_UP", 6)
    monkeypatch.setattr(estimating, "LONGEST", 1)
    monkeypatch.setattr(estimating.Sampler, "warm_up", lambda self, draws: None)
    monkeypatch.setattr(estimating.Sampler, "_move", stuck)
    with pytest.raises(NotConverged, match=r"After 800 draws .* R-hat") as raised:
        estimate(world(1).counts, **FEW)
    assert raised.value.partial.draws.shape == (800, RANKS)


def stuck(self):
    """A sampler that creeps."""
    self._x = self._x + 1e-3 * self._rng.standard_normal(self._x.shape) @ self._root.T
    return np.ones(len(self._x))
