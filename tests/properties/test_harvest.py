"""What must hold of the harvest of any log, however messy."""

import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.harvest_oracle import read_day, tally
from support.harness import assert_same, contents, within_days

from rankdrift.counts.counts import Counts, merge
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log

pytestmark = pytest.mark.slow
# Few values, so that pairs meet; everything is text, as it comes from a careless export.
RANKS = ("1", "2", "3", " 4", "5.0", "9", "-1", "2.5", "x", "", None)
CLICKS = ("0", "0", "1", "yes", "no", "3", "-2", "0.5", "?", "", None)
DAYS = ("2024-02-28", "20240228", "2024-02-29", "2024-02-28T23:59:59Z", "2024-02-30", "", None)
COLUMNS = ("query", "part", "doc", "rank", "click", "day", "search", "price", "device")
row = st.fixed_dictionaries(
    {
        "query": st.sampled_from(("a", "b", " ", None)),
        "part": st.sampled_from(("x", "", None)),
        "doc": st.sampled_from(("d", "e", "", None)),
        "rank": st.sampled_from(RANKS),
        "click": st.sampled_from(CLICKS),
        "day": st.sampled_from(DAYS),
        "search": st.sampled_from(("s", "t", "u", None)),
        "price": st.sampled_from(("9", None)),
        "device": st.sampled_from(("web", None)),
    }
)
# Rows that agree in most columns, or hardly any pair would be shown twice.
tidy = st.fixed_dictionaries(
    {
        "query": st.sampled_from(("a", "b")),
        "part": st.just("x"),
        "doc": st.sampled_from(("d", "e")),
        "rank": st.sampled_from(("1", "2", "3", "4")),
        "click": st.sampled_from(("0", "1")),
        "day": st.sampled_from(DAYS[:3]),
        "search": st.uuids().map(str),
        "price": st.just("9"),
        "device": st.just("web"),
    }
)
logs = st.lists(tidy | row, min_size=1, max_size=40)
choices = st.fixed_dictionaries(
    {"max_rank": st.sampled_from((3, 500))},
    optional={
        "query": st.just(("query", "part")),
        "day": st.just("day"),
        "same": st.just("price"),
        "segment": st.just("device"),
        "search": st.just("search"),
    },
)
sizes = st.fixed_dictionaries(
    {"max_shown": st.sampled_from((2, 3, 8)), "buckets": st.sampled_from((1, 16, 64))}
)
# A harvest takes a fifth of a second, so few examples of it are many.
few = settings(max_examples=4, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def _no_probe():
    """The look at the first rows refuses logs as odd as these; that is not tested here."""
    with mock.patch("rankdrift.harvesting.counting.probe"):
        yield


def table(rows):
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in COLUMNS]))


def read(rows, options):
    # "" says that there is none, so that none is guessed
    return read_log(rows if isinstance(rows, Path) else table(rows), threads=1,
                    **{"day": "", "search": "", **options})  # fmt: skip


def count(rows, options, size=None):
    return harvest(read(rows, options), **(size or {}))


def shapes(counts):
    """All of the counts but the buckets, which depend on the query's text."""
    pairs, comparisons, held, impressions, clicks = contents(counts)
    listed, compared = Counter(), Counter()
    for (segment, _, codes), n in pairs.items():
        listed[segment, codes] += n
    for (segment, _, *cell), weight in comparisons.items():
        compared[segment, *cell] += weight
    return listed, compared, held, impressions, clicks, counts.funnel


@settings(max_examples=15, deadline=None)
@given(logs, choices, sizes, st.booleans())
def test_any_log_is_counted_as_by_hand_and_its_funnel_adds_up(rows, options, size, dedupe):
    options = {**options, "dedupe": dedupe and "search" in options}
    counts = count(rows, options, size)
    assert_same(counts, tally(rows, **options, **size))
    dropped = counts.funnel.dropped.values()
    assert sum(d.rows for d in dropped) + counts.funnel.used.rows == len(rows)
    assert sum(d.clicks for d in dropped) + counts.funnel.used.clicks == counts.funnel.clicks


@few
@given(logs, choices, sizes, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_rows_does_not_matter(rows, options, size, random, dedupe):
    options = {**options, "dedupe": dedupe and "search" in options}
    shuffled = random.sample(rows, len(rows))
    assert count(rows, options, size).equals(count(shuffled, options, size))


@few
@given(logs, choices, sizes)
def test_days_counted_apart_and_merged_are_the_whole(rows, options, size):
    options = {**options, "day": "day"}
    by_day = {}
    for one in rows:
        by_day.setdefault(read_day(one["day"]), []).append(one)
    parts = [count(part, options, size) for part in by_day.values()]
    assert merge(parts).equals(within_days(count(rows, options, size)))


@few
@given(logs, choices, sizes)
def test_new_names_for_queries_and_docs_change_no_shape(rows, options, size):
    queries = {"a": "it's\n", "b": "a", " ": "   ", None: None}
    docs = {"d": "e", "e": "\U0001f600", "": " ", None: None}
    renamed = [{**one, "query": queries[one["query"]], "doc": docs[one["doc"]]} for one in rows]
    assert shapes(count(rows, options, size)) == shapes(count(renamed, options, size))


@settings(max_examples=3, deadline=None)
@given(logs, choices, sizes, st.sampled_from(["memory", "one file", "three files", "day files"]))
def test_files_a_day_merged_are_the_harvest(rows, options, size, where):
    options = {**options, "day": "day"}
    with tempfile.TemporaryDirectory() as folder:
        if where == "memory":
            source = rows
        else:
            source = Path(folder, "log")
            source.mkdir()
            for name, part in split(rows, where).items():
                pa.parquet.write_table(table(part), source / f"{name}.parquet")
        log = read(source, options)
        files = harvest_by_day(log, Path(folder, "counts"), **size)
        days = sorted({read_day(one["day"]) or "undated" for one in rows})
        assert sorted(file.stem for file in files) == days
        merged = merge(map(Counts.load, files))
        assert merged.equals(within_days(harvest(log, **size)))
        assert_same(merged, tally(rows, **options, **size))


def split(rows, how):
    parts = {}
    for i, one in enumerate(rows):
        day = read_day(one["day"]) or "undated"
        name = {"one file": "all", "three files": i % 3, "day files": day}[how]
        parts.setdefault(name, []).append(one)
    return parts
