from dataclasses import replace

import numpy as np
import pytest
from support.worlds import listed, power, simulate

from rankdrift.core.errors import BadOption
from rankdrift.estimation import estimate
from rankdrift.simulate.true_curves import dipping, steady

SAME = {name: power(0.6) for name in ("app", "tv", "web")}
KNOTS = "loglog(1, 5, 30)"
WORLDS = 60


@pytest.mark.slow
def test_p_is_small_no_oftener_than_it_should_be_when_segments_do_not_differ():
    p, spread = [], []
    for seed in range(WORLDS):
        counts = simulate(900, 30, seed, segments=SAME, queries=300).counts
        found = estimate(counts, by="device", curve=KNOTS).difference
        assert found.df >= 1 and found.df_error > 5
        p.append(found.p_value)
        spread.append(found.spread)
    # Each segment is looked at, in three shapes, and p is for all that.
    assert (np.array(p) < 0.05).mean() <= 8 / WORLDS
    assert (np.array(p) < 0.01).mean() <= 5 / WORLDS  # above 5 of 60: once in 10,000 times
    assert np.median(spread) < 0.2


def test_a_real_difference_is_found_and_measured():
    slopes = {"app": 1.2, "tv": 0.6, "web": 0.3}
    world = simulate(6000, 30, 1, segments={name: power(s) for name, s in slopes.items()})
    found = estimate(world.counts, by="device", curve=KNOTS)
    assert found.difference.p_value < 1e-4
    # log p at ranks 5 and 30 differs between segments by its slope times log rank.
    sd = np.std(list(slopes.values()), ddof=1)
    assert sd * np.log(5) * 0.5 < found.difference.spread < sd * np.log(30) * 1.5
    for name, curve in found.by_segment.items():
        off = (curve.log_p - world.by_segment[name[0]])[1:] / curve.std_error[1:]
        assert np.abs(off).max() < 4  # two free numbers, seen at 29 ranks
    assert found.segment_columns == ("device",)
    assert found.difference.left_out == {}


def test_segments_without_an_estimate_are_named():
    rows = [(((1, 1), (2, 0)), b, 6 + b % 3, s) for b in range(8) for s in (0, 1)]
    rows += [(((1, 0), (2, 1)), b, 4 + b % 2, s) for b in range(8) for s in (0, 1)]
    rows += [(((1, 1), (2, 0)), 0, 3, 2)]
    counts = listed(rows, names=("app", "tv", "web"))
    found = estimate(counts, by="device", curve="direct")
    assert set(found.by_segment) == {("app",), ("tv",)}
    assert list(found.difference.left_out) == [("web",)]
    assert "Rank 1, the reference" in found.difference.left_out[("web",)]
    with pytest.raises(BadOption, match=r"No segment 'web'. There are: app, tv"):
        found.segment("web")
    assert found.segment("tv") is found.shrunk[("tv",)]
    assert found.segment("tv", shrunk=False) is found.by_segment[("tv",)]


def test_one_segment_has_nothing_to_differ_from():
    counts = simulate(400, 8, 1, segments={"web": power(0.5)}).counts
    found = estimate(counts, by="device")
    assert (found.difference.df, found.difference.p_value) == (0, 1)
    np.testing.assert_allclose(found.segment("web").log_p, found.log_p)


def test_every_segment_has_the_curve_that_was_given():
    """With the knots of the pool, also where a segment is less deep."""
    segments = {"app": power(1.0), "web": power(0.5)}
    counts = simulate(5000, 40, 1, segments=segments, shares=[0.2, 0.8]).counts
    found = estimate(counts, by="device", curve="loglog")
    assert {curve.method for curve in found.by_segment.values()} == {found.method}


@pytest.mark.parametrize("seed", range(3))
def test_every_segment_chooses_its_curve_by_itself(seed):
    def folded(ranks):
        return power(0.3)(ranks) * np.where(ranks > 25, 0.3, 1.0)

    segments = {"app": dipping, "tv": folded, "web": steady}
    counts = simulate(24_000, 100, seed, segments=segments, level=0.3).counts
    found = estimate(counts, by="device")
    app, tv, web = (found.by_segment[(name,)].method for name in ("app", "tv", "web"))
    assert "batch(40" in app
    assert "25, 26" in tv and "batch" not in tv
    assert web == "loglog(1, 2, 4, 8, 20, 50, 100), every"
    for name in segments:
        alone = estimate(counts.restrict(segments=[(name,)]))
        np.testing.assert_allclose(found.by_segment[(name,)].log_p, alone.log_p)
        assert found.shrunk[(name,)].method == f"{alone.method}, leaning on the pool"
        assert found.shrunk[(name,)].provenance["curve"] == alone.provenance["curve"]
    assert found.difference.p_value < 0.01


def test_columns_that_the_counts_are_not_split_by():
    counts = simulate(300, 8, 1, segments=SAME).counts
    with pytest.raises(BadOption, match=r"not split by 'devise'. Did you mean 'device'"):
        estimate(counts, by="devise")
    two = replace(
        counts,
        segment_columns=("device", "country"),
        segments=tuple((name, "at") for (name,) in counts.segments),
    )
    assert set(estimate(two, by="device").by_segment) == {("app",), ("tv",), ("web",)}
    assert set(estimate(two, by=["country"]).by_segment) == {("at",)}
    assert set(estimate(two, by=["country", "device"]).by_segment) == {
        ("at", "app"), ("at", "tv"), ("at", "web"),
    }  # fmt: skip


def test_another_reference_for_all_segments():
    counts = simulate(1500, 8, 3, segments=SAME, level=0.3).counts
    found = estimate(counts, by="device").relative_to(4)
    for curves in (found.by_segment, found.shrunk):
        for curve in curves.values():
            assert curve.reference == 4
            assert curve.log_p[3] == curve.std_error[3] == 0
