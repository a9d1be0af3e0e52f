"""Replays of counts: what stays, what is drawn, and what is said of it."""

import numpy as np
import pytest

from rankdrift import estimate
from rankdrift.core.errors import BadOption, NoUsablePairs
from rankdrift.simulate import like, pairs
from rankdrift.simulate.replay import Design

RANKS = 40
# Shares of clicks of tens of thousands; deviations are below 0.005.
SHARE = 0.02


@pytest.fixture(scope="module")
def counts():
    return pairs(6_000, ranks=RANKS, relevance=0.2, appearances=3, max_shown=3, seed=1).counts


def test_a_replay_keeps_the_ranks_and_draws_the_clicks(counts):
    truth = estimate(counts, errors="model")
    drawn = Design.of(counts, truth).draw([0])
    assert drawn.pairs.pairs.sum() == counts.pairs.pairs.sum()
    shown = [
        np.bincount((c.pairs.shown >> 1).ravel(), np.repeat(c.pairs.pairs, 3), RANKS + 1)
        for c in (counts, drawn)
    ]
    assert np.array_equal(*shown)
    clicks = [(c.pairs.clicks * c.pairs.pairs).sum() for c in (counts, drawn)]
    assert clicks[1] == pytest.approx(clicks[0], rel=SHARE)
    assert not drawn.pairs.equals(counts.pairs)
    assert drawn.equals(Design.of(counts, truth).draw([0]))


def test_clicks_fall_where_the_truth_says(counts):
    """Were the truth flat, the best rank of a pair gets its share of clicks; if steep, more."""
    truth = estimate(counts, errors="model")
    shares = {}
    for name, slope in (("flat", 0.0), ("steep", -3.0)):
        drawn = Design.of(counts, _with(truth, slope * np.log(truth.ranks))).draw([1]).pairs
        rank, click, times = drawn.shown >> 1, drawn.shown & 1, drawn.pairs[:, None]
        best = rank == rank[:, :1]
        shares[name] = (click * best * times).sum() / (click * times).sum()
        shown = (best * times).sum() / (3 * times).sum()
    # A pair with a click on two of three appearances takes a little from the flat share.
    assert shares["flat"] == pytest.approx(shown, abs=SHARE)
    assert shares["steep"] > shown + 5 * SHARE


def test_comparisons_are_replayed_too():
    made = pairs(3_000, ranks=20, relevance=0.4, appearances=6, max_shown=6, seed=2).counts
    short = made.restrict(max_shown=5)
    assert len(short.rank_pairs)
    mixed = pairs(3_000, ranks=20, relevance=0.4, appearances=4, max_shown=5, seed=3).counts
    both = _together(short, mixed)
    truth = estimate(both, errors="model")
    drawn = Design.of(both, truth).draw([0])
    assert drawn.rank_pairs.weight.sum() == both.rank_pairs.weight.sum()
    again = estimate(drawn, errors="model")
    assert np.abs(again.log_p - truth.log_p).max() < 0.4
    assert not drawn.rank_pairs.equals(both.rank_pairs)


def test_what_comes_back_is_told(counts):
    found = like(counts, replays=12)
    assert found.verdict in ("close", "useful")
    assert [block.first for block in found.blocks] == [2, 4, 8, 16, 32]
    assert found.blocks[-1].last == RANKS
    for block in found.blocks:
        assert abs(block.bias) < 4 * block.bias_error + 1e-9
        assert 0.5 < block.rmse / block.predicted < 1.6
        assert block.coverage > 0.75
    assert found.to_dict()["blocks"][0]["first"] == 2


def test_the_chart_has_a_bar_for_each_block(counts, tmp_path):
    found = like(counts, replays=3)
    drawn = found.plot()
    drawn.save(tmp_path / "replay.svg")
    values = drawn.chart.data.values
    assert [row["rmse"] for row in values] == [block.rmse for block in found.blocks]
    assert "replays" in (tmp_path / "replay.svg").read_text()


def test_a_stiff_curve_is_found_out(counts):
    truth = estimate(counts, curve="loglog", errors="model")
    place = truth.ranks
    dips = truth.log_p - 1.5 * ((place % 8) >= 5)
    found = like(counts, truth=_with(truth, dips - dips[0]), curve="loglog(1, 40)", replays=8)
    assert found.verdict in ("biased", "short")


def test_pairs_that_the_truth_does_not_tell_of_are_counted(counts):
    truth = estimate(counts.restrict(max_rank=10), errors="model")
    found = like(counts, truth=truth, replays=2)
    assert found.blocks[-1].last == 10
    assert found.left_out == counts.n_pairs - counts.only(truth.ranks).n_pairs > 0
    assert found.to_dict()["left_out"] == found.left_out
    assert like(counts, replays=2).left_out == 0


def test_thin_counts_are_found_out():
    thin = pairs(150, ranks=RANKS, seed=4).counts
    assert like(thin, replays=10).verdict in ("noisy", "failed", "biased", "short")


def test_the_same_seed_says_the_same(counts):
    one, two = (like(counts, replays=2, seed=7).to_dict() for _ in range(2))
    assert one == two


def test_what_cannot_be_replayed(counts):
    with pytest.raises(BadOption, match="replays is 1"):
        like(counts, replays=1)
    with pytest.raises(NoUsablePairs):
        like(counts.restrict(max_rank=1), replays=5)


def _with(truth, log_p):
    from dataclasses import replace

    return replace(truth, log_p=log_p)


def _together(a, b):
    from dataclasses import replace

    return replace(a, options=b.options) + b
