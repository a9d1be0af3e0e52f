"""Logs made up by a seed, written as files, harvested, and compared with the oracle."""

import datetime
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from oracle.harvest_oracle import tally
from oracle.splits_oracle import split_tally

from rankdrift.counts.counts import SPLITS
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log

QUERIES = ("red shoes", "blue hat", "  padded ", "it's", "ünï çödé", "a|b")
ODD_SEGMENTS = (None, "", "~", "~~", "~web", "web", " ", "NULL", 'a,"b"')
DOCS = ("d1", "d2", "d3", "D1", "007", "7")
FIRST_DAY = datetime.date(2024, 2, 28)
# Options that splits are made by.
SPLIT_BY = ("day", "search", "score", "ranker", "user", "outcome", "time")

TYPES = {
    "sid": pa.string(),
    "query": pa.string(),
    "doc": pa.string(),
    "rank": pa.int32(),
    "click": pa.int8(),
    "on": pa.date32(),
    "price": pa.float64(),
    "device": pa.string(),
}


@dataclass
class Harness:
    """An engine, as far as tests care."""

    name: str
    session: Any = None

    def read(self, source, **options):
        chosen = {"session": self.session} if self.session is not None else {}
        return read_log(source, engine=self.name, **chosen, **options)

    def harvest(self, source, buckets=64, max_shown=8, trust=False, **options):
        log = self.read(source, **options)
        return harvest(log, buckets=buckets, max_shown=max_shown, trust=trust)


def random_log(seed, searches=110, queries=QUERIES, docs=DOCS):
    """Searches whose results drift, as one row per result shown."""
    rng = random.Random(seed)
    rows = []
    for i in range(searches):
        order = sorted(range(len(docs)), key=lambda d: d + rng.gauss(0, 2))
        search = {
            "sid": f"s{i}",
            "query": rng.choice(queries),
            "on": FIRST_DAY + datetime.timedelta(days=rng.choice((0, 0, 0, 1, 2))),
            "device": rng.choice(("web", "web", "app")),
        }
        for place, d in enumerate(order[: rng.randint(2, len(docs))]):
            seen = {"doc": docs[d], "rank": place + 1, "price": rng.choice((9.5, 9.5, 9.5, 12.0))}
            rows.append({**search, **seen, "click": int(rng.random() < 0.6 / (place + 1))})
    return rows


def with_holes(rows, seed, share=0.05, columns=None):
    """The same, with values missing here and there."""
    rng = random.Random(seed)
    return [
        {
            name: None if (not columns or name in columns) and rng.random() < share else value
            for name, value in row.items()
        }
        for row in rows
    ]


def changed(rows, column, change):
    """The same, with `change` made to every value of a column."""
    return [{**row, column: change(row[column])} for row in rows]


def write_parquet(path, rows, **types):
    """One Parquet file; columns have the types of TYPES unless given."""
    names = list(rows[0]) if rows else list(TYPES)
    known = {**TYPES, **types}
    schema = pa.schema([(name, known.get(name, pa.string())) for name in names])
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def check(engine, folder, rows, *, types=None, **options):
    """Harvest `rows` from one Parquet file, compare with the oracle, return the counts."""
    path = write_parquet(folder / "log.parquet", rows, **(types or {}))
    return check_source(engine, path, rows, **options)


def check_source(engine, source, rows, *, ours=None, oracle=None, **options):
    """Harvest `source`, compare with the oracle's count of `rows`, return the counts.

    `options` are those of both; what only one of them takes goes into `ours` or `oracle`.
    """
    expected = tally(rows, **options, **(oracle or {}))
    assert expected.used[2] > 0, "a comparison of nothing proves nothing"
    counts = engine.harvest(source, **options, **(ours or {}))
    assert_same(counts, expected)
    has = {name for name in SPLIT_BY if options.get(name)}
    if any(row["seconds"] is not None for _, shown in expected.clicked_pairs for row in shown):
        has.add("time")  # a day may tell the time of day
    assert splits_of(counts) == split_tally(expected, has, counts.buckets)
    return counts


def splits_of(counts):
    """The table of splits, with the keys of the oracle."""
    columns = (column.tolist() for column in counts.splits.columns())
    return {
        (counts.segments[s], SPLITS[split], group, bucket, a, b): sums
        for s, split, group, bucket, a, b, *sums in zip(*columns, strict=True)
    }


def within_days(counts):
    """The same without the splits that look at other days: counted day by day there are none."""
    others = [SPLITS.index(name) for name in ("relevance", "ranker")]
    return replace(counts, splits=counts.splits.take(~np.isin(counts.splits.split, others)))


def assert_same(counts, expected, split=True):
    """`split`: also how rows without use divide into never_clicked, one_rank and doc_twice."""
    pairs, comparisons, held, impressions, clicks = contents(counts)
    assert impressions == expected.impressions
    assert +clicks == expected.clicks
    assert pairs == expected.pairs
    assert comparisons == expected.comparisons
    assert held == expected.held
    assert drifts(counts) == expected.drifts
    assert set(counts.days) == expected.days
    funnel = counts.funnel
    assert (funnel.rows, funnel.clicks) == (expected.rows, expected.log_clicks)
    assert [funnel.used.rows, funnel.used.clicks, funnel.used.pairs] == expected.used
    dropped = {k: [d.rows, d.clicks] for k, d in funnel.dropped.items() if d.rows or d.clicks}
    assert {k: n for k, n in funnel.notes.items() if n} == dict(+expected.notes)
    if split:
        assert dropped == dict(expected.dropped)
        assert funnel.dropped["one_rank"].pairs == expected.one_rank_pairs
    else:
        assert _together(dropped) == _together(expected.dropped)


def _together(dropped):
    unused = ("never_clicked", "one_rank", "doc_twice")
    rows = {name: numbers for name, numbers in dropped.items() if name not in unused}
    return rows, [sum(dropped.get(name, (0, 0))[i] for name in unused) for i in (0, 1)]


def drifts(counts):
    """The pairs by the way they moved, as a Counter with the keys of the oracle."""
    found, p = Counter(), counts.pairs
    columns = (p.segment, p.bucket, p.drift, p.shown, p.pairs)
    for s, b, drift, shown, n in zip(*(column.tolist() for column in columns), strict=True):
        found[counts.segments[s], b, drift, tuple(code for code in shown if code)] += n
    return found


def contents(counts):
    """The tables as Counters with the keys of the oracle."""
    pairs, comparisons, impressions, clicks = Counter(), Counter(), Counter(), Counter()
    p, c, h, r, *_ = counts.tables.values()
    for s, b, shown, n in zip(p.segment, p.bucket, p.shown.tolist(), p.pairs, strict=True):
        pairs[counts.segments[s], int(b), tuple(code for code in shown if code)] += int(n)
    for s, b, a, o, single, w in zip(*(column.tolist() for column in c.columns()), strict=True):
        comparisons[counts.segments[s], b, a, o, single] += w
    held = {
        (counts.segments[s], rank, single): numbers
        for s, rank, single, *numbers in zip(*(v.tolist() for v in h.columns()), strict=True)
    }
    for s, rank, n, k in zip(*(column.tolist() for column in r.columns()), strict=True):
        impressions[counts.segments[s], rank] += n
        clicks[counts.segments[s], rank] += k
    return pairs, comparisons, held, impressions, clicks
