"""judge: a log and propensities in, relevances that are those of the world out."""

import numpy as np
import pytest
from support.curve_example import by_device, hand
from support.judged_logs import true_curve, truth_of, world

import rankdrift
from rankdrift.core.errors import BadLog, BadOption, MissingColumns, NotIdentified, WrongName
from rankdrift.judging.judging import judge

# Shares covered of 95%, of some 2,300 pairs: chance alone moves them by 0.005.
COVERED = (0.92, 0.98)
ERROR = 0.4  # standard error of log p at the deepest rank, in curves that are off


@pytest.fixture(scope="module")
def made():
    table, names = world()
    return rankdrift.read_log(table), names


@pytest.fixture(scope="module")
def judged(made):
    return judge(made[0], true_curve(), min_exposure=0)


def rmse(judgments, names):
    return float(np.sqrt(np.mean((judgments.relevance - truth_of(judgments, names)) ** 2)))


def covered(judgments, names):
    z = truth_of(judgments, names)
    return float(((judgments.low <= z) & (z <= judgments.high)).mean())


def test_relevances_are_those_of_the_world(judged, made):
    _, names = made
    z = truth_of(judged, names)
    assert COVERED[0] < covered(judged, names) < COVERED[1]
    ctr = judged.clicks / judged.appearances
    bare = judged.clicks / judged.exposure
    assert rmse(judged, names) < 0.9 * np.sqrt(np.mean((bare - z) ** 2))
    assert rmse(judged, names) < 0.9 * np.sqrt(np.mean((ctr - z) ** 2))
    assert judged.prior["mean"] == pytest.approx(
        (z * judged.exposure).sum() / judged.exposure.sum(), rel=0.1
    )
    assert judged.days.max() == 4 and judged.funnel.used.clicks == judged.clicks.sum()
    assert (judged.low < judged.relevance).all() and (judged.relevance < judged.high).all()


def test_an_error_of_the_curve_is_in_the_intervals():
    """Curves off by as much as they say: their intervals hold on average, those of the clicks
    alone do not."""
    table, names = world(queries=12, docs=14, shows=1_000, seed=6)
    log = rankdrift.read_log(table)
    rng = np.random.default_rng(3)
    away = np.log(np.arange(1, 11)) / np.log(10)
    with_it, without = [], []
    for off in ERROR * rng.normal(size=6):
        curve = true_curve(ERROR)
        wrong = hand(**{**vars(curve), "log_p": curve.log_p + off * away})
        with_it.append(covered(judge(log, wrong, min_exposure=0), names))
        sure = hand(**{**vars(wrong), "deviations": np.zeros((10, 1))})
        without.append(covered(judge(log, sure, min_exposure=0), names))
    assert np.mean(with_it) > 0.88  # of six curves, and 168 pairs
    assert np.mean(with_it) > np.mean(without) + 0.1


def test_what_pairs_are_like_by_query_and_by_features(made, judged):
    log, names = made
    told = judge(log, true_curve(), features="f_*", min_exposure=0)
    assert rmse(told, names) < 0.95 * rmse(judged, names)
    assert covered(told, names) > COVERED[0]
    assert told.feature_names == ("f_told",) and told.features.shape == (len(told), 1)
    assert told.prior["spread"] < judged.prior["spread"]
    by_query = judge(log, true_curve(), by_query=True, min_exposure=0)
    # Queries do not differ here: nothing is gained, and next to nothing lost.
    assert rmse(by_query, names) < 1.05 * rmse(judged, names)


def test_queries_that_differ_tell_their_docs():
    easy, good = world(queries=60, seed=4, middle=-1.0, spread=0.4)
    hard, bad = world(queries=60, seed=5, middle=-4.0, spread=0.4)
    import pyarrow as pa
    import pyarrow.compute as pc

    hard = hard.set_column(0, "query", pc.binary_join_element_wise("x", hard["query"], ""))
    names = {**good, **{(f"x{q}", d): z for (q, d), z in bad.items()}}
    log = rankdrift.read_log(pa.concat_tables([easy, hard]))
    plain = judge(log, true_curve(), min_exposure=0)
    found = judge(log, true_curve(), by_query=True, min_exposure=0)
    assert rmse(found, names) < 0.8 * rmse(plain, names)
    assert covered(found, names) > COVERED[0]


def test_pairs_hardly_seen_are_counted_and_not_listed(made, judged):
    log, _ = made
    found = judge(log, true_curve(), min_exposure=5.0)
    assert 0 < len(found) < len(judged)
    assert ((found.clicks > 0) | (found.exposure >= 5)).all()
    assert len(found) + found.rest["pairs"] == len(judged)
    assert found.exposure.sum() + found.rest["exposure"] == pytest.approx(judged.exposure.sum())
    # The prior is that of all pairs, up to the width of a bin.
    assert found.prior["spread"] == pytest.approx(judged.prior["spread"], abs=0.02)
    assert found.funnel.used.pairs == len(judged)
    features = judge(log, true_curve(), by_query=True, min_exposure=5.0)
    assert len(features) == len(found) and features.rest["pairs"] == found.rest["pairs"]


def test_a_window_forgets_what_was(made):
    """A doc that is not wanted any more."""
    import pyarrow as pa

    days = np.repeat(np.datetime64("2024-01-01", "D") + np.arange(20), 40)
    rng = np.random.default_rng(0)
    z = np.where(days < np.datetime64("2024-01-16"), 0.6, 0.05)
    rows = {"query": ["q"] * 1600, "doc": ["old"] * 800 + ["same"] * 800, "rank": [1] * 1600,
            "click": np.concatenate([rng.random(800) < z, rng.random(800) < 0.3]).astype(int),
            "day": np.concatenate([days, days])}  # fmt: skip
    log = rankdrift.read_log(pa.table(rows))
    ever, last = judge(log, true_curve()), judge(log, true_curve(), last=5)
    faded = judge(log, true_curve(), half_life=1.0)
    assert ever.of("q")["doc"] == ["old", "same"]
    for found in (last, faded):
        assert found.of("q")["doc"] == ["same", "old"]
        assert found.better("q", "same", "old") > 0.95
        assert found.of("q")["low"][1] < 0.05 < found.of("q")["high"][1]
    assert ever.better("q", "same", "old") < 0.05
    assert last.days.max() == 5 and last.funnel.dropped["other_day"].rows == 1200


def test_what_is_too_old_to_count_is_no_exposure():
    """A query that was last seen 300 days ago, where a week is half: 43 halves are nothing."""
    import pyarrow as pa

    table, _ = world(queries=4, shows=40)
    days = np.array(table["day"].to_pylist(), dtype="datetime64[D]")
    gone = np.array(table["query"].to_pylist()) == table["query"][0].as_py()
    older = np.where(gone, days - np.timedelta64(300, "D"), days)
    aged = table.set_column(table.column_names.index("day"), "day", pa.array(older))
    for min_exposure in (0.0, 1.0):
        options = {"half_life": 7.0, "min_exposure": min_exposure}
        found = judge(rankdrift.read_log(aged), true_curve(), **options)
        expected = judge(rankdrift.read_log(table.filter(~gone)), true_curve(), **options)
        assert found.table() == expected.table() and found.rest == expected.rest


def test_the_same_log_gives_the_same_file_in_whatever_order_its_rows_are(tmp_path):
    table, _ = world(queries=40, shows=100, seed=7)
    mixed = table.take(np.random.default_rng(0).permutation(table.num_rows))
    files = []
    for i, rows in enumerate((table, mixed, table)):
        log = rankdrift.read_log(rows, threads=2)
        judge(log, true_curve(0.1), half_life=2.0, by_query=True).save(tmp_path / f"{i}.parquet")
        files.append((tmp_path / f"{i}.parquet").read_bytes())
    assert files[0] == files[1] == files[2]


def test_what_it_will_not_do(made):
    log, _ = made
    table, _ = world(queries=3, shows=20)
    with pytest.raises(BadOption, match="min_exposure must be 0 or more"):
        judge(log, true_curve(), min_exposure=-1)
    with pytest.raises(BadOption, match="last is a number of days"):
        judge(log, true_curve(), last=0)
    with pytest.raises(BadOption, match="half_life is a number of days"):
        judge(log, true_curve(), half_life=0)
    with pytest.raises(BadOption, match=r"half_life is a number of days, 0\.01 or more"):
        judge(log, true_curve(), half_life=1e-300)
    with pytest.raises(BadOption, match="name its column with --day"):
        judge(rankdrift.read_log(table, day=""), true_curve(), last=3)
    with pytest.raises(BadOption, match="needs propensities"):
        judge(log, None)
    with pytest.raises(WrongName, match="Did you mean 'features'"):
        judge(log, true_curve(), feature="f_told")
    with pytest.raises(MissingColumns, match="'device'"):
        judge(log, by_device())
    devices = table.append_column("device", [["tv"] * table.num_rows])
    with pytest.raises(NotIdentified, match=r"1 segment of the log, such as 'tv'.*--pool"):
        judge(rankdrift.read_log(devices), by_device())
    with pytest.raises(BadOption, match="propensities have one curve for all"):
        judge(rankdrift.read_log(devices, segment="device"), true_curve())
    with pytest.raises(BadOption, match="is no number"):
        judge(rankdrift.read_log(devices), true_curve(), features="device")
    with pytest.raises(BadOption, match="too few to learn from features"):
        judge(rankdrift.read_log(table), true_curve(), features="f_told")
    unclicked = table.set_column(3, "click", [[0] * table.num_rows])
    with pytest.raises(BadLog, match="was clicked"):
        judge(rankdrift.read_log(unclicked), true_curve())
    deep = table.set_column(2, "rank", [[99] * table.num_rows])
    with pytest.raises(BadLog, match="no_propensity"):
        judge(rankdrift.read_log(deep), true_curve())
