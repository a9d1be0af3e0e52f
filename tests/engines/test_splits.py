"""The splits of a log are those of the oracle, on every engine and in every layout."""

import datetime
import random
from collections import defaultdict

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from oracle.harvest_oracle import came, from_events, from_lists, tally
from oracle.splits_oracle import split_tally
from support.harness import (
    SPLIT_BY,
    Harness,
    check,
    check_source,
    random_log,
    splits_of,
    with_holes,
    write_parquet,
)

from rankdrift.counts.counts import SPLITS, Counts, merge
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.harvesting.counting import harvest
from rankdrift.harvesting.warehouse import import_counts, warehouse_sql

TYPES = {
    "at": pa.timestamp("s"), "points": pa.float64(), "arm": pa.string(), "who": pa.int64(),
    "paid": pa.bool_(),
}  # fmt: skip
EXTRAS = {"score": "points", "ranker": "arm", "user": "who", "outcome": "paid"}
ALL = {"day": "on", "time": "at", "search": "sid", "segment": "device", **EXTRAS}
DOCS = tuple(f"d{i}" for i in range(14))
ASKED_FOR = set(SPLITS) - {"trust"}  # that one is made on request: test_trust.py


def rich_log(seed, searches=110, queries=("a", "b", "c"), docs=DOCS):
    """Searches with all that splits are made of; scores repeat, and users come back."""
    rng = random.Random(seed)
    rows, told = [], {}
    for row in random_log(seed, searches, queries, docs):
        if row["sid"] not in told:
            seconds = rng.choice((0, 600, 3600, 25_200, 80_000)) + rng.choice((0, 0, 0, 30, 59))
            at = datetime.datetime.combine(row["on"], datetime.time())
            told[row["sid"]] = {
                "at": at + datetime.timedelta(seconds=seconds),
                "arm": rng.choice(("old", "new", "new", None, " ")),
                "who": rng.choice((1, 2, 3, 4, None)),
            }
        points = rng.choice((0.5, 0.25, 1.0, 7.125, 1e-9, -3.0, 1e300, None, float("nan")))
        more = {"points": points, "paid": rng.choice((True, False, None))}
        rows.append({**row, **told[row["sid"]], **more})
    return rows


def made(counts):
    """The names of the splits that there are."""
    return {SPLITS[i] for i in np.unique(counts.splits.split)}


@pytest.mark.parametrize("seed", range(4))
def test_all_columns(engine, tmp_path, seed):
    counts = check(engine, tmp_path, rich_log(seed), types=TYPES, **ALL)
    assert made(counts) == ASKED_FOR


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_counts_all_that_can_be_asked_for_as_duckdb_does(tmp_path):
    """In one go: all columns, pairs shown so often that scores are thinned, trust, and pairs at one
    rank by a column. That DuckDB is right is what the tests with oracles say."""
    often = rich_log(31, searches=150, queries=("often",), docs=DOCS[:4])
    rows = with_holes(rich_log(0), 0) + [{**row, "sid": f"o{row['sid']}"} for row in often]
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    session = pytest.importorskip("support.spark_session", reason="needs Spark").session()
    found, wanted = (
        harvest(
            engine.read(path, **ALL, same="price"),
            trust=True, prior="points", prior_cuts=(0.3, 1.0),
        )
        for engine in (Harness("spark", session), Harness("duckdb"))
    )  # fmt: skip
    assert made(wanted) == set(SPLITS) and len(wanted.singles) and len(wanted.rank_pairs)
    assert found.equals(wanted)


SOME = {
    "nothing": ({}, set()),
    "days": ({"day": "on"}, {"relevance", "queries"}),
    "searches": ({"search": "sid"}, {"neighbours"}),
    "times": ({"time": "at"}, {"score"}),
    "scores": ({"score": "points"}, {"score"}),
    "scores and times": ({"score": "points", "time": "at"}, {"score"}),
    "users": ({"user": "who", "same": "price"}, {"user"}),
    "outcomes": ({"outcome": "paid", "segment": ["device", "arm"]}, {"outcome"}),
    "rankers": ({"ranker": "arm", "day": "on"}, {"ranker", "relevance", "queries"}),
    "rankers without days": ({"ranker": "arm"}, set()),
    "all and what must be equal": ({**ALL, "same": "price"}, ASKED_FOR),
    "all with few ranks": ({**ALL, "segment": (), "max_rank": 7}, ASKED_FOR),
}


@pytest.mark.parametrize("case", SOME)
def test_some_columns(duckdb_engine, tmp_path, case):
    options, expected = SOME[case]
    rows = with_holes(rich_log(20, searches=130), 20)
    none = dict.fromkeys({"time", *SPLIT_BY} - options.keys(), "")
    counts = check(duckdb_engine, tmp_path, rows, types=TYPES, ours=none, **options)
    assert made(counts) == expected


@pytest.mark.parametrize("told_apart", [True, False])
def test_scores_of_much_shown_pairs_are_thinned(engine, tmp_path, told_apart):
    """One query, so that pairs have far more than 32 appearances; many are alike."""
    rows = rich_log(31, searches=150, queries=("a",), docs=DOCS[:4])
    options = {"score": "points"}
    if told_apart:
        options |= {"search": "sid", "time": "at", "day": "on"}
    counts = check(engine, tmp_path, rows, types=TYPES, **options)
    assert len(counts.splits.of("score"))
    assert counts.funnel.used.rows > 32 * counts.funnel.used.pairs


@pytest.mark.parametrize(
    ("type_", "values", "at_least"),
    [
        pytest.param(pa.int32(), (0, 1, 7, -1, None), None, id="int"),
        pytest.param(pa.float64(), (0.0, 12.5, float("nan"), None), None, id="price"),
        pytest.param(
            pa.string(), ("yes", "No", "3.5", "0", " ", "x", "2024-01-02"), None, id="text"
        ),
        pytest.param(pa.timestamp("us"), (datetime.datetime(2024, 1, 2), None), None, id="time"),
        pytest.param(pa.float64(), (0.0, 29.9, 30.0, 400.0, None), 30, id="dwell"),
        pytest.param(pa.string(), ("29.9", "30", "1e3", "yes", None), 30, id="dwell as text"),
    ],
)
def test_outcomes_of_any_type(duckdb_engine, tmp_path, type_, values, at_least):
    rng = random.Random(40)
    rows = [{**row, "after": rng.choice(values)} for row in random_log(40)]
    options = {"outcome": "after", "outcome_at_least": at_least}
    counts = check(duckdb_engine, tmp_path, rows, types={"after": type_}, **options)
    assert set(counts.splits.of("outcome").group) == {0, 1}


def test_copies_that_differ_in_more_than_the_click(engine, tmp_path):
    rng = random.Random(41)
    rows = [
        {**row, "points": rng.random()} for row in rich_log(41) for _ in range(rng.choice((1, 2)))
    ]
    options = {"search": "sid", "score": "points", "dedupe": True}
    kept = {}
    for row in rows:
        copies = kept.setdefault((row["sid"], row["doc"], row["rank"]), [])
        copies.append(row)
    ours = engine.harvest(write_parquet(tmp_path / "log.parquet", rows, **TYPES), **options)
    best = [min(copies, key=lambda row: (-row["click"], row["points"])) for copies in kept.values()]
    assert splits_of(ours) == split_tally(tally(best, search="sid", score="points"), options)


# -- other layouts ---------------------------------------------------------------------------------


def test_a_row_per_search(engine, tmp_path):
    searches = defaultdict(list)
    for row in rich_log(50):
        searches[row["sid"]].append(row)
    rows = []
    for shown in searches.values():
        first = {name: shown[0][name] for name in ("sid", "query", "on", "at", "arm", "who")}
        shown.sort(key=lambda row: row["rank"])
        clicked = [row for row in shown if row["click"]]
        rows.append({
            **first, "shown": [row["doc"] for row in shown],
            "clicked": [row["doc"] for row in clicked],
            "points": [row["points"] for row in shown],
            "paid": [row["doc"] for row in clicked if row["paid"]],
        })  # fmt: skip
    texts = pa.list_(pa.string())
    types = {**TYPES, "shown": texts, "clicked": texts, "paid": texts}
    types["points"] = pa.list_(pa.float64())
    path = write_parquet(tmp_path / "log.parquet", rows, **types)
    long, outside = from_lists(rows, parallel=["points"])
    for row in long:
        row["paid"] = row["doc"] in row["paid"]
    options = {**ALL, "segment": ()}
    counts = check_source(engine, path, long, oracle={"outside": outside}, **options)
    assert made(counts) == ASKED_FOR


def test_a_row_per_event(engine, tmp_path):
    """The outcome is told by the event of the click, the rest by that of the result shown."""
    rng = random.Random(51)
    rows, after = [], defaultdict(bool)
    for row in rich_log(51):
        rows.append({**row, "kind": "impression", "paid": rng.choice((True, None))})
        for _ in range(row["click"] * rng.choice((1, 1, 2))):
            paid = rng.choice((True, False, None))
            after[row["sid"], row["doc"]] |= came(paid)
            nothing = dict.fromkeys(("points", "arm", "who", "rank"))
            rows.append({**row, **nothing, "kind": "click", "paid": paid})
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    long, outside = from_events(rows, search="sid", event="kind")
    for row in long:
        row["paid"] = after[row["sid"], row["doc"]]
    ours = {"event": "kind"}
    counts = check_source(engine, path, long, ours=ours, oracle={"outside": outside}, **ALL)
    assert made(counts) == ASKED_FOR


# -- elsewhere and in parts ------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_statement_for_a_warehouse_gives_the_same(duckdb_engine, tmp_path, ending):
    rows = rich_log(60)
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    log = duckdb_engine.read(path, **ALL)
    statement = warehouse_sql("log", dialect="duckdb", log=log)
    with duckdb.connect() as con:
        con.execute(f"CREATE VIEW log AS FROM '{path}'")
        con.execute(f"COPY ({statement}) TO '{tmp_path}/result.{ending}'")
    counts = import_counts(tmp_path / f"result.{ending}")
    assert splits_of(counts) == split_tally(tally(rows, **ALL), ALL)


def test_days_added_up_are_the_whole_but_for_what_looks_at_other_days(duckdb_engine, tmp_path):
    rows = rich_log(61)
    log = duckdb_engine.read(write_parquet(tmp_path / "log.parquet", rows, **TYPES), **ALL)
    merged = merge(map(Counts.load, harvest_by_day(log, tmp_path / "days")))
    assert made(merged) == ASKED_FOR - {"relevance", "ranker"}
    assert splits_of(merged) == split_tally(tally(rows, **ALL), ALL, several_days=False)


def test_names_of_searches_may_begin_anew_every_day(duckdb_engine, tmp_path):
    rows = [{**row, "sid": row["sid"][:2]} for row in rich_log(62, docs=DOCS[:6])]
    shown = set()
    once = [
        row for row in rows
        if (key := (row["on"], row["sid"], row["doc"])) not in shown and not shown.add(key)
    ]  # fmt: skip
    counts = check(duckdb_engine, tmp_path, once, types=TYPES, day="on", search="sid")
    assert "neighbours" in made(counts)


def test_by_hand(duckdb_engine, tmp_path):
    """One pair, clicked at rank 1 by a user who paid, shown at rank 4 to another."""
    shown = {"query": "a", "doc": "x", "on": datetime.date(2024, 1, 3)}
    rows = [
        {**shown, "sid": "s1", "rank": 1, "click": 1, "points": 3.0, "who": 1, "paid": True},
        {**shown, "sid": "s1", "doc": "y", "rank": 2, "click": 1, "who": 1, "paid": False},
        {**shown, "sid": "s2", "rank": 4, "click": 0, "points": 1.0, "who": 2, "paid": False},
    ]
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    named = {"day": "on", "search": "sid", "score": "points", "user": "who", "outcome": "paid"}
    rows = splits_of(duckdb_engine.harvest(path, **named))
    one, two_octaves = 2**32, 2 * 2**32
    found = {(split, group, a, b): sums for (_, split, group, _, a, b), sums in rows.items()}
    assert found == {
        ("outcome", 1, 0, 3): [one, two_octaves, 0],
        ("user", 0, 0, 3): [one, two_octaves, 0],
        ("queries", 1, 0, 3): [one, two_octaves, 0],
        # 1.37 * 2 is between 1 and 4.
        ("score", (32 + 64) * 8 + 3, 0, 3): [one, two_octaves, 2.74 * one // 4096 * 4096],
    }
