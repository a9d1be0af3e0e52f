"""What a log says of every pair is what a plain loop over its rows finds, on every engine."""

import math
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from support.curve_example import by_device, hand
from support.harness import FIRST_DAY, random_log, with_holes, write_parquet

from rankdrift.judging.reading import read_statistics
from rankdrift.judging.statistics import Recency

CLOSE = 1e-7  # relative: propensities are whole numbers of 2**-32, and shares of 2**-30
OPTIONS = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "day": "on"}


def oracle(rows, curve_of, weight=lambda row: 1.0):
    """(query, doc) -> [clicks, appearances, exposure, squares, days], rank by rank."""
    found = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0, set()])
    for row in rows:
        curve = curve_of(row)
        if any(row[c] is None for c in ("query", "doc", "rank", "on")):
            continue
        if row["rank"] not in curve.ranks.tolist() or not weight(row):
            continue
        p, w, pair = curve[row["rank"]], weight(row), found[row["query"], row["doc"]]
        pair[0] += w * bool(row["click"])
        pair[1] += w
        pair[2] += w * p
        pair[3] += w * p * p
        pair[4].add(row["on"])
    return {key: [*sums, len(days)] for key, (*sums, days) in found.items()}


def contents(found):
    columns = (found.clicks, found.appearances, found.exposure, found.squares, found.days)
    return {
        (found.queries[q, 0], found.docs[d]): [float(column[i]) for column in columns]
        for i, (q, d) in enumerate(zip(found.query, found.doc, strict=True))
    }


def assert_same(found, expected):
    there = contents(found)
    assert there.keys() == expected.keys() and there
    for key, numbers in expected.items():
        assert there[key] == pytest.approx(numbers, rel=CLOSE), key


def test_every_pair_is_summed_over_all_its_ranks(duckdb_engine, tmp_path):
    rows = with_holes(random_log(5), 5)
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    curve = hand()
    found = read_statistics(log, curve, min_exposure=0.0)
    assert_same(found, oracle(rows, lambda row: curve))
    found.funnel.check()
    assert found.funnel.rows == len(rows)
    assert found.funnel.dropped["no_propensity"].rows > 0  # hand() has no rank 4
    assert "at ranks 4, 6 have no propensity" in found.remarks[0]
    # All the error of this curve is along its two directions, and lengths survive their turning.
    pairs = {(q, d): i for i, (q, d) in enumerate(contents(found))}
    for key, i in pairs.items():
        ranks = [r["rank"] for r in rows if (r["query"], r["doc"]) == key and r["on"]]
        places = [curve.ranks.tolist().index(rank) for rank in ranks if rank in (1, 2, 3, 5)]
        share = curve.values[places] / curve.values[places].sum()
        error = np.linalg.norm(share @ curve.deviations[places])
        assert np.linalg.norm(found.errors[i]) == pytest.approx(error, abs=CLOSE)


def test_segments_change_the_exposure_and_not_the_pair(duckdb_engine, tmp_path):
    rows = [
        {**row, "device": {"web": "web", "app": None}[row["device"]], "rank": min(row["rank"], 3)}
        for row in random_log(6)
    ]
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    curve = by_device()
    found = read_statistics(log, curve, min_exposure=0.0)
    assert_same(found, oracle(rows, lambda row: curve.segment(row["device"])))
    assert (found.other_error > 0).any() and found.errors.shape[1] == 0
    pooled = read_statistics(log, curve, min_exposure=0.0, pool=True)
    assert_same(pooled, oracle(rows, lambda row: curve))


def test_all_of_it_at_once(engine, tmp_path):
    """Segments, weights by day, and bins of pairs that are not listed: on every engine."""
    rows = [
        {**row, "device": {"web": "web", "app": None}[row["device"]], "rank": min(row["rank"], 5)}
        for row in with_holes(random_log(12), 12, columns=("query", "doc", "click", "on"))
    ]
    log = engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    curve, last = by_device(), max(row["on"] for row in rows if row["on"])
    every = oracle(
        rows,
        lambda row: curve.segment(row["device"]),
        lambda row: 0.5 ** ((last - row["on"]).days / 1.5),
    )
    found = read_statistics(log, curve, min_exposure=2.0, recency=Recency(half_life=1.5))
    listed = {key: n for key, n in every.items() if n[0] > 0 or n[2] >= 2.0}
    assert_same(found, listed)
    assert found.rest["pairs"].sum() == len(every) - len(listed) > 0
    found.funnel.check()
    most = {query: max(n[1] for (q, _), n in every.items() if q == query) for query, _ in every}
    share = {key: n[1] / most[key[0]] for key, n in every.items()}
    assert found.share == pytest.approx([share[key] for key in contents(found)], rel=CLOSE)
    left = sum(part for key, part in share.items() if key not in listed)
    assert found.rest["share"].sum() == pytest.approx(left, rel=CLOSE)


def test_old_days_count_less_or_not_at_all(duckdb_engine, tmp_path):
    rows = random_log(7)
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    last = max(row["on"] for row in rows)
    assert (last - FIRST_DAY).days == 2

    def age(row):
        return (last - row["on"]).days

    halved = read_statistics(log, hand(), min_exposure=0.0, recency=Recency(half_life=1.5))
    assert_same(halved, oracle(rows, lambda row: hand(), lambda row: 0.5 ** (age(row) / 1.5)))
    recent = read_statistics(log, hand(), min_exposure=0.0, recency=Recency(last=2))
    assert_same(recent, oracle(rows, lambda row: hand(), lambda row: float(age(row) < 2)))
    dropped = recent.funnel.dropped["other_day"].rows
    assert dropped == sum(age(row) >= 2 for row in rows) > 0
    recent.funnel.check()


def test_pairs_that_are_not_listed_are_summed_by_bins(duckdb_engine, tmp_path):
    rows = random_log(8)
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    every = oracle(rows, lambda row: hand())
    listed = {key: n for key, n in every.items() if n[0] > 0 or n[2] >= 2.0}
    found = read_statistics(log, hand(), min_exposure=2.0)
    assert_same(found, listed)
    rest = [n for key, n in every.items() if key not in listed]
    assert found.rest["pairs"].sum() == len(rest) > 0
    for i, name in ((1, "appearances"), (2, "exposure"), (3, "squares")):
        assert found.rest[name].sum() == pytest.approx(sum(n[i] for n in rest), rel=CLOSE)
    assert found.funnel.used.pairs == len(every)


def test_features_are_averaged_and_layouts_do_not_matter(duckdb_engine, tmp_path):
    rows = random_log(9)
    path = write_parquet(tmp_path / "log.parquet", rows)
    log = duckdb_engine.read(path, **OPTIONS)
    found = read_statistics(log, hand(), min_exposure=0.0, features={"price": '"price"'})
    prices = defaultdict(list)
    for row in rows:
        if row["rank"] in hand().ranks.tolist():
            prices[row["query"], row["doc"]].append(row["price"])
    means = {key: math.fsum(values) / len(values) for key, values in prices.items()}
    assert [means[key] for key in contents(found)] == pytest.approx(found.features[:, 0].tolist())
    assert found.feature_names == ("price",)


def test_a_row_that_is_a_whole_search(duckdb_engine, tmp_path):
    rows = [
        {"query": "lamp", "on": FIRST_DAY, "shown": ["a", "b", "c"], "clicked": ["b"]},
        {"query": "lamp", "on": FIRST_DAY, "shown": ["b", "a"], "clicked": []},
    ]
    texts = pa.list_(pa.string())
    path = write_parquet(tmp_path / "log.parquet", rows, shown=texts, clicked=texts)
    log = duckdb_engine.read(path, query="query", shown="shown", clicked="clicked", day="on")
    found = read_statistics(log, hand(), min_exposure=0.0)
    assert contents(found) == {
        ("lamp", "a"): [0, 2, 1.5, 1.25, 1],
        ("lamp", "b"): [1, 2, 1.5, 1.25, 1],
        ("lamp", "c"): [0, 1, 0.25, 0.0625, 1],
    }


def test_many_weeks_are_counted_day_by_day(duckdb_engine, tmp_path):
    rows = [
        {**row, "on": FIRST_DAY + timedelta(days=40 * (i % 5))}
        for i, row in enumerate(random_log(10))
    ]
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    found = read_statistics(log, hand(), min_exposure=0.0)
    assert_same(found, oracle(rows, lambda row: hand()))
    assert found.days.max() == 5


def test_errors_of_a_free_curve_are_never_understated(duckdb_engine, tmp_path):
    """A curve whose ranks err each by itself has more directions than are kept."""
    ranks = np.arange(1, 7, dtype=np.int32)
    own = np.diag([0.0, 0.1, 0.2, 0.3, 0.2, 0.1])
    curve = replace(
        hand(), ranks=ranks, log_p=-np.log(ranks), deviations=own, gaps={},
        pairs=ranks * 10, clicks=ranks * 10, supported=ranks > 0,
    )  # fmt: skip
    rows = random_log(11)
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows), **OPTIONS)
    found = read_statistics(log, curve, min_exposure=0.0)
    assert found.errors.shape[1] == 3 and (found.other_error > 0).any()
    kept = (found.errors**2).sum(axis=1) + found.other_error
    for i, key in enumerate(contents(found)):
        places = [r["rank"] - 1 for r in rows if (r["query"], r["doc"]) == key]
        share = curve.values[places] / curve.values[places].sum()
        assert kept[i] >= np.linalg.norm(share @ own[places]) ** 2 - CLOSE
