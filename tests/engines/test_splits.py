"""The splits of a log are those of the oracle, on every engine and in every layout."""

import datetime
import random

import pyarrow as pa
import pytest
from oracle.harvest_oracle import tally
from oracle.splits_oracle import split_tally
from support.harness import random_log, with_holes, write_parquet

from rankdrift.counts.counts import SPLITS

TYPES = {
    "at": pa.timestamp("s"), "points": pa.float64(), "arm": pa.string(), "who": pa.int64(),
    "bought": pa.bool_(),
}  # fmt: skip
EXTRAS = {"score": "points", "ranker": "arm", "user": "who", "outcome": "bought"}
DOCS = tuple(f"d{i}" for i in range(14))


def rich_log(seed, searches=150, queries=("a", "b", "c"), docs=DOCS):
    """Searches with all that splits are made of; scores repeat, and users come back."""
    rng = random.Random(seed)
    rows, told = [], {}
    for row in random_log(seed, searches, queries, docs):
        if row["sid"] not in told:
            seconds = rng.choice((0, 600, 4000, 20_000, 80_000)) + rng.randrange(60)
            at = datetime.datetime.combine(row["on"], datetime.time())
            told[row["sid"]] = {
                "at": at + datetime.timedelta(seconds=seconds),
                "arm": rng.choice(("old", "new", "new", None, " ")),
                "who": rng.choice((1, 2, 3, 4, None)),
            }
        points = rng.choice((0.5, 0.25, 1.0, 7.125, 1e-9, -3.0, None, float("nan")))
        more = {"points": points, "bought": rng.choice((True, False, None))}
        rows.append({**row, **told[row["sid"]], **more})
    return rows


def of_counts(counts):
    """The table, with the keys of the oracle."""
    columns = (column.tolist() for column in counts.splits.columns())
    return {
        (counts.segments[s], SPLITS[split], group, bucket, a, b): sums
        for s, split, group, bucket, a, b, *sums in zip(*columns, strict=True)
    }


def check(counts, found, options, buckets=64, several_days=True):
    """Equal to the oracle's, and every split that can be made is there."""
    has = {name for name in ("day", "search", *EXTRAS) if options.get(name)}
    expected = split_tally(found, has, buckets, several_days)
    ours = of_counts(counts)
    assert ours == expected
    return {split for _, split, *_ in ours}


ALL = {"day": "on", "time": "at", "search": "sid", "segment": "device", **EXTRAS}


@pytest.mark.parametrize("seed", range(6))
def test_all_columns(engine, tmp_path, seed):
    rows = rich_log(seed)
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    counts = engine.harvest(path, **ALL)
    assert check(counts, tally(rows, **ALL), ALL) == set(SPLITS)


WITHOUT = {
    "nothing": {},
    "a day": {"day": "on"},
    "a search": {"search": "sid"},
    "a score": {"score": "points"},
    "a score and a time": {"score": "points", "time": "at"},
    "users": {"user": "who", "same": "price"},
    "an outcome": {"outcome": "bought", "segment": ["device", "arm"]},
    "rankers": {"ranker": "arm", "day": "on"},
    "rankers and no day": {"ranker": "arm"},
    "what must be equal": {**ALL, "same": "price"},
    "much": {**ALL, "segment": (), "max_rank": 7},
}


@pytest.mark.parametrize("case", WITHOUT)
def test_some_columns(duckdb_engine, tmp_path, case):
    options = WITHOUT[case]
    rows = with_holes(rich_log(20 + len(case), searches=180), 5)
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    none = {name: "" for name in ("day", "search", "time", *EXTRAS) if name not in options}
    found = tally(rows, **options)
    counts = duckdb_engine.harvest(path, **options, **none)
    made = check(counts, found, options)
    if case in ("nothing", "rankers and no day"):
        assert not made
    else:
        assert made


def test_much_shown_pairs_are_thinned(engine, tmp_path):
    """One query, so that pairs have far more than 32 appearances; many are alike."""
    rows = rich_log(31, searches=240, queries=("a",), docs=DOCS[:5])
    path = write_parquet(tmp_path / "log.parquet", rows, **TYPES)
    for options in (
        {"score": "points", "search": "sid", "time": "at", "day": "on"},
        {"score": "points", "search": "", "time": "", "day": ""},
    ):
        named = {name: value for name, value in options.items() if value}
        none = {"ranker": "", "user": "", "outcome": ""}
        counts = engine.harvest(path, **options, **none)
        assert "score" in check(counts, tally(rows, **named), named)
        assert max(counts.rank_pairs.weight) > 0
