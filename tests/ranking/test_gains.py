"""What a click is worth, worked out by hand: the nearest rank, limits, segments, labels."""

from dataclasses import replace

import numpy as np
import pytest
from support.clicklogs import curve, frame, matrix, power
from support.curve_example import hand

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.ranking.gains import (
    Lists,
    Weighting,
    curves_of_rows,
    fingerprint,
    gain_table,
    labels,
    other_curves,
    weigh,
)
from rankdrift.ranking.matrix import Matrix


def clicks_at(*ranks, **more):
    """One search a click, and a row without one, which is worth nothing wherever it is."""
    n = len(ranks) + 1
    return Matrix.from_arrays(
        np.zeros((n, 1)), rank=np.array([*ranks, 77]), click=np.arange(n) < len(ranks),
        query=np.arange(n), search=np.arange(n), **more,
    )  # fmt: skip


def part(p, *ranks):
    """The curve at some of its ranks only."""
    kept = np.isin(p.ranks, ranks)
    cut = {
        name: getattr(p, name)[kept]
        for name in ("ranks", "log_p", "deviations", "pairs", "clicks", "supported")
    }
    return replace(p, **cut, reference=int(cut["ranks"][0]))


P = {4: 1.0, 5: 0.5, 9: 0.25, 20: 0.1}
GAPPY = replace(
    part(curve(np.arange(20.0, 0, -1)), *P), log_p=np.log(list(P.values())), reference=4
)


@pytest.mark.parametrize(
    ("rank", "nearest"),
    [
        (1, 4), (3, 4), (4, 4),  # above the first rank that is covered
        (5, 5), (6, 5), (7, 5), (8, 9),  # between; 7 is as far from 5 as from 9: the higher
        (14, 9), (15, 20), (19, 20),
        (20, 20), (21, 20), (500, 20),  # below the last
    ],
)  # fmt: skip
def test_a_rank_without_propensity_takes_that_of_the_nearest(rank, nearest):
    found = weigh(clicks_at(rank), GAPPY, beyond="clip")
    assert found.gain[0] == pytest.approx(1 / P[nearest])
    assert found.borrowed == (rank not in P)
    assert found.gain[-1] == 0


def test_a_curve_of_one_rank_is_the_nearest_to_all():
    found = weigh(clicks_at(1, 5, 9), part(GAPPY, 5), beyond="clip")
    assert found.gain[:3] == pytest.approx(2.0)
    assert found.borrowed == 2


def test_a_weight_at_the_limit_is_not_clipped():
    found = weigh(clicks_at(4, 5, 9, 20), GAPPY, clip=4)
    assert found.gain.tolist() == pytest.approx([1, 2, 4, 4, 0])
    assert (found.clipped, found.largest, found.clicks) == (1, 4.0, 4)
    assert found.effective == pytest.approx(11**2 / 37)
    assert weigh(clicks_at(4), GAPPY, clip=1).gain[0] == 1


def test_no_limit_below_one():
    with pytest.raises(BadOption, match=r"must be 1 or more, not 0\.99"):
        weigh(clicks_at(4), GAPPY, clip=0.99)
    with pytest.raises(BadOption, match="not nan"):
        weigh(clicks_at(4), GAPPY, clip=np.nan)
    with pytest.raises(BadOption, match="no propensities"):
        weigh(clicks_at(4), None, clip=3)


def test_without_clicks_nothing_is_worth_anything():
    found = weigh(clicks_at(), GAPPY, beyond="clip")
    assert (found.effective, found.largest, found.clicks, found.borrowed) == (0.0, 0.0, 0, 0)


def test_each_segment_has_its_curve_and_borrows_from_it():
    web, app = part(GAPPY, 5, 9), part(GAPPY, 9, 20)
    p = replace(GAPPY, segment_columns=("segment",), by_segment={("web",): web, ("app",): app})
    rows = clicks_at(5, 20, 20, segment=np.array(["web", "app", "web", "web"]))
    found = weigh(rows, p, beyond="clip")
    assert found.gain[:3] == pytest.approx([2.0, 10.0, 4.0])
    assert found.borrowed == 1
    pooled = weigh(rows, p, beyond="clip", pool=True)
    assert pooled.gain[:3] == pytest.approx([2.0, 10.0, 10.0]) and pooled.borrowed == 0


def test_segments_without_a_curve_are_named_with_their_clicks():
    web = {"segment_columns": ("segment",), "by_segment": {("web",): GAPPY}}
    rows = clicks_at(5, 20, 20, segment=np.array(["app", "web", "app", "tv"]))
    words = r"segment app \(2 clicks\); there are for: web\."
    with pytest.raises(NotIdentified, match=words):
        weigh(rows, replace(GAPPY, **web))


def test_clicks_without_a_propensity_are_counted():
    with pytest.raises(
        NotIdentified, match=r"^2 of 3 clicks are at ranks .*: 6, 21; .* 4–5, 9, 20"
    ):
        weigh(clicks_at(6, 21, 5), GAPPY)


def test_numbers_told_of_gains_are_plain():
    found = weigh(clicks_at(4, 5, 5, 20), GAPPY)
    assert found.table.tolist() == pytest.approx([0, 1, 2, 10])
    assert found.to_dict() == {
        "clicks": 4, "effective": pytest.approx(15**2 / 109), "largest": pytest.approx(10.0),
        "clipped": 0, "raised": 0.0, "borrowed": 0, "different": 3,
    }  # fmt: skip


@pytest.mark.parametrize(("ranks", "gains"), [((1, 2), [0.9, 1.6]), ((1,), [0.9]), ((), [])])
def test_clicks_beside_trust_are_told_of_without_the_rows_that_have_none(ranks, gains):
    """By hand: (click - trust) / p, and the row without a click is at rank 3."""
    p = replace(curve(np.array([1, 0.5, 0.25])), trust=np.array([0.1, 0.2, 0.3]))
    found = weigh(clicks_at(*ranks), p, beyond="clip")
    assert found.raised == pytest.approx(1.2)
    assert found.gain.tolist() == pytest.approx([gain + 1.2 for gain in gains] + [0.0])
    assert (found.clicks, found.largest) == (len(ranks), pytest.approx(max(gains, default=0.0)))


def test_labels_are_places_in_the_table():
    table = gain_table(np.array([3.0, 0.0, 1.0]), np.array([2.0, 3.0]))
    assert table.tolist() == [0, 1, 2, 3]
    assert labels(np.array([3.0, 0.0, 2.0]), table).tolist() == [3, 0, 2]
    assert gain_table(np.array([5.0])).tolist() == [0, 5]


def test_lists_know_their_sizes_and_best_order():
    rows = Matrix.from_arrays(
        np.zeros((5, 1)), rank=np.array([1, 2, 3, 1, 2]), click=np.array([0, 1, 1, 0, 1], bool),
        query=np.array([0, 0, 0, 1, 1]), search=np.array([0, 0, 0, 1, 1]),
    )  # fmt: skip
    lists, found = Weighting(curve(np.array([1, 0.5, 0.25])), None, "error", False).weigh(rows)
    assert lists.gain.tolist() == pytest.approx(found.gain.tolist())
    assert lists.sizes.tolist() == [3, 2]
    assert lists.ideal.tolist() == pytest.approx([4 + 2 / np.log2(3), 2])


def test_a_fingerprint_is_of_weights_alone():
    p = hand()
    assert len(fingerprint(p)) == 16
    assert fingerprint(replace(p, method="other", df=3.0)) == fingerprint(p)
    assert fingerprint(replace(p, log_p=p.log_p - [0, 0, 0, 0.001])) != fingerprint(p)
    moved = replace(p, ranks=np.array([1, 2, 3, 6], np.int32))
    assert fingerprint(moved) != fingerprint(p)
    both = [replace(p, segment_columns=("d",), by_segment={(name,): p}) for name in ("web", "app")]
    assert fingerprint(both[0]) != fingerprint(both[1])
    # Rankers and judgments that were saved have it in their files: it stays what it is.
    assert fingerprint(p) == "960ea06dacc8f9bb"


def test_other_curves_are_drawn_by_segment_and_keep_the_rows_in_place():
    table = frame()
    rows = matrix(table, segment=table.platform)
    steep = np.log(np.arange(1.0, 13))[:, None]
    by = {("web",): replace(curve(power(12, 0.3)), deviations=0.1 * steep),
          ("mobile",): curve(power(12, 1.1))}  # fmt: skip
    p = curve(power(12), segment_columns=("segment",), by_segment=by)
    found = other_curves(rows, p)
    drawn = found.draw(4000, np.random.default_rng(0))
    assert drawn.shape == (24, 4000)
    # Where the curve is sure, the weight is that of `weigh` in every draw; elsewhere around it.
    of_row = np.zeros((len(rows), 4000))
    of_row[found.rows] = drawn[found.place]
    gain, web = weigh(rows, p).gain, (table.platform == "web").to_numpy()
    assert np.allclose(of_row[~web], gain[~web, None], rtol=1e-6, atol=1e-12)
    deep = np.flatnonzero(web & rows.click & (rows.rank == 8))[0]
    spread = np.log(of_row[deep] / gain[deep])
    # 4,000 normal numbers: their deviation is known to 1.1%, their mean to 1.6% of it.
    assert spread.std() == pytest.approx(0.1 * np.log(8), rel=0.05)
    assert abs(spread.mean()) < 0.08 * spread.std()
    assert other_curves(rows, p, clip=1.5).draw(9, np.random.default_rng(0)).max() == 1.5
    assert other_curves(matrix(table), curve(power(12))) is None
    # Of every row, each segment has its own curve as well, unless told otherwise.
    every, pooled = curves_of_rows(rows, p), curves_of_rows(rows, p, pool=True)
    assert every.draw(1, np.random.default_rng(0)).shape[0] == 24 and pooled is None


# -- other gains -----------------------------------------------------------------------------------


def test_a_doubly_robust_gain_gives_back_what_its_clip_takes():
    """By hand: m + (c - p m) min(1 / p, clip); without a clip it is c / p, whatever m is."""
    rows = matrix(frame(searches=40)).only_clicked()
    p = power(12)[rows.rank - 1]
    m = np.random.default_rng(1).random(len(rows))
    how = Weighting(curve(power(12)), 2.0, "error", False, "dr", m)
    lists, worth = how.weigh(rows)
    wanted = m + (rows.click - p * m) * np.minimum(1 / p, 2.0)
    np.testing.assert_allclose(lists.gain, np.maximum(wanted, 0), rtol=0.006, atol=1e-9)
    assert worth.largest == 2.0
    free = replace(how, clip=None).weigh(rows)[0].gain
    np.testing.assert_allclose(free[rows.click], 1 / p[rows.click], rtol=0.006)
    assert free[~rows.click].max() < 1e-12
    assert len(np.unique(lists.gain)) < len(np.unique(wanted))


@pytest.mark.parametrize("expected", [False, True])
def test_some_rows_are_weighed_as_they_are_among_all(expected):
    rows = matrix(frame(searches=40))
    relevance = np.random.default_rng(1).random(len(rows)) if expected else None
    how = Weighting(curve(power(12)), 2.0, "error", False, "dr", relevance)
    keep = rows.query < 20
    some = how.take(keep).weigh(rows.take(keep))[0]
    assert 0 < len(some.gain) < len(rows)
    np.testing.assert_array_equal(some.gain, how.weigh(rows)[0].gain[keep])


def test_rows_whose_whole_numbers_differ_stay_apart():
    x = np.stack(np.meshgrid(np.arange(40), np.arange(40)), axis=-1).reshape(-1, 2)
    none = np.zeros(len(x), int)
    rows = Matrix.from_arrays(
        x, rank=np.arange(1, len(x) + 1), click=none == 1, query=none, search=none
    )
    assert len(Lists(rows, np.zeros(len(x)), np.ones(len(x))).together().gain) == len(x)


def test_counts_of_like_rows_add_up():
    rows = matrix(frame(searches=30, queries=3))
    twice = Matrix.from_arrays(
        np.tile(rows.x, (2, 1)), rank=np.tile(rows.rank, 2), click=np.tile(rows.click, 2),
        query=np.tile(rows.query, 2), search=np.concatenate([rows.search, rows.search + 99]),
    )  # fmt: skip
    how = Weighting(curve(power(12)), None, "error", False, "poisson")
    lists = how.weigh(twice)[0]
    one = lists.together()
    assert len(one.gain) == len(rows)
    np.testing.assert_array_equal(one.matrix.x, rows.x)
    np.testing.assert_array_equal(one.gain, 2 * rows.click)
    p = power(12)[rows.rank - 1]
    np.testing.assert_allclose(one.exposure, 2 * p * rows.n_clicks / p.sum())
    # Rows of different queries stay apart, though they look the same.
    other = replace(twice, query=np.repeat([0, 1], len(rows)), query_keys=twice.query_keys[:2])
    assert len(Lists(other, lists.gain, lists.exposure).together().gain) == len(twice)
    some = lists.take(twice.query == 1)
    assert some.matrix.n_queries == 1 and len(some.exposure) == (twice.query == 1).sum()
    plain = replace(how, kind="ipw").weigh(twice)[0]
    assert plain.together() is plain
