"""Eq. (3), log-like, against plain loops over choices, and against finite differences."""

import math

import numpy as np
import pytest
from support.worlds import listed, simulate

from rankdrift.estimation.likelihood import is_plain, likelihood_of, shares

ROUNDING = 1e-10  # sums of some thousand doubles of order 1, in another order
STEP = 1e-5
# Central differences: error STEP^2 times the third derivative, and rounding over STEP.
DIFFERENCES = 1e-6


def repeated():
    """Ranks repeat inside pairs; several clicks in a pair; long pairs as weighted comparisons."""
    world = simulate(150, 9, 5, shown=(2, 6), level=0.4, buckets=8, max_shown=4)
    assert len(world.counts.rank_pairs)
    return world.counts


def by_hand():
    return listed(
        [
            (((1, 1), (2, 0), (2, 0)), 0, 3),
            (((1, 0), (1, 1), (3, 1), (3, 1)), 1, 2),
            (((2, 1), (3, 0)), 1, 5),
        ],
        buckets=4,
    )


@pytest.fixture(params=[repeated, by_hand])
def terms(request):
    """The choices, the likelihood, and a theta that is not its maximum."""
    counts = request.param()
    theta = np.random.default_rng(1).normal(0, 1, len(counts.ranks))
    return counts.choices("every"), likelihood_of(counts), theta


def plainly(choices, ranks, theta, buckets):
    """value, gradient, information, and the last two by bucket, one term and rank at a time."""
    place = {int(rank): at for at, rank in enumerate(ranks)}
    value, size = 0.0, len(ranks)
    gradient = np.zeros((buckets, size))
    information = np.zeros((buckets, size, size))
    for shown, clicked, weight, bucket in zip(
        choices.shown.tolist(), choices.clicked.tolist(), choices.weight.tolist(),
        choices.bucket.tolist(), strict=True,
    ):  # fmt: skip
        at = [place[rank] for rank in shown if rank]
        total = sum(math.exp(theta[k]) for k in at)
        value += weight * (theta[place[clicked]] - math.log(total))
        share = [0.0] * size
        for k in at:
            share[k] += math.exp(theta[k]) / total
        gradient[bucket, place[clicked]] += weight
        for a in range(size):
            gradient[bucket, a] -= weight * share[a]
            for b in range(size):
                same = share[a] if a == b else 0.0
                information[bucket, a, b] += weight * (same - share[a] * share[b])
    return value, gradient, information


def test_value_gradient_and_information_are_those_of_plain_loops(terms):
    choices, found, theta = terms
    value, gradient, information = plainly(choices, found.ranks, theta, found.buckets)
    assert found.at(theta).value == pytest.approx(value, rel=ROUNDING)
    np.testing.assert_allclose(found.at(theta).gradient, gradient.sum(axis=0), atol=ROUNDING)
    np.testing.assert_allclose(
        found.at(theta).information(), information.sum(axis=0), atol=ROUNDING
    )
    assert found.weight == pytest.approx(choices.weight.sum(), rel=ROUNDING)


def test_ranks_with_holes_keep_their_places():
    counts = listed(
        [
            (((1, 1), (3, 0)), 0, 3),
            (((3, 0), (4, 1), (6, 0)), 1, 2),
            (((4, 0), (6, 1)), 1, 5),
        ],
        buckets=4,
    )
    ranks, theta = np.array([1, 3, 4, 6], np.int32), np.array([0.0, -0.3, -0.9, -1.0])
    found = likelihood_of(counts, ranks=ranks)
    value, gradient, information = plainly(counts.choices("every"), ranks, theta, found.buckets)
    assert found.at(theta).value == pytest.approx(value, rel=ROUNDING)
    np.testing.assert_allclose(found.at(theta).gradient, gradient.sum(axis=0), atol=ROUNDING)
    np.testing.assert_allclose(
        found.at(theta).information(), information.sum(axis=0), atol=ROUNDING
    )


def test_a_rank_wins_over_those_shown_with_it_where_it_was_clicked():
    counts = listed([(((1, 1), (3, 0)), 0, 3), (((3, 0), (4, 1), (6, 0)), 1, 2)], buckets=4)
    winners, losers = likelihood_of(counts).victories()
    assert {*zip(winners.tolist(), losers.tolist(), strict=True)} == {(1, 3), (4, 3), (4, 6)}


def test_a_pair_loses_its_clicks_at_other_ranks_once_for_each_rank_it_was_shown_at(terms):
    """However often it was shown there."""
    choices, found, _ = terms
    lost = np.zeros((found.buckets, len(found.ranks)))
    for shown, clicked, weight, bucket in zip(
        choices.shown, choices.clicked, choices.weight, choices.bucket, strict=True
    ):
        others = np.setdiff1d(shown, [0, clicked])
        lost[bucket, np.searchsorted(found.ranks, others)] += weight
    np.testing.assert_allclose(found.bucket_losses, lost, atol=ROUNDING)


def test_gradient_and_information_are_derivatives(terms):
    _, found, theta = terms
    moves = STEP * np.eye(len(theta))
    slope = [(found.at(theta + m).value - found.at(theta - m).value) / (2 * STEP) for m in moves]
    bend = [
        (found.at(theta - m).gradient - found.at(theta + m).gradient) / (2 * STEP) for m in moves
    ]
    scale = found.weight
    np.testing.assert_allclose(found.at(theta).gradient, slope, atol=DIFFERENCES * scale)
    np.testing.assert_allclose(found.at(theta).information(), bend, atol=DIFFERENCES * scale)


def test_buckets_are_parts_of_the_whole(terms):
    choices, found, theta = terms
    _, gradient, information = plainly(choices, found.ranks, theta, found.buckets)
    scores = found.bucket_scores(theta)
    np.testing.assert_allclose(scores, gradient, atol=ROUNDING)
    np.testing.assert_allclose(scores.sum(axis=0), found.at(theta).gradient, atol=ROUNDING)
    basis = np.random.default_rng(2).normal(size=(len(theta), 3))
    parts = np.stack(list(found.bucket_information(theta, basis)))
    whole = basis.T @ found.at(theta).information() @ basis
    np.testing.assert_allclose(parts.sum(axis=0), whole, rtol=ROUNDING, atol=ROUNDING * 1e3)
    for bucket, own in enumerate(information):
        np.testing.assert_allclose(parts[bucket], basis.T @ own @ basis, atol=ROUNDING * 1e3)


def test_each_buckets_information_times_a_vector_of_its_own(terms):
    choices, found, theta = terms
    _, _, information = plainly(choices, found.ranks, theta, found.buckets)
    rows = np.random.default_rng(3).normal(size=(found.buckets, len(theta)))
    wanted = np.einsum("gij,gj->gi", information, rows)
    np.testing.assert_allclose(found.bucket_product(theta)(rows), wanted, atol=ROUNDING * 10)


def test_curvature_is_the_lower_half_of_the_information_on_the_parameters(terms):
    choices, found, theta = terms
    whole = plainly(choices, found.ranks, theta, found.buckets)[2].sum(axis=0)
    point, size = found.at(theta), len(theta)
    plain, other = np.eye(size)[:, 1:], np.random.default_rng(4).normal(size=(size, size - 1))
    assert (is_plain(plain), is_plain(other), is_plain(plain[:, ::-1])) == (True, False, size == 2)
    assert not is_plain(np.vstack([np.eye(1, size - 1), np.eye(size - 1)]))  # nor with a first
    assert not is_plain(plain + 1.0 * (np.indices(plain.shape).sum(axis=0) == 2))
    for basis in (plain, other):
        wanted = basis.T @ whole @ basis
        lower = point.curvature(basis, is_plain(basis))
        np.testing.assert_allclose(np.tril(lower), np.tril(wanted), atol=ROUNDING * 1e3)
        np.testing.assert_allclose(point.information(basis), wanted, atol=ROUNDING * 1e3)
    twice = [2 * cells.weight for cells in found.cells]
    lower = point.curvature(plain, True, twice)
    np.testing.assert_allclose(np.tril(lower), 2 * np.tril(whole[1:, 1:]), atol=ROUNDING)


@pytest.mark.parametrize("shown", [2, 3])
def test_shares_of_propensities_as_far_apart_as_a_fit_lets_them_be(shown):
    rng = np.random.default_rng(6)
    theta = 1e4 + np.concatenate([[-500, -499, 499, 500], rng.uniform(-500, 500, 20)])
    at = np.sort(rng.integers(0, len(theta), (shown, 300)), axis=0)
    found = shares(at, np.stack([theta, 0 * theta], axis=1))
    wanted = np.exp(theta[at] - np.logaddexp.reduce(theta[at], axis=0))
    np.testing.assert_allclose(found[..., 0], wanted, atol=ROUNDING)
    np.testing.assert_allclose(found[..., 1], 1 / shown, atol=ROUNDING)


def test_two_appearances_make_one_cell_for_each_two_ranks():
    rows = [((1, 1), (2, 0)), ((2, 0), (3, 1)), ((1, 0), (2, 1)), ((1, 1), (3, 1))]
    counts = listed([(shown, b, n) for n, shown in enumerate(rows, 1) for b in range(3)], buckets=4)
    (cells,) = likelihood_of(counts).cells
    found = dict(zip(map(tuple, cells.shown.T), map(tuple, cells.won.T), strict=True))
    assert found == {(0, 1): (3, 9), (1, 2): (0, 6), (0, 2): (12, 12)}
    assert cells.weight.tolist() == cells.won.sum(axis=0).tolist()


def test_a_bucket_by_itself_and_buckets_counted_several_times(terms):
    choices, found, theta = terms
    value, gradient, _ = plainly(choices, found.ranks, theta, found.buckets)
    alone = [found.restrict(bucket) for bucket in range(found.buckets)]
    assert sum(part.at(theta).value for part in alone) == pytest.approx(value, rel=ROUNDING)
    times = np.arange(found.buckets) + 0.5
    again = found.reweighted(times)
    np.testing.assert_allclose(again.at(theta).gradient, times @ gradient, atol=ROUNDING * 10)
    total = sum(t * part.at(theta).value for t, part in zip(times, alone, strict=True))
    assert again.at(theta).value == pytest.approx(total, rel=ROUNDING)


def test_a_constant_makes_no_difference_and_the_information_is_of_a_concave_function(terms):
    _, found, theta = terms
    assert found.at(theta + 3).value == pytest.approx(found.at(theta).value, rel=ROUNDING)
    assert found.at(theta).gradient.sum() == pytest.approx(0, abs=ROUNDING * found.weight)
    information = found.at(theta).information()
    assert (information == information.T).all()
    assert np.abs(information.sum(axis=1)).max() < ROUNDING * found.weight
    assert np.linalg.eigvalsh(information)[0] > -ROUNDING * found.weight


def test_far_apart_propensities_do_not_overflow(terms):
    _, found, theta = terms
    steep = 2000 * np.sign(theta) + theta
    assert np.isfinite(found.at(steep).value)
    assert np.isfinite(found.at(steep).gradient).all()
    assert np.isfinite(found.at(steep).information()).all()


def test_by_hand_in_closed_form():
    """At theta = log (1, 2, 4): the shares of each pair are plain fractions."""
    counts = by_hand()
    found = likelihood_of(counts)
    theta = np.log([1.0, 2.0, 4.0])
    # 3 pairs: 1 of {1, 2, 2}. 2 pairs: 1 once and 3 twice of {1, 1, 3, 3}. 5 pairs: 2 of {2, 3}.
    twice = math.log(1 / 10) + 2 * math.log(4 / 10)
    value = 3 * math.log(1 / 5) + 2 * twice + 5 * math.log(2 / 6)
    assert found.at(theta).value == pytest.approx(value, rel=ROUNDING)
    expected = [3 / 5 + 6 * 2 / 10, 3 * 4 / 5 + 5 / 3, 6 * 8 / 10 + 5 * 2 / 3]
    np.testing.assert_allclose(found.wins, [3 + 2, 5, 4], atol=ROUNDING)
    np.testing.assert_allclose(found.at(theta).expected, expected, rtol=ROUNDING)
