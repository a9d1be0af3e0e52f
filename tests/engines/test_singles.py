"""Pairs at one rank, counted on request: those of plain Python, on every engine."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from support.harness import random_log, with_holes, write_parquet

from rankdrift import Counts, harvest, merge
from rankdrift.core.errors import BadCounts, BadOption, MissingColumns
from rankdrift.counts.tables import MOST_SHOWN
from rankdrift.harvesting.by_day import harvest_by_day

CUTS = (0.25, 0.5)
READ = {"query": "query", "doc": "doc", "rank": "rank", "click": "click"}
READ |= {"day": "on", "segment": "device", "search": "sid"}


def log(seed=1, searches=150):
    """Results that drift a little; a score that is sometimes missing and changes sometimes."""
    rng = np.random.default_rng(seed)
    docs = tuple(f"d{i}" for i in range(5))
    rows = random_log(seed, searches, ("a", "b", "c", "d"), docs)
    for row in rows:
        row["old"] = None if rng.random() < 0.1 else float(rng.choice([0.1, 0.25, 0.4, 0.9]))
    twice = [{**rows[7], "rank": rows[7]["rank"] + 3}]  # a doc twice in one search
    often = [
        {**rows[0], "query": "e", "sid": f"x{i}", "click": i % 2} for i in range(MOST_SHOWN + 2)
    ]
    return with_holes(rows + twice, seed, columns=("device",)) + often


def by_hand(rows, grouped):
    pairs = defaultdict(list)
    for row in rows:
        pairs[row["query"], row["doc"], row["on"], row["device"]].append(row)
    found = Counter()
    for (*_, device), shown in pairs.items():
        searches = [row["sid"] for row in shown]
        if len({row["rank"] for row in shown}) > 1 or len({*searches}) < len(searches):
            continue
        known = [
            1 + sum(row["old"] >= cut for cut in CUTS) for row in shown if row["old"] is not None
        ]
        group = min(known, default=0) if grouped else 0
        often, clicked = len(shown), sum(row["click"] for row in shown)
        few = often <= MOST_SHOWN
        found[(device,), group, shown[0]["rank"], often * few, clicked * few] += 1
    return found


def contents(counts):
    columns = (column.tolist() for column in counts.singles.columns())
    return Counter({(counts.segments[s], *key): n for s, *key, n in zip(*columns, strict=True)})


@pytest.mark.parametrize("grouped", [True, False])
def test_they_are_those_of_plain_python(engine, tmp_path, grouped):
    rows = log()
    read = engine.read(write_parquet(tmp_path / "log.parquet", rows, old=pa.float64()), **READ)
    prior = {"prior": "old", "prior_cuts": CUTS} if grouped else {"singles": True}
    counts = harvest(read, **prior)
    assert contents(counts) == by_hand(rows, grouped)
    assert any(key[3] == 0 for key in contents(counts))  # one that was shown too often to list
    plain = harvest(read)
    assert counts.funnel == plain.funnel
    assert counts.pairs.equals(plain.pairs) and not len(plain.singles)


def test_files_days_and_sums_agree(duckdb_engine, tmp_path):
    rows = log(2)
    read = duckdb_engine.read(
        write_parquet(tmp_path / "log.parquet", rows, old=pa.float64()), **READ
    )
    options = {"prior": "old", "prior_cuts": CUTS}
    counts = harvest(read, **options)
    counts.save(tmp_path / "counts.parquet")
    assert Counts.load(tmp_path / "counts.parquet").equals(counts)
    harvest_by_day(read, tmp_path / "days", **options)
    states = []
    harvest_by_day(read, tmp_path / "days", **options, each=lambda *day: states.append(day[-1]))
    assert all(states)  # what is done is left alone
    assert merge(tmp_path / "days").singles.equals(counts.singles)
    one, *others = (Counts.load(path) for path in sorted((tmp_path / "days").iterdir()))
    assert sum(others, one).singles.equals(counts.singles)
    assert counts.restrict(max_rank=2).singles.rank.max() == 2
    assert not len(counts.restrict(strict=True).singles)
    with pytest.raises(BadCounts, match="'singles'"):
        merge([one, harvest(read)])


def test_a_row_per_search(duckdb_engine, tmp_path):
    """Scores in a list go along with the docs."""
    rows = [
        {"query": "a", "shown": ["x", "y"], "clicked": ["y"], "old": [0.3, 0.6]},
        {"query": "a", "shown": ["x", "z"], "clicked": [], "old": [0.1, 0.6]},
    ]
    types = {"shown": pa.list_(pa.string()), "clicked": pa.list_(pa.string())}
    path = write_parquet(tmp_path / "log.parquet", rows, **types, old=pa.list_(pa.float64()))
    read = duckdb_engine.read(path, query="query", shown="shown", clicked="clicked")
    found = contents(harvest(read, prior="old", prior_cuts=CUTS))
    assert found == {((), 1, 1, 2, 0): 1, ((), 3, 2, 1, 1): 1, ((), 3, 2, 1, 0): 1}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"prior": "old"}, BadOption, "go together"),
        ({"prior_cuts": [1]}, BadOption, "go together"),
        ({"prior": "old", "prior_cuts": [2, 1]}, BadOption, "ascend"),
        ({"prior": "old", "prior_cuts": [1, float("nan")]}, BadOption, "ascend"),
        ({"prior": "old", "prior_cuts": range(100)}, BadOption, "at most 63"),
        ({"prior": "odl", "prior_cuts": [1]}, MissingColumns, "old"),
    ],
)
def test_what_cannot_be_is_refused_in_words(duckdb_engine, tmp_path, options, error, words):
    read = duckdb_engine.read(
        write_parquet(tmp_path / "l.parquet", log(), old=pa.float64()), **READ
    )
    with pytest.raises(error, match=words):
        harvest(read, **options)
