"""One suite for every engine: the counts of a log are those of the oracle, whatever its form."""

import csv
import datetime
import gzip
import json
import random
import uuid
from dataclasses import replace
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from oracle.harvest_oracle import from_events, from_lists, tally
from support.harness import (
    DOCS,
    ODD_SEGMENTS,
    QUERIES,
    assert_same,
    changed,
    check,
    check_source,
    contents,
    random_log,
    with_holes,
    write_parquet,
)

from rankdrift.harvesting.counting import harvest

UTC = datetime.UTC


# -- ids and queries -------------------------------------------------------------------------------


def as_uuid(text):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


@pytest.mark.parametrize(
    ("change", "type_"),
    [
        pytest.param(str, pa.string(), id="text"),
        pytest.param(as_uuid, pa.string(), id="uuid as text"),
        pytest.param(lambda d: 2**53 + sum(map(ord, d)), pa.int64(), id="int past the doubles"),
        pytest.param(lambda d: sum(map(ord, d)) % 100, pa.int8(), id="int8"),
        pytest.param(lambda d: sum(map(ord, d)) / 4, pa.float64(), id="float"),
        pytest.param(lambda d: sum(map(ord, d)) / 4, pa.float32(), id="float32"),
    ],
)
def test_ids_of_any_type(engine, tmp_path, change, type_):
    rows = changed(changed(random_log(1), "doc", change), "query", change)
    check(engine, tmp_path, rows, types={"doc": type_, "query": type_})


def test_an_id_that_is_not_a_number_is_missing(engine, tmp_path):
    rng = random.Random(2)
    odd = (float("nan"), float("inf"), None)
    rows = changed(random_log(2), "doc", lambda d: rng.choice((1.0, 2.5, 2.5, *odd)))
    rows = changed(rows, "query", lambda q: rng.choice((-0.0, 0.0, 3.0, *odd)))
    counts = check(engine, tmp_path, rows, types={"doc": pa.float64(), "query": pa.float64()})
    assert counts.funnel.dropped["no_doc"].rows > 0
    assert counts.funnel.dropped["no_query"].rows > 0


def test_values_missing_in_every_column(engine, tmp_path):
    rows = with_holes(random_log(3, searches=200), 3)
    counts = check(engine, tmp_path, rows, day="on", search="sid", same="price", segment="device")
    reasons = ("no_rank", "no_doc", "no_query", "no_day", "no_same")
    assert all(counts.funnel.dropped[name].rows for name in reasons)
    assert counts.funnel.notes["null_click"] and counts.funnel.notes["null_segment"]
    assert (None,) in counts.segments


def test_blank_is_missing_but_blanks_around_matter(engine, tmp_path):
    rows = random_log(4, queries=("a", " a", "", "   ", "A"), docs=("x", "x ", "", " ", "y"))
    counts = check(engine, tmp_path, rows)
    assert counts.funnel.dropped["no_query"].rows and counts.funnel.dropped["no_doc"].rows


def test_a_query_of_several_columns(engine, tmp_path):
    rng = random.Random(5)
    rows = [
        {**row, "category": rng.choice((7, 8, None)), "size": rng.choice((1.0, 2.5, None))}
        for row in random_log(5, queries=("a", "b", "", None), searches=250)
    ]
    counts = check(
        engine, tmp_path, rows, types={"category": pa.int32(), "size": pa.float64()},
        query=["query", "category", "size"],
    )  # fmt: skip
    assert counts.funnel.notes["null_query_part"] > 0
    assert counts.funnel.dropped["no_query"].rows > 0


@pytest.mark.parametrize("layout", ["one column", "two columns"])
def test_columns_that_must_be_equal(engine, tmp_path, layout):
    rows = with_holes(random_log(6, searches=200), 6, columns=["price"])
    rows = changed(rows, "price", lambda p: float("nan") if p == 12.0 else p)
    same = "price" if layout == "one column" else ["price", "device"]
    counts = check(engine, tmp_path, rows, same=same)
    assert counts.funnel.dropped["no_same"].rows > 0


def test_segments_that_text_files_confuse(engine, tmp_path):
    rng = random.Random(10)
    rows = changed(random_log(10, searches=260), "device", lambda _: rng.choice(ODD_SEGMENTS))
    counts = check(engine, tmp_path, rows, segment="device", max_shown=2)
    assert {segment for (segment,) in counts.segments} == set(ODD_SEGMENTS)
    assert len(counts.overflow)


def test_segments(engine, tmp_path):
    rng = random.Random(7)
    rows = [
        {**row, "version": rng.choice((1, 2, None)), "scale": rng.choice((1.0, 1.5, None))}
        for row in with_holes(random_log(7, searches=300), 7, columns=["device"])
    ]
    counts = check(
        engine, tmp_path, rows, types={"version": pa.int16(), "scale": pa.float64()},
        segment=["device", "version", "scale"],
    )  # fmt: skip
    assert ("web", "1", "1.5") in counts.segments and (None, None, None) in counts.segments


def test_where(engine, tmp_path):
    rows = with_holes(random_log(8), 8, columns=["device"])
    counts = check(
        engine, tmp_path, rows,
        ours={"where": "device = 'web' AND price < 12 -- and nothing else"},
        oracle={"where": lambda row: row["device"] == "web" and row["price"] < 12},
    )  # fmt: skip
    assert counts.funnel.dropped["where"].rows > 0


# -- ranks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        pytest.param(
            pa.float64(), (2.5, -1.0, 1e300, float("nan"), float("-inf"), None), id="float"
        ),
        pytest.param(pa.int8(), (100, 127, None, -3), id="int8"),
        pytest.param(pa.uint8(), (200, 255, None), id="uint8"),
        pytest.param(pa.int64(), (2**62, -(2**62), None), id="int64"),
        pytest.param(
            pa.string(), ("2.5", "-1", " 3 ", "4.0", "", "  ", "x", "1e2", "nan", None), id="text"
        ),
    ],
)
def test_ranks_of_any_type(engine, tmp_path, type_, values):
    rng = random.Random(9)
    change = {pa.string(): str, pa.float64(): float}.get(type_, lambda rank: rank)
    rows = [
        {**row, "rank": rng.choice(values) if rng.random() < 0.2 else change(row["rank"])}
        for row in random_log(9, searches=150)
    ]
    check(engine, tmp_path, rows, types={"rank": type_})


def test_ranks_deeper_than_max_rank_are_dropped(engine, tmp_path):
    counts = check(engine, tmp_path, random_log(10, searches=200), max_rank=3)
    assert counts.funnel.dropped["deep_rank"].rows > 0
    assert counts.ranks.max() == 3


@pytest.mark.parametrize("type_", [pa.int8(), pa.float64(), pa.string()], ids=str)
def test_ranks_that_count_from_zero(engine, tmp_path, type_):
    rng = random.Random(11)
    change = {pa.string(): str, pa.float64(): float}.get(type_, int)
    rows = changed(
        random_log(11), "rank", lambda r: change(rng.choice((r - 1, r - 1, r - 1, -1, 127)))
    )
    counts = check(engine, tmp_path, rows, types={"rank": type_}, first_rank=0)
    assert counts.funnel.dropped["low_rank"].rows > 0
    assert counts.ranks.min() == 1


@pytest.mark.parametrize("first_page", [0, 1])
@pytest.mark.parametrize("type_", [pa.int8(), pa.string()], ids=str)
def test_ranks_that_start_again_on_every_page(engine, tmp_path, first_page, type_):
    rng = random.Random(12)
    rows = []
    for row in random_log(12, searches=150):
        page, rank = divmod(row["rank"] - 1, 2)
        page = rng.choice((page, page, page, 60)) + first_page
        page = str(page) if type_ == pa.string() else page
        rows.append({**row, "rank": rank + 1, "part": rng.choice((page, page, page, None))})
    if type_ == pa.string():
        rows[5]["part"] = "last"
    options = {"page": "part", "page_size": 2, "first_page": first_page, "max_rank": 50}
    counts = check(engine, tmp_path, rows, types={"rank": pa.int8(), "part": type_}, **options)
    assert counts.funnel.dropped["no_rank"].rows and counts.funnel.dropped["deep_rank"].rows


# -- clicks ----------------------------------------------------------------------------------------


NOON = datetime.datetime(2024, 2, 28, 12)


@pytest.mark.parametrize(
    ("type_", "no", "yes"),
    [
        pytest.param(pa.bool_(), (False, None), (True,), id="bool"),
        pytest.param(pa.int8(), (0, None), (1,), id="0 and 1"),
        pytest.param(pa.int64(), (0, None, -1), (1, 2, 5), id="counts"),
        pytest.param(pa.float64(), (0.0, None, float("nan"), 0.5, -1.0), (1.0, 3.0), id="float"),
        pytest.param(
            pa.string(), ("no", "F", " false ", "0", "0.0", "", None, "maybe", "-1", "1.5"),
            ("yes", " Click ", "TRUE", "1", "2", "1.0", "2024-02-28 12:00:01"), id="words",
        ),
        pytest.param(pa.timestamp("us"), (None,), (NOON,), id="time"),
        pytest.param(
            pa.timestamp("us", "UTC"), (None,), (NOON.replace(tzinfo=UTC),), id="instant"
        ),
        pytest.param(pa.date32(), (None,), (NOON.date(),), id="date"),
    ],
)  # fmt: skip
def test_clicks_of_any_type(engine, tmp_path, type_, no, yes):
    rng = random.Random(13)
    rows = changed(
        random_log(13, searches=150), "click", lambda c: rng.choice(yes if c else (no[0], *no))
    )
    is_time = isinstance(yes[0], datetime.date)
    check(engine, tmp_path, rows, types={"click": type_}, oracle={"click_is_time": is_time})


def test_all_clicks_zero_is_counted_as_such(engine, tmp_path):
    rows = changed(random_log(14), "click", lambda c: 0)
    counts = engine.harvest(write_parquet(tmp_path / "log.parquet", rows))
    assert_same(counts, tally(rows))
    assert counts.funnel.dropped["never_clicked"].rows == len(rows)


# -- days ------------------------------------------------------------------------------------------


def epoch(times):
    return lambda moment: int(moment.timestamp()) * times


def naive(moment):
    return moment.replace(tzinfo=None)


@pytest.mark.parametrize("time_zone", [None, "America/New_York"])
@pytest.mark.parametrize(
    ("type_", "write", "odd"),
    [
        pytest.param(pa.date32(), datetime.datetime.date, None, id="date"),
        pytest.param(pa.timestamp("us"), naive, None, id="timestamp"),
        pytest.param(pa.timestamp("ms", "UTC"), lambda m: m, None, id="instant"),
        pytest.param(
            pa.timestamp("us", "Asia/Tokyo"),
            lambda m: m.astimezone(ZoneInfo("Asia/Tokyo")), None, id="instant elsewhere",
        ),
        pytest.param(pa.string(), lambda m: str(m.date()), "2024-02-30", id="text date"),
        pytest.param(pa.string(), lambda m: str(naive(m)), "someday, maybe", id="text time"),
        pytest.param(pa.string(), lambda m: m.isoformat(), "2024-02-30T01:00:00Z", id="text zone"),
        pytest.param(
            pa.string(), lambda m: naive(m).isoformat(timespec="milliseconds") + "Z", "",
            id="text Z",
        ),
        pytest.param(
            pa.string(), lambda m: m.astimezone(ZoneInfo("Asia/Kolkata")).isoformat(), " ",
            id="text elsewhere",
        ),
        pytest.param(pa.string(), lambda m: f"{m:%Y%m%d}", "20240230", id="text YYYYMMDD"),
        pytest.param(pa.int32(), lambda m: int(f"{m:%Y%m%d}"), 20241301, id="int YYYYMMDD"),
        pytest.param(pa.int64(), epoch(1), 0, id="epoch s"),
        pytest.param(pa.int64(), epoch(10**3), -1, id="epoch ms"),
        pytest.param(pa.int64(), epoch(10**6), 2024, id="epoch us"),
        pytest.param(pa.int64(), epoch(10**9), 202402, id="epoch ns"),
        pytest.param(pa.string(), lambda m: str(epoch(10**3)(m)), "9" * 30, id="text epoch"),
        pytest.param(pa.float64(), lambda m: epoch(1)(m) + 0.25, 1e300, id="float epoch"),
    ],
)  # fmt: skip
def test_days_in_any_form(engine, tmp_path, type_, write, odd, time_zone):
    rng = random.Random(15)
    rows = []
    for row in random_log(15):
        seconds = rng.choice((0, 4 * 3600, 5 * 3600 + 1, 86399))
        moment = datetime.datetime.combine(row["on"], datetime.time(), UTC)
        moment = write(moment + datetime.timedelta(seconds=seconds))
        rows.append({**row, "on": rng.choice((moment,) * 8 + (None, odd))})
    counts = check(engine, tmp_path, rows, types={"on": type_}, day="on", time_zone=time_zone)
    assert len(counts.days) >= 3
    assert counts.funnel.dropped["no_day"].rows > 0


@pytest.mark.parametrize(
    ("type_", "write", "odd"),
    [
        pytest.param(pa.timestamp("us"), naive, None, id="timestamp"),
        pytest.param(pa.timestamp("us", "UTC"), lambda m: m, None, id="instant"),
        pytest.param(pa.string(), lambda m: m.isoformat(), "2024-02-28", id="text"),
        pytest.param(pa.string(), lambda m: str(epoch(10**3)(m)), "9" * 30, id="text epoch"),
        pytest.param(pa.int64(), epoch(1), 20240228, id="epoch s"),
        pytest.param(pa.date32(), datetime.datetime.date, None, id="date"),
    ],
)
def test_which_way_pairs_moved(engine, tmp_path, type_, write, odd):
    rng = random.Random(50)
    rows = []
    for row in random_log(50, searches=150):
        moment = datetime.datetime.combine(row["on"], datetime.time(12), UTC)
        seconds = rng.choice((rng.uniform(0, 100), rng.uniform(0, 9999), 1, 1, 3601))
        moment = write(moment + datetime.timedelta(seconds=seconds))
        rows.append({**row, "at": rng.choice((moment,) * 30 + (odd, None))})
    counts = check(engine, tmp_path, rows, types={"at": type_}, day="on", time="at")
    expected = {0} if type_ == pa.date32() else {0, 1, 2, 3, 4}
    assert set(counts.pairs.drift) == expected


def test_without_a_day_the_whole_log_is_one(engine, tmp_path):
    counts = check(engine, tmp_path, random_log(16))
    assert counts.days == ()


# -- all of it at once -----------------------------------------------------------------------------


def test_columns_of_several_types_at_once(engine, tmp_path):
    """Of the tests above, all that Spark is asked for without RANKDRIFT_ALL_CASES=1."""
    rng = random.Random(17)
    odd = (2.5, -1.0, 700.0, 1e300, float("nan"), float("-inf"), None)
    rows = [
        {
            **row,
            "rank": rng.choice(odd) if rng.random() < 0.1 else float(row["rank"]),
            "click": True if row["click"] else rng.choice((False, None)),
            "version": rng.choice((1, 2, None)),
            "scale": rng.choice((1.0, 1.5, None)),
        }
        for row in with_holes(random_log(17, searches=400), 17, columns=["device", "on"])
    ]
    types = {"rank": pa.float64(), "click": pa.bool_(), "version": pa.int16()}
    counts = check(
        engine, tmp_path, rows, types={**types, "scale": pa.float64()}, day="on",
        segment=["device", "version", "scale"],
        ours={"where": "price < 12 -- and nothing else"},
        oracle={"where": lambda row: row["price"] < 12},
    )  # fmt: skip
    assert ("web", "1", "1.5") in counts.segments and (None, None, None) in counts.segments
    assert len(counts.days) >= 3
    for reason in ("where", "no_day", "no_rank", "low_rank", "deep_rank"):
        assert counts.funnel.dropped[reason].rows > 0, reason


# -- searches --------------------------------------------------------------------------------------


def with_repeats(seed):
    """A log in which some searches show a doc twice, and some rows were logged twice."""
    rng = random.Random(seed)
    rows = []
    for row in random_log(seed, searches=160):
        rows.append(row)
        if rng.random() < 0.08:
            rows.append({**row, "rank": row["rank"] + 6, "click": int(rng.random() < 0.4)})
        if rng.random() < 0.08:
            rows.append({**row, "click": rng.choice((0, 1, 2, None, -1, row["click"]))})
    rng.shuffle(rows)
    return with_holes(rows, seed, 0.03, ["sid", "rank", "query", "price"])


@pytest.mark.parametrize("dedupe", [False, True])
def test_a_doc_twice_in_one_search(engine, tmp_path, dedupe):
    rng = random.Random(17)
    rows = [{**row, "at": 10**9 + rng.randrange(10**4)} for row in with_repeats(17)]
    counts = check(
        engine, tmp_path, rows, types={"at": pa.int64()}, search="sid", dedupe=dedupe, day="on",
        time="at", same="price",
    )  # fmt: skip
    assert counts.funnel.dropped["doc_twice"].rows > 0
    assert (counts.funnel.dropped["duplicate"].rows > 0) == dedupe


def test_a_row_twice_of_a_pair_that_stayed(engine, tmp_path):
    """Twice in one search comes before one rank; a pair of which nothing is left is none."""
    rows = random_log(20)
    before = check(engine, tmp_path, rows, search="sid").funnel.dropped
    shown = (("a", "x", 1), ("a", "x", 0), ("b", "x", 1), ("c", "y", 1), ("c", "y", 1))
    stayed = [
        {**rows[0], "query": "stayed", "sid": sid, "doc": doc, "rank": 3, "click": click}
        for sid, doc, click in shown
    ]
    dropped = check(engine, tmp_path, rows + stayed, search="sid").funnel.dropped
    assert dropped["doc_twice"].rows - before["doc_twice"].rows == 4
    assert dropped["one_rank"].rows - before["one_rank"].rows == 1
    assert dropped["one_rank"].pairs - before["one_rank"].pairs == 1


def test_copies_of_rows_that_cannot_be_read(engine, tmp_path):
    rng = random.Random(18)
    rows = changed(with_repeats(18), "click", lambda c: rng.choice((str(c), "maybe", "", None)))
    rows = changed(rows, "rank", lambda r: rng.choice((*[str(r)] * 9, "", "x")))
    check(
        engine, tmp_path, rows, types={"click": pa.string(), "rank": pa.string()},
        search="sid", dedupe=True, ours={"where": "device = 'web'"},
        oracle={"where": lambda row: row["device"] == "web"},
    )  # fmt: skip


def test_rows_without_a_search_are_never_copies(engine, tmp_path):
    rows = changed(random_log(19), "sid", lambda s: None if s > "s5" else s)
    counts = check(engine, tmp_path, rows, search="sid", dedupe=True)
    assert counts.funnel.dropped["duplicate"].rows == 0


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_shown", [2, 8, 16])
def test_pairs_shown_often_become_comparisons(engine, tmp_path, max_shown):
    rows = random_log(20, searches=260, queries=QUERIES[:3])
    rows = with_holes(rows, 20, columns=["device"])
    path = write_parquet(tmp_path / "log.parquet", rows)
    expected = tally(rows, segment="device", max_shown=max_shown)
    assert expected.comparisons and expected.pairs
    assert any(single for *_, single in expected.comparisons) or max_shown > 2
    assert_same(engine.harvest(path, max_shown=max_shown, segment="device"), expected)


def test_fewer_buckets_are_the_larger_number_folded(engine, tmp_path):
    rows = random_log(21, queries=tuple(f"query {i % 40}" for i in range(40)), searches=200)
    path = write_parquet(tmp_path / "log.parquet", rows)
    fine = engine.harvest(path, buckets=64, max_shown=2)
    coarse = engine.harvest(path, buckets=16, max_shown=2)
    assert_same(fine, tally(rows, buckets=64, max_shown=2))
    assert_same(coarse, tally(rows, buckets=16, max_shown=2))
    assert {bucket for table in contents(fine)[:2] for _, bucket, *_ in table} - set(range(16))
    assert coarse.equals(fine.restrict(buckets=16))
    assert_same(engine.harvest(path, buckets=4096), tally(rows, buckets=4096))
    assert_same(engine.harvest(path, buckets=1), tally(rows, buckets=1))


def test_a_hash_that_collides_changes_no_count(engine, tmp_path):
    """Where rows are not spread over machines no hash is asked for: here they are said to be."""
    rows = with_holes(with_repeats(22), 22, 0.02)
    options = {"search": "sid", "day": "on", "same": "price", "segment": "device"}
    log = engine.read(write_parquet(tmp_path / "log.parquet", rows), **options)
    dialect = log.engine.dialect
    few, one = f"({dialect.hash}) % 3", "length(concat('x')) * 0"
    for hash_, max_shown in ((few, 2), (one, 8)):
        log.engine.dialect = replace(dialect, hash=hash_, distributed=True)
        counts = harvest(log, max_shown=max_shown)
        assert_same(counts, tally(rows, max_shown=max_shown, **options), split=False)


# -- list logs -------------------------------------------------------------------------------------


def list_log(seed, docs=DOCS, odd=True):
    """A row per search; docs twice, docs missing, clicks on docs not shown, lists missing."""
    rng = random.Random(seed)
    rows = []
    for i in range(160):
        shown = sorted(docs, key=lambda d: docs.index(d) + rng.gauss(0, 2))[: rng.randint(2, 6)]
        clicked = [doc for place, doc in enumerate(shown) if rng.random() < 0.5 / (place + 1)]
        if odd and rng.random() < 0.1:
            shown.insert(rng.randint(0, len(shown)), rng.choice(shown))
        if odd and rng.random() < 0.1:
            clicked += [docs[0], docs[-1]]
        rows.append(
            {
                "sid": f"s{i}",
                "query": rng.choice(QUERIES),
                "on": datetime.date(2024, 2, rng.choice((27, 28))),
                "results": shown if rng.random() < 0.97 else rng.choice((None, [])),
                "picked": clicked if rng.random() < 0.97 else None,
            }
        )
    return rows


LISTS = {"shown": "results", "clicked": "picked"}


@pytest.mark.parametrize(
    ("change", "element"),
    [(str, pa.string()), (lambda d: sum(map(ord, d)), pa.int64())],
    ids=["text", "int"],
)
def test_native_lists(engine, tmp_path, change, element):
    rng = random.Random(23)
    rows = list_log(23)
    for row in rows:
        for name in LISTS.values():
            if row[name]:
                row[name] = [change(doc) if rng.random() < 0.97 else None for doc in row[name]]
    long, outside = from_lists(rows, *LISTS.values())
    types = {name: pa.list_(element) for name in LISTS.values()}
    path = write_parquet(tmp_path / "log.parquet", rows, **types)
    for day in (None, "on"):
        counts = check_source(
            engine, path, long, ours=LISTS, oracle={"outside": outside}, day=day, max_rank=5
        )
    dropped = counts.funnel.dropped
    assert dropped["doc_twice"].rows and dropped["stray_click"].clicks and dropped["no_doc"].rows


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda docs: json.dumps(docs, separators=(",", ":")),
        str,
        ",".join,
        ", ".join,
        " ".join,
        "|".join,
        ";".join,
    ],
    ids=["json", "dense json", "python", "comma", "comma and blank", "blank", "bar", "semicolon"],
)
def test_lists_as_text(engine, tmp_path, write):
    rows = list_log(24)
    long, outside = from_lists(rows, *LISTS.values())
    for row in rows:
        for name in LISTS.values():
            row[name] = None if row[name] is None else write(row[name])
    path = write_parquet(tmp_path / "log.parquet", rows)
    check_source(engine, path, long, ours=LISTS, oracle={"outside": outside})


def test_docs_with_blanks_and_commas_in_json_text(engine, tmp_path):
    rows = list_log(24, docs=("red shoe", "red, hat", "a;b", "it's", "d1", 'quo"ted'))
    long, outside = from_lists(rows, *LISTS.values())
    for row in rows:
        for name in LISTS.values():
            row[name] = None if row[name] is None else json.dumps(row[name])
    path = write_parquet(tmp_path / "log.parquet", rows)
    check_source(engine, path, long, ours=LISTS, oracle={"outside": outside})


def test_a_list_that_must_be_equal_goes_along_with_the_docs(engine, tmp_path):
    rng = random.Random(25)
    rows = list_log(25)
    for row in rows:
        row["prices"] = [rng.choice((9.5, 9.5, 12.0, None)) for _ in row["results"] or ()]
        row["prices"] = rng.choice((row["prices"],) * 9 + (row["prices"][:1], None))
    long, outside = from_lists(rows, *LISTS.values(), parallel=["prices"])
    types = {name: pa.list_(pa.string()) for name in LISTS.values()}
    counts = check_source(
        engine,
        write_parquet(tmp_path / "log.parquet", rows, prices=pa.list_(pa.float64()), **types),
        long, ours=LISTS, oracle={"outside": outside}, same="prices", day="on",
    )  # fmt: skip
    assert counts.funnel.dropped["no_same"].rows > 0


def test_pages_of_lists(engine, tmp_path):
    rng = random.Random(26)
    rows = [{**row, "part": rng.choice((1, 1, 2))} for row in list_log(26)]
    long, outside = from_lists(rows, *LISTS.values())
    types = {name: pa.list_(pa.string()) for name in LISTS.values()}
    check_source(
        engine, write_parquet(tmp_path / "log.parquet", rows, part=pa.int8(), **types), long,
        ours=LISTS, oracle={"outside": outside}, page="part", page_size=3,
    )  # fmt: skip


# -- event logs ------------------------------------------------------------------------------------


def event_log(seed):
    """Results shown and clicks, some of them on nothing, some results shown again."""
    rng = random.Random(seed)
    rows = []
    for row in random_log(seed, searches=150):
        click, row = row["click"], {**row, "kind": "impression"}
        del row["click"]
        rows.append(row)
        if rng.random() < 0.05:
            rows.append({**row, "rank": row["rank"] + 6})
        for _ in range(rng.choice((1, 1, 2)) if click else 0):
            rows.append({**row, "kind": "click", "rank": rng.choice((row["rank"], None))})
        if rng.random() < 0.05:
            rows.append({**row, "kind": rng.choice(("click", "basket", None, " click ", "Click"))})
        if rng.random() < 0.03:
            rows.append({**row, "kind": "click", "doc": "never shown"})
    rng.shuffle(rows)
    return with_holes(rows, seed, 0.02, ["sid", "doc", "query", "rank"])


@pytest.mark.parametrize("type_", [pa.int32(), pa.string()], ids=str)
def test_events(engine, tmp_path, type_):
    rows = event_log(27)
    if type_ == pa.string():  # as text, '10' comes before '9'
        rows = changed(rows, "rank", lambda r: r and str(r + 5))
    long, outside = from_events(rows, search="sid", event="kind")
    path = write_parquet(tmp_path / "log.parquet", rows, rank=type_)
    for day in (None, "on"):
        counts = check_source(
            engine, path, long, ours={"event": "kind"}, oracle={"outside": outside},
            search="sid", day=day,
        )  # fmt: skip
    dropped = counts.funnel.dropped
    assert dropped["other_event"].rows and dropped["stray_click"].clicks
    assert dropped["repeat_click"].clicks and dropped["doc_twice"].rows


def test_events_of_other_names(engine, tmp_path):
    names = {"impression": "view", "click": "tap", "basket": "it's"}
    rows = changed(event_log(28), "kind", lambda k: names.get(k, k))
    named = {"shown": ("view",), "clicks": ("tap", "it's")}
    long, outside = from_events(rows, search="sid", event="kind", **named)
    check_source(
        engine, write_parquet(tmp_path / "log.parquet", rows), long, search="sid",
        ours={"event": "kind", "shown_events": "view", "click_events": ["tap", "it's"]},
        oracle={"outside": outside},
    )  # fmt: skip


# -- where rows are --------------------------------------------------------------------------------


def test_columns_inside_structs(engine, tmp_path):
    rows = with_holes(random_log(29), 29)
    nested = [
        {
            "who": {"text": row["query"], "device": row["device"]},
            "what": {"item": {"id": row["doc"]}, "at": row["rank"]},
            "click": row["click"],
            "on": row["on"],
        }
        for row in rows
    ]
    types = {
        "who": pa.struct({"text": pa.string(), "device": pa.string()}),
        "what": pa.struct({"item": pa.struct({"id": pa.string()}), "at": pa.int16()}),
    }
    counts = engine.harvest(
        write_parquet(tmp_path / "log.parquet", nested, **types),
        query="who.text", doc="what.item.id", rank="what.at", segment="who.device", day="on",
    )  # fmt: skip
    assert_same(counts, tally(rows, segment="device", day="on"))
    assert counts.segment_columns == ("who.device",)


ODD_NAMES = [
    ('a"; drop table x; --', "it's", "back``tick", "select", "a b"),
    ("{0}", "%s", "é\u3000ñ", 'double""quote', "back\\slash"),
    ("h", "fate", "ok", "day", "segment"),
    ("doc", "rank", "click", "query", "search"),
    ("q1", "s1", "g1", "rd_doc", "excluded"),
    ("pairs", "n", "kind", "shown", "count"),
]


@pytest.mark.parametrize("names", ODD_NAMES, ids=lambda names: names[0])
def test_columns_and_files_of_any_name(engine, tmp_path, names):
    rows = with_holes(random_log(30), 30)
    query, doc, rank, click, segment = names
    old = ("query", "doc", "rank", "click", "device")
    renamed = [
        {**{new: row[name] for name, new in zip(old, names, strict=True)}, "on": row["on"]}
        for row in rows
    ]
    path = tmp_path / names[0].replace("/", "") / f"{names[1]} .parquet"
    text = dict.fromkeys((query, doc, segment), pa.string())
    write_parquet(path, renamed, **text, **{rank: pa.int32(), click: pa.int8()})
    counts = engine.harvest(
        path, query=[query], doc=doc, rank=rank, click=click, segment=segment, day="on",
        layout="long", search="",
    )  # fmt: skip
    assert_same(counts, tally(rows, segment="device", day="on"))
    assert counts.segment_columns == (segment,)


def text_rows(seed):
    """A log that text formats can hold: what is missing is empty."""
    return with_holes(random_log(seed), seed)


def write_csv(path, rows, opener=open):
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_json(path, rows, opener=open):
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, default=str) + "\n" for row in rows)


@pytest.mark.parametrize("opener", [open, gzip.open], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_text_files(engine, tmp_path, kind, opener):
    rows = text_rows(31)
    rows[7]["query"] = 'quo"ted, and\nbroken' if kind == "csv" and engine.name == "duckdb" else "'"
    half = len(rows) // 2
    write = write_csv if kind == "csv" else write_json
    for i, part in enumerate((rows[:half], rows[half:])):
        write(tmp_path / f"{i}.{kind}{'.gz' if opener is gzip.open else ''}", part, opener)
    check_source(engine, tmp_path, rows, day="on", segment="device", same="price")


def test_a_csv_id_keeps_its_zeros(engine, tmp_path):
    rows = [
        {"query": "q", "doc": doc, "rank": rank, "click": click}
        for doc, rank, click in (("007", 1, 1), ("007", 2, 0), ("7", 1, 0), ("7", 3, 1))
    ]
    write_csv(tmp_path / "log.csv", rows)
    check_source(engine, tmp_path / "log.csv", rows)


def test_folders_that_name_the_day_and_the_segment(engine, tmp_path):
    rows = random_log(32)
    rows = changed(rows, "device", lambda d: "it's" if d == "app" else d)
    groups = {}
    for row in rows:
        rest = {name: value for name, value in row.items() if name not in ("on", "device")}
        groups.setdefault((row["on"], row["device"]), []).append(rest)
    for (day, device), part in groups.items():
        write_parquet(tmp_path / f"on={day}" / f"device={device}" / "part-0.parquet", part)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_text("not a log")
    check_source(engine, tmp_path, rows, day="on", segment="device")


def test_files_whose_columns_differ_in_order_and_number(engine, tmp_path):
    first, second = (
        changed(with_holes(random_log(seed), seed), "click", lambda c: c if c is None else bool(c))
        for seed in (33, 34)
    )
    write_parquet(tmp_path / "1.parquet", first, rank=pa.int8(), click=pa.bool_())
    turned = [{"new": 1, **dict(reversed(row.items()))} for row in second]
    write_parquet(tmp_path / "2.parquet", turned, new=pa.int8(), rank=pa.int8(), click=pa.bool_())
    check_source(engine, tmp_path, first + second, day="on", segment="device")


def test_files_whose_types_grow(engine, tmp_path):
    first, second = random_log(35), random_log(36)
    write_parquet(tmp_path / "1.parquet", first, rank=pa.int32())
    write_parquet(tmp_path / "2.parquet", second, rank=pa.int64())
    check_source(engine, tmp_path, first + second)


# -- DuckDB only -----------------------------------------------------------------------------------


def number(doc):
    return sum(map(ord, doc)) % 50


def test_a_doc_that_is_a_number_in_one_file_and_text_in_another(duckdb_engine, tmp_path):
    first, second = changed(random_log(37), "doc", number), changed(random_log(38), "doc", number)
    write_parquet(tmp_path / "1.parquet", first, doc=pa.int64())
    write_parquet(tmp_path / "2.parquet", changed(second, "doc", str), doc=pa.string())
    check_source(duckdb_engine, tmp_path, changed(first + second, "doc", str))
    [remark] = duckdb_engine.read(tmp_path).remarks
    assert "'doc'" in remark and "BIGINT in 1 file," in remark and "as text" in remark


def test_a_table_in_a_database_file(duckdb_engine, tmp_path):
    rows = with_holes(random_log(39), 39)
    file = write_parquet(tmp_path / "log.parquet", rows)
    for name in ('it\'s "odd"', "other.thing"):
        with duckdb.connect(tmp_path / "logs.duckdb") as con:
            quoted = name.replace('"', '""')
            con.execute(f"CREATE TABLE \"{quoted}\" AS FROM read_parquet('{file}')")
        check_source(duckdb_engine, tmp_path / "logs.duckdb", rows, ours={"table": name}, day="on")


@pytest.mark.parametrize("kind", ["arrow", "pandas", "pandas with arrow", "polars"])
def test_tables_in_memory(duckdb_engine, tmp_path, kind):
    rows = with_holes(random_log(40), 40)
    table = pa.parquet.read_table(write_parquet(tmp_path / "log.parquet", rows))
    if kind == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    elif kind == "pandas":
        table = table.to_pandas()
    elif kind == "pandas with arrow":
        pandas = pytest.importorskip("pandas")
        table = table.to_pandas(types_mapper=pandas.ArrowDtype)
    check_source(duckdb_engine, table, rows, day="on", segment="device", same="price")


@pytest.mark.parametrize(
    ("column", "type_", "change"),
    [
        ("doc", "UUID", as_uuid),
        ("query", "UUID", as_uuid),
        ("doc", "BLOB", str),
        ("query", "BLOB", str),
        ("query", f"ENUM({', '.join(repr(q) for q in 'abc')})", lambda q: "abc"[len(q) % 3]),
        ("doc", "HUGEINT", lambda d: 2**100 + number(d)),
        ("doc", "UBIGINT", lambda d: 2**64 - 1 - number(d)),
        ("query", "DATE", lambda q: datetime.date(2024, 1, 1 + len(q))),
        ("query", "BOOLEAN", lambda q: len(q) % 2 == 0),
        ("rank", "DECIMAL(9, 2)", int),
        ("rank", "HUGEINT", int),
        ("click", "DECIMAL(9, 2)", int),
        ("query", "JSON", str),
    ],
)
def test_types_of_duckdb(duckdb_engine, tmp_path, column, type_, change):
    docs, queries = ("d1", "d2", "d3", "d4"), ("a", "bb", "ccc")
    rows = changed(random_log(41, docs=docs, queries=queries), column, change)
    values = "to_json({0})" if type_ == "JSON" else f"CAST({{0}} AS {type_})"
    table = changed(rows, column, str)
    path = write_parquet(tmp_path / "log.parquet", table, **{column: pa.string()})
    with duckdb.connect(tmp_path / "logs.duckdb") as con:
        con.execute(
            f"CREATE TABLE log AS SELECT * REPLACE ({values.format(column)} AS {column})"
            f" FROM read_parquet('{path}')"
        )
    check_source(duckdb_engine, tmp_path / "logs.duckdb", rows)


def test_json_lines_whose_values_change_type(duckdb_engine, tmp_path):
    rng = random.Random(42)
    rows = random_log(42)
    written = []
    for row in rows:
        click = rng.choice((row["click"], bool(row["click"]), "yes" if row["click"] else "no"))
        rank = rng.choice((row["rank"], str(row["rank"]), float(row["rank"])))
        written.append({**row, "click": click, "rank": rank, "doc": row["doc"]})
    write_json(tmp_path / "log.jsonl", written)
    check_source(duckdb_engine, tmp_path / "log.jsonl", rows, day="on")


def test_a_name_with_a_star_is_one_file(duckdb_engine, tmp_path):
    rows, others = random_log(43), random_log(44)
    odd = ("st*r.parquet", "a[1].parquet", "q?.parquet")
    for name in odd:
        write_parquet(tmp_path / name, rows)
    for name in ("star.parquet", "a1.parquet", "qq.parquet"):
        write_parquet(tmp_path / name, others)
    for name in odd:
        check_source(duckdb_engine, tmp_path / name, rows)
    check_source(duckdb_engine, tmp_path, (rows + others) * 3)
    check_source(duckdb_engine, tmp_path / "st*.parquet", rows + others)


def test_a_field_of_a_struct_is_no_column_of_that_name(duckdb_engine, tmp_path):
    rows = [{**row, "meta": {"rank": "x"}} for row in random_log(45)]
    for i in (1, 2):
        write_parquet(tmp_path / f"{i}.parquet", rows, meta=pa.struct({"rank": pa.string()}))
    assert duckdb_engine.read(tmp_path).remarks == ()
