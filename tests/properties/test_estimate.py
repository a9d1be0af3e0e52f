"""What must not change an estimate, and what may only change it in a known way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds import listed, power, simulate

from rankdrift.core.errors import (
    BadOption,
    NotConverged,
    NotIdentified,
    NoUsablePairs,
    RankdriftError,
    Remark,
)
from rankdrift.counts.counts import merge
from rankdrift.counts.funnel import Funnel
from rankdrift.estimation import estimate
from rankdrift.estimation.fitting import Options, fit

pytestmark = pytest.mark.slow
EXACT = 1e-8  # the same numbers summed in another order, through one Newton iteration
RANKS = (1, 2, 3, 5, 8)
BUCKETS = 16

# One pair: (appearances, bucket, how many), of which at least one is clicked and two differ.
appearances = st.lists(
    st.tuples(st.sampled_from(RANKS), st.booleans()), min_size=2, max_size=5
).filter(lambda a: any(c for _, c in a) and len({r for r, _ in a}) > 1)
pairs = st.tuples(appearances, st.integers(0, BUCKETS - 1), st.integers(1, 9))
logs = st.lists(pairs, min_size=2, max_size=30)
quick = settings(max_examples=25, deadline=None)
curves = st.sampled_from(["direct", "loglog(1, 3, 8)"])


def counted(log, **more):
    return listed(log, buckets=BUCKETS, max_rank=max(RANKS), **more)


def estimated(counts, **options):
    """The estimate, or the kind of refusal."""
    try:
        return estimate(counts, **options)
    except RankdriftError as error:
        return type(error)


def assert_same(a, b, errors=True):
    if isinstance(a, type) or isinstance(b, type):
        assert a is b
        return
    assert a.ranks.tolist() == b.ranks.tolist()
    np.testing.assert_allclose(a.log_p, b.log_p, atol=EXACT)
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=EXACT)
    assert dict(a.gaps) == dict(b.gaps)
    if errors:
        np.testing.assert_allclose(a.std_error, b.std_error, rtol=1e-4, atol=1e-6)
        assert a.supported.tolist() == b.supported.tolist()


def is_sane(found):
    assert np.isfinite(found.log_p).all()
    assert np.isfinite(found.deviations).all()
    assert np.abs(found.log_p).max() < 30  # no 0 in disguise
    assert found.log_p[found.ranks == found.reference].tolist() == [0]


# -- what must not matter ----------------------------------------------------------------------


@quick
@given(logs, curves, st.randoms())
def test_the_order_of_rows_does_not_matter(log, curve, random):
    shuffled = random.sample(log, len(log))
    a, b = (estimated(counted(rows), curve=curve, reference=2) for rows in (log, shuffled))
    assert_same(a, b)
    if not isinstance(a, type):
        is_sane(a)


@quick
@given(logs, curves, st.permutations(range(BUCKETS)))
def test_which_bucket_a_query_falls_into_does_not_matter(log, curve, names):
    renamed = [(shown, names[bucket], n) for shown, bucket, n in log]
    assert_same(
        estimated(counted(log), curve=curve, reference=2),
        estimated(counted(renamed), curve=curve, reference=2),
    )


@quick
@given(logs, st.integers(0, 28), curves)
def test_counts_merge_in_any_order(log, cut, curve):
    cut = 1 + cut % (len(log) - 1)
    one, two, whole = (counted(rows) for rows in (log[:cut], log[cut:], log))
    wanted = estimated(whole, curve=curve, reference=2)
    assert_same(estimated(one + two, curve=curve, reference=2), wanted)
    assert_same(estimated(merge([two, one]), curve=curve, reference=2), wanted)


@quick
@given(logs)
def test_the_order_of_appearances_does_not_matter(log):
    turned = [(shown[::-1], bucket, n) for shown, bucket, n in log]
    assert_same(
        estimated(counted(log), curve="direct", reference=2),
        estimated(counted(turned), curve="direct", reference=2),
    )


@pytest.mark.parametrize("curve", ["direct", "loglog"])
@pytest.mark.parametrize("clicks", ["every", "single"])
def test_k_times_the_counts_is_the_same_curve_and_surer_by_root_k(curve, clicks):
    counts = simulate(400, 12, 8, shown=(2, 4), level=0.3).counts
    k = 9
    more = replace(
        counts,
        pairs=replace(counts.pairs, pairs=counts.pairs.pairs * k),
        funnel=sum([counts.funnel] * (k - 1), start=counts.funnel),
    )
    once, often = (estimate(c, curve=curve, clicks=clicks, errors="model") for c in (counts, more))
    np.testing.assert_allclose(often.log_p, once.log_p, atol=1e-6)
    np.testing.assert_allclose(often.std_error, once.std_error / np.sqrt(k), rtol=1e-4)
    assert often.log_likelihood == pytest.approx(k * once.log_likelihood)
    # Buckets are the units of the default errors, and there are as many as before.
    once, often = (estimate(c, curve=curve, clicks=clicks) for c in (counts, more))
    at = once.supported
    np.testing.assert_allclose(often.std_error[at], once.std_error[at], rtol=1e-4, atol=1e-9)


def test_a_trillion_clicks_are_no_harder():
    counts = listed([
        (((1, 1), (2, 0)), 0, 10**12), (((1, 0), (2, 1)), 1, 6 * 10**11),
        (((2, 1), (3, 0)), 0, 5), (((2, 0), (3, 1)), 1, 4),
    ])  # fmt: skip
    for curve in ("direct", "loglog"):  # a few comparisons are few, not none
        found = estimate(counts, curve=curve, errors="model")
        np.testing.assert_allclose(found.values, [1, 0.6, 0.48], rtol=1e-6)
        assert found.std_error[2] == pytest.approx(np.sqrt(1 / 5 + 1 / 4), rel=1e-4)


@pytest.mark.parametrize("errors", ["buckets", "model", "bootstrap"])
@pytest.mark.parametrize("curve", ["direct", "loglog"])
@pytest.mark.parametrize("size", [80, 800])  # with thin ranks, and without
def test_another_reference_only_shifts(errors, curve, size):
    counts = simulate(size, 6, 9, shown=(2, 3), level=0.3).counts
    options = {"errors": errors, "curve": curve, "samples": 50}
    first = estimate(counts, **options)
    for reference in (3, 6):
        other = estimate(counts, reference=reference, **options)
        turned = first.relative_to(reference)
        place = reference - 1
        np.testing.assert_allclose(other.log_p, first.log_p - first.log_p[place], atol=EXACT)
        np.testing.assert_allclose(other.covariance, turned.covariance, rtol=1e-6, atol=1e-9)
        assert other.log_likelihood == pytest.approx(first.log_likelihood)
        for i, j in ((1, 4), (6, 2), (3, 3)):
            one, two = first.ratio(i, j), other.ratio(i, j)
            assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))


def test_segments_summed_are_the_pool():
    one = simulate(500, 12, 3, segments={"web": power(0.5), "app": power(1.0)}).counts
    pooled = replace(one, segment_columns=(), segments=((),) * 2)
    assert_same(estimate(one), estimate(pooled))
    assert_same(estimate(one, by="device"), estimate(pooled))
    own = estimate(one, by="device").by_segment
    assert set(own) == {("web",), ("app",)}
    for segment, curve in own.items():
        assert_same(curve, estimate(one.restrict(segments=[segment])))


def test_comparisons_of_two_appearances_are_the_pairs_themselves():
    """max_shown=2 holds longer pairs as comparisons; the estimate stays close to that of lists."""
    counts = simulate(4000, 10, 2, shown=(2, 4), level=0.2).counts
    listed_, compared = (
        estimate(c, curve="loglog") for c in (counts, counts.restrict(max_shown=2))
    )
    off = (listed_.log_p - compared.log_p)[1:]
    assert (np.abs(off) < listed_.std_error[1:]).all()  # the same clicks, weighted otherwise


# -- what the data cannot tell -----------------------------------------------------------------

DOWN, UP = ((1, 1), (2, 0)), ((1, 0), (2, 1))
TWO = [(DOWN, 0, 5), (UP, 1, 5), (DOWN, 2, 3), (UP, 3, 2)]


@quick
@given(logs)
def test_direct_estimates_a_block_and_names_the_rest(log):
    counts = counted(log)
    found = estimated(counts, curve="direct", reference=2)
    if isinstance(found, type):
        assert found in (NotIdentified, NoUsablePairs)
        return
    is_sane(found)
    shown = {rank for appearances, *_ in log for rank, _ in appearances}
    assert set(found.ranks.tolist()) | set(found.gaps) == shown
    assert not set(found.ranks.tolist()) & set(found.gaps)
    # Inside the block each rank won and lost a click, so the maximum is where it should be.
    inside = fit(counts, Options(curve="direct", reference=2))
    gradient = inside.likelihood.at(inside.fit.theta).gradient
    assert np.abs(gradient).max() < 1e-4


@quick
@given(logs, st.sampled_from(["every", "single"]))
def test_a_curve_is_finite_or_refused(log, clicks):
    found = estimated(counted(log), curve="loglog(1, 3, 8)", clicks=clicks, reference=2)
    if isinstance(found, type):
        assert found in (NotIdentified, NoUsablePairs, NotConverged)
    else:
        is_sane(found)


def test_gaps_say_why():
    counts = listed(
        [
            *TWO,
            (((2, 1), (3, 0)), 0, 4),  # 3 never wins
            (((5, 1), (6, 0)), 0, 2), (((5, 0), (6, 1)), 1, 2),  # apart from the others
            (((7, 0),), 0, 9),  # shown, never clicked
        ]
    )  # fmt: skip
    found = estimate(counts, curve="direct")
    assert found.ranks.tolist() == [1, 2]
    assert found.gaps == {
        3: "never won a click over the other ranks, or never lost one",
        5: "compares only with ranks 5–6",
        6: "compares only with ranks 5–6",
        7: "no clicked pair moved there or away",
    }
    assert found.values[1] == pytest.approx(7 / 8)
    with pytest.raises(
        NotIdentified, match=r"no propensity for ranks 3, 7; the curve covers ranks 1–2"
    ):
        found.at([[1, 3], [2, 7]])
    apart = estimate(counts, curve="direct", reference=5)
    assert apart.ranks.tolist() == [5, 6]
    assert apart.gaps[1] == "compares only with ranks 1–2"


@pytest.mark.parametrize("reference", [1, 2])
@pytest.mark.parametrize(
    ("first", "said"),
    [
        (0, r"rank 1 runs off to 0, as rank 1 never won a click\..*\(--where\).*--reference below"),
        (1, r"rank 1 runs off to infinity, as rank 1 never lost a click to another\..*more days"),
    ],
)
def test_it_is_the_rank_with_clicks_on_one_side_that_is_named(first, said, reference):
    """Not all others, which run off only as seen from there."""
    rows = [(((a, won), (a + 1, 1 - won)), b, 9 + 3 * won)
            for a in range(2, 10) for b in range(16) for won in (0, 1)]  # fmt: skip
    rows += [(((1, first), (2, 1 - first)), b, 5) for b in range(16)]
    with pytest.raises(NotConverged, match=f"the propensity at {said}"):
        estimate(listed(rows, buckets=16), curve="loglog", reference=reference)


@pytest.mark.parametrize("errors", ["buckets", "model", "bootstrap"])
def test_clicks_on_one_side_only_are_no_estimate(errors):
    """Deep ranks never won: the likelihood levels off as their propensity falls to 0."""
    rows = [(DOWN, b, 30 + b) for b in range(16)] + [(UP, b, 15) for b in range(16)]
    rows += [(((2, 1), (5, 0)), b, 20) for b in range(16)]
    rows += [(((2, 0), (5, 1)), b, 7 + b % 3) for b in range(16)]
    rows += [(((2, 1), (9, 0)), b, 20) for b in range(16)]
    counts = listed(rows, buckets=16)
    with pytest.raises(NotConverged, match=r"at ranks 6–9 run off to 0.*1,\d+ comparisons over 9"):
        estimate(counts, curve="loglog(1, 2, 5, 9)", errors=errors)
    found = estimate(counts, curve="direct", errors=errors)
    assert found.ranks.tolist() == [1, 2, 5]
    assert set(found.gaps) == {9}


def test_no_pairs_at_all():
    empty = replace(listed([]), funnel=Funnel())
    with pytest.raises(NoUsablePairs, match=r"no usable pair \(0 rows were read\)"):
        estimate(empty)
    both = listed([(((1, 1), (2, 1)), 0, 2)])
    with pytest.raises(NoUsablePairs, match=r"\(4 rows were read\)"):
        estimate(both, clicks="single")


def test_one_bucket_tells_no_errors():
    counts = listed([(DOWN, 3, 5), (UP, 3, 5)])
    for errors in ("buckets", "bootstrap"):
        with pytest.raises(NotIdentified, match="one bucket of queries"):
            estimate(counts, errors=errors)
    assert estimate(counts, errors="model").values.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"errors": "sandwich"}, "errors is 'sandwich'. Use buckets, model, bootstrap"),
        ({"clicks": "all"}, "clicks is 'all'"),
        ({"errors": "bootstrap", "samples": 5}, "samples must be 20 or more, not 5"),
        ({"reference": 0}, "reference is a rank, from 1, not 0"),
        ({"reference": 1.5}, "reference is a rank, from 1, not 1.5"),
        ({"by": "device"}, "not split by 'device'"),
        ({"curve": "direct", "extrapolate_to": 9}, "Only a loglog curve can be drawn on"),
    ],
)
def test_options_that_make_no_sense(option, words):
    with pytest.raises(BadOption, match=words):
        estimate(listed(TWO), **option)


# -- beyond the data ---------------------------------------------------------------------------


def test_drawing_on_is_the_last_stretch_and_marked():
    counts = simulate(3000, 40, 4).counts
    found = estimate(counts, curve="loglog(1, 5, 20, 40)", extrapolate_to=80)
    inside = estimate(counts, curve="loglog(1, 5, 20, 40)")
    assert found.ranks.tolist() == list(range(1, 81))
    assert inside.supported.all()
    assert found.supported.tolist() == [True] * 40 + [False] * 40
    np.testing.assert_allclose(found.log_p[:40], inside.log_p, atol=EXACT)
    slope = (found.log_p[39] - found.log_p[19]) / np.log(40 / 20)
    assert found.log_p[79] == pytest.approx(found.log_p[39] + slope * np.log(80 / 40))
    assert (np.diff(found.std_error[39:]) > 0).all()  # the further the less sure
    assert found.clicks[40:].sum() == 0
    with pytest.raises(NotIdentified, match="no propensity for rank 41"):
        inside.at(41)


@pytest.mark.parametrize("to", [10, 40])
def test_nothing_to_draw_on_is_said(to):
    with pytest.warns(
        Remark, match=f"nothing to draw on to rank {to}: pairs moved down to rank 40"
    ):
        assert estimate(simulate(3000, 40, 4).counts, extrapolate_to=to).ranks[-1] == 40


# -- truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", ["direct", "loglog(1, 30)"])
def test_every_click_recovers_the_truth_where_single_clicks_cannot(curve):
    """Relevances near 0.6, where the paper's approximation is off (ranks 1 to 30)."""
    world = simulate(20_000, 30, 2, curve=power(0.5), level=0.6, query_effect=0.0)
    off = {}
    for clicks in ("every", "single"):
        found = estimate(world.counts, curve=curve, clicks=clicks)
        off[clicks] = (found.log_p - world.log_p)[1:] / found.std_error[1:]
    # Of at most 29 standard normals the largest is below 4 but for once in 500 times.
    assert np.abs(off["every"]).max() < 4
    assert np.abs(off["single"]).mean() > 4
