"""The maximum and its errors against other people's code, closed forms, and explicit refits."""

import warnings
from dataclasses import replace

import choix
import numpy as np
import pytest
from statsmodels.discrete.conditional_models import ConditionalLogit
from support.worlds import listed, power, simulate

from rankdrift.estimation import covariance as errors_of_fits
from rankdrift.estimation import estimate
from rankdrift.estimation import jackknife as together
from rankdrift.estimation.covariance import (
    ALONE,
    bootstrap,
    bucket_covariance,
    bucket_influence,
    covariance_root,
    jackknife_covariance,
    model_covariance,
    no_less,
)
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.newton import LEFT, left_by, maximise
from rankdrift.propensities.intervals import simultaneous_quantile, t_quantile

SAME_LIKELIHOOD = 1e-9  # rounding
# Ours is exact to CLOSED; what remains is where the other optimisers stop, BFGS the soonest.
SAME_LOG_P = 1e-6
SAME_SCORE = 1e-6
SAME_AS_BFGS = 1e-3
# At most 1e-7 of a standard error by what `maximise` promises, and far less by what it does.
CLOSED = 1e-8
CLOSED_VARIANCE = 1e-4
# Conjugate gradients leave 1e-12 of the error they start with; the other way there is rounding.
SAME_MOVES = 1e-10
# The one-step jackknife is Newton's first step towards leaving a bucket out: off by the square
# of the step, about 1/buckets.
ONE_STEP = 0.05
# A batched sample takes its last step with 1e-5 of log L to gain, 0.4% of an error, which are up
# to 0.5 here; the step leaves about a tenth of that.
SAME_SAMPLE = 1e-3
# Errors are about 1 here and steps shorten slowly; where they do not shorten, a refit takes over.
SAME_THIN_SAMPLE = 1e-2
# Standard deviation of 400 draws is off by 1 / sqrt(2 * 400), 3.5%; the bootstrap also lacks the
# jackknife's correction for how hard each of 64 buckets pulls.
BOOTSTRAP = 0.15


# -- other people's code -----------------------------------------------------------------------


def duels():
    """Two appearances at two ranks, one click: Bradley-Terry."""
    return simulate(400, 8, 3, level=0.3).counts.restrict(strict=True)


def one_by_one(counts, clicks):
    """(shown, clicked) of every single term, and the index of each rank."""
    choices = counts.choices(clicks)
    place = {rank: at for at, rank in enumerate(counts.ranks.tolist())}
    for shown, clicked, weight in zip(
        choices.shown.tolist(), choices.clicked.tolist(), choices.weight.tolist(), strict=True
    ):
        for _ in range(round(weight)):
            yield [place[rank] for rank in shown if rank], place[clicked]


def test_two_appearances_are_choix():
    counts = duels()
    found = estimate(counts, curve="direct", clicks="single")
    data = [(clicked, sum(shown) - clicked) for shown, clicked in one_by_one(counts, "single")]
    assert len(data) == counts.pairs.total.pairs
    newton = choix.opt_pairwise(len(found.ranks), data, alpha=0, method="Newton-CG", tol=1e-10)
    spectral = choix.ilsr_pairwise(len(found.ranks), data, alpha=0, tol=1e-10, max_iter=1000)
    for theirs in (newton, spectral):
        np.testing.assert_allclose(found.log_p, theirs - theirs[0], atol=SAME_LOG_P)
    winner, loser = np.array(data).T
    theirs = -np.logaddexp(0, newton[loser] - newton[winner]).sum()
    assert found.log_likelihood == pytest.approx(theirs, abs=SAME_LIKELIHOOD)
    assert found.log_likelihood >= theirs - 1e-12 * abs(theirs)  # nothing is higher


@pytest.mark.parametrize("clicks", ["single", "every"])
@pytest.mark.parametrize("distinct", [True, False])
def test_any_number_of_appearances_are_a_conditional_logit(clicks, distinct):
    counts = simulate(160, 6, 4, shown=(2, 5), level=0.3, curve=power(0.7)).counts
    if distinct:
        rank = counts.pairs.shown >> 1
        repeats = ((rank[:, 1:] == rank[:, :-1]) & (rank[:, 1:] > 0)).any(axis=1)
        options = {"restrict": {"distinct": True}}
        counts = replace(counts, pairs=counts.pairs.take(~repeats), options=options)
    found = estimate(counts, curve="direct", clicks=clicks, errors="model", reference=1)
    clicked, design, group = [], [], []
    size = len(found.ranks)
    for number, (shown, won) in enumerate(one_by_one(counts, clicks)):
        # Which of the appearances at the clicked rank was clicked makes no difference.
        clicked += [k == shown.index(won) for k in range(len(shown))]
        design += np.eye(size)[shown].tolist()
        group += [number] * len(shown)
    model = ConditionalLogit(
        np.array(clicked, float), np.array(design)[:, 1:], groups=np.array(group)
    )
    ours = found.log_p[1:]
    assert found.log_likelihood == pytest.approx(model.loglike(ours), abs=SAME_LIKELIHOOD)
    np.testing.assert_allclose(model.score(ours), 0, atol=SAME_SCORE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its optimiser's precision; see SAME_AS_BFGS
        theirs = model.fit(method="bfgs", gtol=1e-9, disp=False)
    np.testing.assert_allclose(ours, theirs.params, atol=SAME_AS_BFGS)
    assert found.log_likelihood >= theirs.llf
    # Theirs takes numerical second derivatives.
    np.testing.assert_allclose(found.std_error[1:], theirs.bse, rtol=1e-3)


# -- closed forms ------------------------------------------------------------------------------


def two_ranks(wins_1=70, wins_2=30):
    """Wins spread unevenly over 10 buckets."""
    rows = []
    for bucket in range(10):
        more = (bucket - 4.5) / 9
        rows.append((((1, 1), (2, 0)), bucket, round(wins_1 / 10 * (1 + more))))
        rows.append((((1, 0), (2, 1)), bucket, round(wins_2 / 10 * (1 - more))))
    return listed(rows, buckets=16)


@pytest.mark.parametrize("curve", ["direct", "loglog"])
def test_two_ranks_in_closed_form(curve):
    counts = two_ranks()
    won = counts.choices()
    w1, w2 = (won.weight[won.clicked == rank].sum() for rank in (1, 2))
    found = estimate(counts, curve=curve, errors="model")
    assert found.values[1] == pytest.approx(w2 / w1, rel=CLOSED)
    assert found.covariance[1, 1] == pytest.approx(1 / w1 + 1 / w2, rel=CLOSED_VARIANCE)
    n = w1 + w2
    assert found.log_likelihood == pytest.approx(w1 * np.log(w1 / n) + w2 * np.log(w2 / n))
    reach = t_quantile(0.9, np.inf) * np.sqrt(1 / w1 + 1 / w2)
    ratio = found.ratio(1, 2, 0.9)
    assert (ratio.value, ratio.level) == (pytest.approx(w1 / w2, rel=CLOSED), 0.9)
    assert ratio.low == pytest.approx(w1 / w2 * np.exp(-reach), rel=CLOSED_VARIANCE)
    assert ratio.high == pytest.approx(w1 / w2 * np.exp(reach), rel=CLOSED_VARIANCE)
    back = found.ratio(2, 1, 0.9)
    assert (back.low, back.high) == (pytest.approx(1 / ratio.high), pytest.approx(1 / ratio.low))
    low, high = found.interval(0.9)
    assert (low[1], high[1]) == (pytest.approx(back.low), pytest.approx(back.high))
    assert (low[0], high[0]) == (1, 1)


def test_two_ranks_bucket_errors_in_closed_form():
    """The jackknife's step for bucket g: (w1 of g - its expectation) / information of the rest."""
    counts = two_ranks()
    found = estimate(counts, curve="direct")
    won = counts.choices()
    one, two = (
        np.bincount(won.bucket, won.weight * (won.clicked == rank), minlength=10) for rank in (1, 2)
    )
    p = two.sum() / (one + two).sum()
    score = two - p * (one + two)
    rest = (one + two).sum() - (one + two)
    moves = score / (rest * p * (1 - p))
    variance = 9 / 10 * ((moves - moves.mean()) ** 2).sum()
    assert found.covariance[1, 1] == pytest.approx(variance, rel=CLOSED_VARIANCE)
    assert found.df == 9
    reach = t_quantile(0.95, 9) * np.sqrt(variance)
    assert found.ratio(2, 1).high == pytest.approx(
        np.exp(found.log_p[1] + reach), rel=CLOSED_VARIANCE
    )


def test_a_chain_of_ranks_adds_up_logs_and_variances():
    """1 - 2 - 3 compared only with their neighbours: a tree, so each link is by itself."""
    counts = listed([
        (((1, 1), (2, 0)), 0, 40), (((1, 0), (2, 1)), 1, 20),
        (((2, 1), (3, 0)), 2, 9), (((2, 0), (3, 1)), 3, 3),
    ])  # fmt: skip
    found = estimate(counts, curve="direct", errors="model")
    np.testing.assert_allclose(found.values, [1, 1 / 2, 1 / 6], rtol=CLOSED)
    variances = np.cumsum([0, 1 / 40 + 1 / 20, 1 / 9 + 1 / 3])
    np.testing.assert_allclose(np.diag(found.covariance), variances, rtol=CLOSED_VARIANCE)


def test_expected_clicks_equal_clicks_at_the_maximum():
    counts = simulate(800, 20, 2, shown=(2, 4)).counts
    found = fit(counts, Options(curve="direct"))
    np.testing.assert_allclose(
        found.likelihood.at(found.fit.theta).expected, found.likelihood.wins, atol=1e-3
    )


@pytest.mark.parametrize("curve", ["direct", "loglog"])
@pytest.mark.parametrize("times", [1, 10**6])
def test_no_more_is_left_to_gain_than_said(curve, times):
    counts = simulate(900, 20, 2, shown=(2, 4)).counts
    many = replace(counts.pairs, pairs=counts.pairs.pairs * times)
    counts = replace(counts, pairs=many, options={"restrict": {}})  # not what the funnel says
    found = fit(counts, Options(curve=curve)).fit
    gradient = found.basis.T @ found.likelihood.at(found.theta).gradient
    # Rounding of a gradient that is the difference of sums as large as the clicks.
    rounding = found.likelihood.weight * np.finfo(float).eps ** 2 * 1e3
    assert gradient @ np.linalg.solve(found.information, gradient) <= LEFT + rounding


def test_a_step_leaves_no_more_than_said():
    """Curvature of elsewhere, as far off as is bearable; pairs shown up to four times."""
    terms = fit(simulate(900, 12, 2, shown=(2, 4)).counts, Options(curve="direct")).likelihood
    rng = np.random.default_rng(5)
    for size in (0.01, 0.1, 0.5, 2.0):
        at, moved = rng.normal(0, 0.5, 12), size * rng.uniform(0, 1, 12)
        here, there = (terms.at(theta).information()[1:, 1:] for theta in (at, at + moved))
        values = np.linalg.eigvals(np.linalg.solve(here, there)).real
        assert (values.max() - 1) ** 2 <= left_by(moved)
        assert (values.min() - 1) ** 2 <= left_by(moved)
        # A step from `at` to `at + change` with the curvature of `at + moved`.
        gradient = terms.at(at).gradient[1:]
        change = np.linalg.solve(there, gradient)
        after = terms.at(at + np.concatenate([[0], change])).gradient[1:]
        gain, left = (g @ np.linalg.solve(there, g) for g in (gradient, after))
        ends = (left_by(-moved), left_by(np.concatenate([[0], change]) - moved))
        assert left <= gain * max(ends)


# -- errors ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """Clicks of a query belong together here, so buckets and model must differ."""
    world = simulate(3000, 30, 6, shown=(2, 4), level=0.3, query_slope=1.0, queries=40, buckets=32)
    return fit(world.counts, Options(curve="loglog(1, 4, 30)"))


def leaving_out(fitted, bucket):
    weight = np.ones(fitted.likelihood.buckets)
    weight[bucket] = 0
    return maximise(fitted.likelihood.reweighted(weight), fitted.fit.basis, fitted.fit.phi).phi


def test_bucket_errors_are_those_of_leaving_out_each_bucket(fitted):
    used = fitted.likelihood.touched
    without = np.stack([leaving_out(fitted, bucket) for bucket in used.tolist()])
    moves = bucket_influence(fitted.fit)[used]
    whole = fitted.fit.phi
    assert np.abs(whole - without - moves).max() < ONE_STEP * np.abs(moves).max()
    n = len(used)
    jackknife = np.sqrt((n - 1) * without.var(axis=0))
    errors = np.sqrt(np.diag(bucket_covariance(fitted.fit)))
    np.testing.assert_allclose(errors, jackknife, rtol=ONE_STEP)


@pytest.mark.parametrize(
    ("pairs", "ranks", "buckets"), [(60, 6, 16), (150, 12, 16), (2000, 40, 64)]
)
def test_moves_of_all_buckets_at_once_are_those_of_one_after_the_other(
    pairs, ranks, buckets, monkeypatch
):
    """With thin ranks, which few buckets tell of, and without."""
    counts = simulate(pairs, ranks, 3, shown=(2, 4), buckets=buckets).counts
    found = fit(counts, Options(curve="direct", reference=2)).fit
    scores = found.likelihood.bucket_scores(found.theta) @ found.basis
    information = list(found.likelihood.bucket_information(found.theta, found.basis))
    whole = found.information + ALONE * np.diag(np.diag(found.information))
    wanted = [np.linalg.solve(whole - own, s) for own, s in zip(information, scores, strict=True)]
    np.testing.assert_allclose(bucket_influence(found), wanted, atol=SAME_MOVES)
    monkeypatch.setattr(together, "STEPS", 1)  # not reached: then one by one
    np.testing.assert_allclose(bucket_influence(found), wanted, atol=SAME_MOVES)


def test_buckets_see_clicks_that_belong_together_and_the_model_does_not(fitted):
    buckets = np.diag(bucket_covariance(fitted.fit))
    model = np.diag(model_covariance(fitted.fit))
    assert (buckets > 1.5 * model).all()
    alone = simulate(3000, 30, 6, shown=(2, 2), level=0.05, query_effect=0.0, queries=3000)
    free = fit(alone.counts, Options(curve="loglog(1, 4, 30)"))
    ratio = np.diag(bucket_covariance(free.fit)) / np.diag(model_covariance(free.fit))
    # A variance from 64 buckets is off by sqrt(2 / 63), 18%: three times that.
    assert (np.abs(ratio - 1) < 0.54).all()


@pytest.mark.parametrize(
    ("curve", "pairs", "shown", "tolerance"),
    [
        ("loglog", 1000, (2, 4), SAME_SAMPLE),
        ("direct", 1500, (2, 4), SAME_SAMPLE),
        ("direct", 1500, (2, 2), SAME_SAMPLE),
        ("direct", 150, (2, 2), SAME_THIN_SAMPLE),
    ],
)
def test_a_bootstrap_sample_is_a_refit_with_its_weights(curve, pairs, shown, tolerance):
    counts = simulate(pairs, 20, 3, shown=shown, buckets=16).counts
    found = fit(counts, Options(curve=curve, reference=10))
    weights = np.random.default_rng(7).exponential(size=(25, 16))
    drawn = bootstrap(found.fit, 25, seed=7)
    for weight, phi in zip(weights, drawn, strict=True):
        again = maximise(found.likelihood.reweighted(weight), found.fit.basis, found.fit.phi)
        assert np.abs(phi - again.phi).max() < tolerance


@pytest.mark.parametrize("curve", ["loglog", "direct"])
def test_samples_of_plenty_of_data_are_not_refitted_one_by_one(curve, monkeypatch):
    """They all move together, or the bootstrap would take as long as so many fits."""
    found = fit(simulate(4000, 12, 3, shown=(2, 4)).counts, Options(curve=curve)).fit
    refits = []
    monkeypatch.setattr(errors_of_fits, "maximise", lambda *_: refits.append(1) or found)
    bootstrap(found, 25, seed=7)
    assert not refits


def test_the_bootstrap_spreads_as_the_buckets_say(fitted):
    drawn = bootstrap(fitted.fit, 400, seed=0)
    errors = np.sqrt(np.diag(bucket_covariance(fitted.fit)))
    np.testing.assert_allclose(drawn.std(axis=0, ddof=1), errors, rtol=BOOTSTRAP)
    # The mean of the samples is the estimate, to a few errors of a mean of 400.
    middle = fitted.fit.phi
    assert (np.abs(drawn.mean(axis=0) - middle) < 0.5 * errors).all()
    again = bootstrap(fitted.fit, 400, seed=0)
    assert (again == drawn).all()
    assert (bootstrap(fitted.fit, 400, seed=1) != drawn).any()


def test_a_rank_that_one_bucket_tells_of_is_no_surer_than_by_the_model():
    """How one bucket differs from itself says nothing: not 0, and no noise over nothing."""
    rows = [(((1, 1), (2, 0)), b, 30 + 3 * b) for b in range(16)]
    rows += [(((1, 0), (2, 1)), b, 15 + 5 * (b % 3)) for b in range(16)]
    rows += [(((1, 1), (3, 0)), 5, 7), (((1, 0), (3, 1)), 5, 4)]
    counts = listed(rows, buckets=16)
    model = estimate(counts, curve="direct", errors="model").std_error
    for errors in ("buckets", "bootstrap"):
        found = estimate(counts, curve="direct", errors=errors, samples=100)
        assert found.supported.tolist() == [True, True, False]
        assert found.std_error[2] == pytest.approx(model[2], rel=0.02)
        assert 0.5 * model[1] < found.std_error[1] < 3 * model[1]


def test_what_one_bucket_tells_moves_nothing_by_rounding():
    """Ranks 3 and 4 in bucket 5 only: its information less its own is rounding, not 0."""

    def errors(k):
        rows = [(((1, 1), (2, 0)), b, (30 + 3 * b) * k) for b in range(16)]
        rows += [(((1, 0), (2, 1)), b, (15 + 5 * (b % 3)) * k) for b in range(16)]
        rows += [(((1, 1), (3, 0), (4, 0)), 5, 7 * k), (((1, 0), (3, 1), (4, 0)), 5, 4 * k)]
        rows += [(((2, 0), (3, 0), (4, 1)), 5, 3 * k)]
        found = fit(listed(rows, buckets=16), Options(curve="direct"))
        return np.sqrt(np.diag(bucket_covariance(found.fit)))

    np.testing.assert_allclose(errors(1_000_000), errors(1), rtol=0.01)


@pytest.mark.parametrize("errors", ["buckets", "bootstrap"])
def test_buckets_that_all_agree_do_not_make_four_pairs_certain(errors):
    counts = listed([(s, b) for b in range(4) for s in (((1, 1), (2, 0)), ((1, 0), (2, 1)))])
    found = estimate(counts, curve="direct", errors=errors, samples=20)
    assert found.log_p.tolist() == [0, 0]
    assert found.std_error[1] > 0.4


def test_thin_ranks_are_raised_and_others_are_not():
    deviations = np.array([[0.0], [1.0], [0.1]])
    raised = no_less(deviations, np.array([0.0, 0.5, 4.0]), np.array([1.0, 0.0, 0.0]))
    assert (raised**2).sum(axis=1).tolist() == pytest.approx([0, 1, 4])
    none = no_less(deviations, np.zeros(3), np.ones(3))
    assert none.tolist() == deviations.tolist()


def test_buckets_that_agree_spread_nothing():
    assert jackknife_covariance(np.zeros((4, 2))).tolist() == [[0, 0], [0, 0]]
    assert covariance_root(np.zeros((2, 2))).shape == (2, 0)


def test_parts_of_a_covariance_with_large_and_small_variances():
    scale = np.array([1e3, 1e-5, 1.0])
    shape = np.array([[1, 0.999, 0.5], [0.999, 1, 0.5], [0.5, 0.5, 1]])
    covariance = shape * np.outer(scale, scale)
    parts = covariance_root(covariance)
    np.testing.assert_allclose(parts @ parts.T, covariance, rtol=1e-9, atol=1e-12)


def test_parts_of_a_covariance_with_a_variance_of_nothing():
    covariance = np.array([[0.0, 0, 0], [0, 4, 1], [0, 1, 1]])
    parts = covariance_root(covariance)
    np.testing.assert_allclose(parts @ parts.T, covariance, atol=1e-12)


@pytest.mark.parametrize("curve", ["direct", "loglog(1, 4, 12)"])
def test_estimates_carry_the_covariance_of_their_parameters(curve):
    counts = simulate(2000, 12, 5, shown=(2, 3), level=0.3).counts
    found = fit(counts, Options(curve=curve))
    contrast = found.fit.basis - found.fit.basis[4]
    drawn = bootstrap(found.fit, 60, seed=3)
    for errors, covariance in (
        ("model", model_covariance(found.fit)),
        ("buckets", bucket_covariance(found.fit)),
        ("bootstrap", np.cov(drawn, rowvar=False)),
    ):
        given = estimate(counts, curve=curve, errors=errors, samples=60, seed=3, reference=5)
        assert given.supported.all()
        wanted = contrast @ covariance @ contrast.T
        np.testing.assert_allclose(given.covariance, wanted, rtol=1e-6, atol=1e-9)
        assert given.df == (np.inf if errors == "model" else 63)
        assert given.errors == errors


# -- the whole curve at once -------------------------------------------------------------------

# The 0.95 quantile of 20,000 draws is off by about 0.015; three times that, scaled up for t.
DRAWN = 0.06


@pytest.mark.parametrize("df", [np.inf, 20.0])
def test_one_contrast_at_once_is_one_by_itself(df):
    one = np.array([[0.0], [2.0]])
    found = simultaneous_quantile(one, np.array([0.0, 2.0]), 0.95, df)
    assert found == pytest.approx(t_quantile(0.95, df), abs=DRAWN)
    assert found >= t_quantile(0.95, df)


def test_independent_contrasts_at_once_are_sidak():
    found = simultaneous_quantile(np.eye(10), np.ones(10), 0.95, np.inf)
    assert found == pytest.approx(t_quantile(0.95 ** (1 / 10), np.inf), abs=DRAWN)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_band_holds_the_intervals(level):
    found = estimate(simulate(500, 20, 1, buckets=16).counts)
    low, high = found.interval(level)
    least, most = found.interval(level, simultaneous=True)
    assert (least <= low).all()
    assert (most >= high).all()
    assert (least[1:] < low[1:]).all()  # two parameters or more
    assert (least[0], most[0]) == (1, 1)
