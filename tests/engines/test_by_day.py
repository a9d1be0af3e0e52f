"""One counts file a day: together they are the harvest of the whole log, and only what changed is
counted again."""

import datetime
import json
import os
import re

import duckdb
import pyarrow as pa
import pytest
from oracle.harvest_oracle import from_events, from_lists, tally
from support.harness import assert_same, random_log, with_holes, within_days, write_parquet

from rankdrift.core.errors import BadCounts, BadLog
from rankdrift.counts.counts import SPLITS, Counts, merge
from rankdrift.counts.file import read_metadata
from rankdrift.diagnosis.inspection import inspect
from rankdrift.harvesting import counting as harvesting
from rankdrift.harvesting.by_day import KnownFiles, harvest_by_day
from rankdrift.harvesting.counting import harvest
from rankdrift.log.engines.duckdb.days import DuckdbDays
from rankdrift.log.engines.duckdb.engine import DuckdbEngine
from rankdrift.log.log import read_log

UTC = datetime.UTC


def many_days(seed, days=4):
    """A log whose searches are spread over some days, its rows in order of time."""
    rows = random_log(seed, searches=200)
    first = datetime.datetime(2024, 2, 26, 1, tzinfo=UTC)
    moments = [first + i * datetime.timedelta(days=days) / len(rows) for i in range(len(rows))]
    return [{**row, "on": moment} for row, moment in zip(rows, moments, strict=True)]


def by_day(engine, source, folder, **options):
    """(the files, those counted now, the merged counts, which are those of the whole log)."""
    log = engine.read(source, **options)
    files, counted = days_counted(log, folder)
    merged = merge(map(Counts.load, files))
    if engine.name != "spark":  # that days add up is the same there, and each harvest takes seconds
        assert merged.equals(within_days(harvest(log)))
    return files, counted, merged


def days_counted(log, folder):
    """(the files, those counted now)."""
    counted = []
    files = harvest_by_day(
        log, folder, each=lambda day, path, done: counted.extend([] if done else [path.stem])
    )
    return files, counted


def to_day(row):
    return row["on"].date().isoformat() if row["on"] else "undated"


DAY_TYPES = {
    "date": (pa.date32(), datetime.datetime.date),
    "timestamp": (pa.timestamp("us"), lambda m: m.replace(tzinfo=None)),
    "instant": (pa.timestamp("ms", "UTC"), lambda m: m),
    "text": (pa.string(), lambda m: m.isoformat()),
    "epoch": (pa.int64(), lambda m: int(m.timestamp() * 1000)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "kind", "time_zone"),
    [
        ("one", "date", None),
        ("one", "instant", "America/New_York"),
        ("per day", "timestamp", None),
        ("per day", "timestamp", "America/New_York"),
        ("per day", "text", None),
        ("mixed", "epoch", "Asia/Tokyo"),
    ],
)
def test_days_merged_are_the_whole(engine, tmp_path, files, kind, time_zone):
    type_, change = DAY_TYPES[kind]
    days = 1 if engine.name == "spark" else 4  # begun at night; to Spark each takes seconds
    rows = with_holes(many_days(1, days), 1, 0.03, ["on", "device", "rank", "query"])
    for i, row in enumerate(rows):
        name = {"one": "all", "per day": to_day(row), "mixed": i % 3}[files]
        row["file"] = str(name)
    parts = {}
    for row in rows:
        row["on"] = row["on"] and change(row["on"])
        parts.setdefault(row.pop("file"), []).append(row)
    for name, part in parts.items():
        write_parquet(tmp_path / "log" / f"{name}.parquet", part, on=type_)
    options = {"day": "on", "segment": "device", "time_zone": time_zone}
    written, counted, merged = by_day(engine, tmp_path / "log", tmp_path / "counts", **options)
    expected = tally(rows, **options)
    assert_same(merged, expected)
    assert len(written) == len(counted) > days + 1
    assert written[0].stem == "undated"
    assert {path.stem for path in written} >= expected.days


def test_days_of_one_file_of_text(engine, tmp_path):
    rows = with_holes(many_days(2, days=2), 2, 0.03, ["on", "device"])
    rows = [{**row, "on": row["on"] and str(row["on"])} for row in rows]
    path = tmp_path / "log.csv"
    lines = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    _, _, merged = by_day(engine, path, tmp_path / "counts", day="on", segment="device")
    assert_same(merged, tally(rows, day="on", segment="device"))


def test_days_of_searches_with_repeats(engine, tmp_path):
    rows = many_days(3, days=2)
    rows += [{**row, "rank": row["rank"] + 6} for row in rows[::11]] + rows[::13]
    path = write_parquet(tmp_path / "log.parquet", rows, on=pa.timestamp("us", "UTC"))
    options = {"day": "on", "search": "sid", "dedupe": True}
    assert_same(by_day(engine, path, tmp_path / "counts", **options)[2], tally(rows, **options))


def test_days_of_lists(engine, tmp_path):
    searches = {}
    for row in many_days(4, days=2):
        found = searches.setdefault(row["sid"], {**row, "results": [], "picked": []})
        found["results"].append(row["doc"])
        found["picked"] += [row["doc"]] * row["click"] + ["stray"] * (row["price"] == 12.0)
    rows = list(searches.values())
    long, outside = from_lists(rows, "results", "picked")
    types = {"results": pa.list_(pa.string()), "picked": pa.list_(pa.string())}
    path = write_parquet(tmp_path / "log.parquet", rows, on=pa.timestamp("us", "UTC"), **types)
    merged = by_day(engine, path, tmp_path / "counts", day="on", shown="results", clicked="picked")[
        2
    ]
    assert_same(merged, tally(long, day="on", outside=outside))


@pytest.mark.parametrize("files", ["one", "per day", "mixed"])
def test_a_click_after_midnight_belongs_to_what_was_shown_before(engine, tmp_path, files):
    rows = []
    for row in many_days(5, days=2):
        click = row.pop("click")
        rows.append({**row, "kind": "impression"})
        if click:  # up to eight hours later
            later = row["on"] + datetime.timedelta(hours=row["rank"] + 2)
            rows.append({**row, "kind": "click", "on": later})
    crossing = [r for r in rows if r["kind"] == "click" and r["on"].hour < 3]
    assert crossing
    parts = {}
    for i, row in enumerate(rows):
        name = {"one": "all", "per day": to_day(row), "mixed": i % 3}[files]
        parts.setdefault(name, []).append(row)
    for name, part in parts.items():
        write_parquet(tmp_path / "log" / f"{name}.parquet", part, on=pa.timestamp("us", "UTC"))
    long, outside = from_events(rows, search="sid", event="kind")
    options = {"day": "on", "search": "sid"}
    merged = by_day(engine, tmp_path / "log", tmp_path / "counts", event="kind", **options)[2]
    assert_same(merged, tally(long, outside=outside, **options))


@pytest.mark.parametrize("files", ["one", "mixed"])
def test_a_day_of_clicks_alone_is_an_empty_file_with_its_funnel(engine, tmp_path, files):
    """Between two days with results lies one with nothing but clicks after midnight."""
    rows = []
    for row in random_log(13, searches=60):
        moment = datetime.datetime(2024, 5, 1 if int(row["sid"][1:]) % 2 else 3, 23, tzinfo=UTC)
        click = row.pop("click")
        rows.append({**row, "kind": "impression", "on": moment})
        if click:
            rows.append({**row, "kind": "click", "on": moment + datetime.timedelta(hours=2)})
    for i in range(1 if files == "one" else 2):
        part = rows[i :: 1 if files == "one" else 2]
        write_parquet(tmp_path / "log" / f"{i}.parquet", part, on=pa.timestamp("us", "UTC"))
    options = {"event": "kind", "day": "on", "search": "sid"}
    written, _, merged = by_day(engine, tmp_path / "log", tmp_path / "counts", **options)
    assert [path.stem for path in written] == [f"2024-05-0{day}" for day in (1, 2, 3, 4)]
    long, outside = from_events(rows, search="sid", event="kind")
    assert_same(merged, tally(long, outside=outside, day="on", search="sid"))
    alone = Counts.load(written[1])
    clicks = sum(row["kind"] == "click" and row["on"].day == 2 for row in rows)
    assert alone.n_pairs == 0 and alone.funnel.rows == clicks > 0
    assert alone.funnel.dropped["click_event"].rows == clicks


def test_a_day_of_searches_that_found_nothing_is_an_empty_file(engine, tmp_path):
    searches = [
        {
            "query": "q",
            "on": datetime.date(2024, 5, 1 + i % 3),
            "results": [] if i % 3 == 1 else ["a", "b"] if i % 2 else ["b", "a"],
            "picked": [] if i % 3 == 1 else ["a"],
        }
        for i in range(12)
    ]
    types = {"results": pa.list_(pa.string()), "picked": pa.list_(pa.string())}
    path = write_parquet(tmp_path / "log.parquet", searches, **types)
    options = {"shown": "results", "clicked": "picked", "day": "on"}
    written, _, merged = by_day(engine, path, tmp_path / "counts", **options)
    assert [Counts.load(each).funnel.rows for each in written] == [8, 0, 8]
    assert merged.funnel.rows == 16


@pytest.mark.parametrize("layout", ["events", "list"])
def test_a_log_that_shows_nothing_on_any_day_is_refused(duckdb_engine, tmp_path, layout):
    rows = [{"query": "q", "on": datetime.date(2024, 5, 1 + i)} for i in range(3)]
    if layout == "events":
        more = {"sid": "s", "doc": "d", "rank": 1, "kind": "view"}
        options, said = {"event": "kind", "search": "sid"}, "never 'impression'. It is 'view' (3)"
        types = {}
    else:
        more = {"results": [], "picked": []}
        options, said = {"shown": "results", "clicked": "picked"}, "None of the 3 rows"
        types = dict.fromkeys(more, pa.list_(pa.string()))
    path = write_parquet(tmp_path / "log.parquet", [{**row, **more} for row in rows], **types)
    log = duckdb_engine.read(path, day="on", **options)
    for refused in (lambda: harvest(log), lambda: harvest_by_day(log, tmp_path / "counts")):
        with pytest.raises(BadLog, match=re.escape(said)):
            refused()
    assert not list(tmp_path.glob("counts/*.parquet"))


# -- what changed, and nothing else ----------------------------------------------------------------


@pytest.fixture
def day_files(tmp_path):
    parts = {}
    for row in many_days(6, days=2):
        parts.setdefault(to_day(row), []).append({**row, "on": row["on"].date()})
    for name, part in parts.items():
        write_parquet(tmp_path / "log" / f"{name}.parquet", part)
    return tmp_path / "log"


def test_days_that_did_not_change_are_left_alone(engine, tmp_path, day_files):
    counts = tmp_path / "counts"
    days = sorted(path.stem for path in day_files.iterdir())
    files, counted, _ = by_day(engine, day_files, counts, day="on")
    assert counted == days
    before = {path: path.stat().st_mtime_ns for path in files}

    def again():
        return days_counted(engine.read(day_files, day="on"), counts)[1]

    assert again() == []
    assert {path: path.stat().st_mtime_ns for path in files} == before
    # a file that changes, a counts file that is damaged, one that is gone
    os.utime(day_files / f"{days[1]}.parquet", (1, 1))
    assert again() == [days[1]]
    (counts / f"{days[0]}.parquet").write_bytes(b"PAR1")
    (counts / f"{days[2]}.parquet").unlink()
    assert again() == [days[0], days[2]]
    # another day comes
    more = [{**row, "on": datetime.date(2024, 5, 1)} for row in random_log(7)]
    write_parquet(day_files / "more.parquet", more)
    assert by_day(engine, day_files, counts, day="on")[1] == ["2024-05-01"]


def test_a_file_that_is_known_is_not_opened_and_damage_is_found_when_it_is_read(
    duckdb_engine, tmp_path, day_files
):
    counts = tmp_path / "counts"

    def again():
        counted = []
        log = duckdb_engine.read(day_files, day="on")
        harvest_by_day(
            log, counts, remember=True, each=lambda day, _, done: done or counted.append(day.day)
        )
        return counted

    assert len(again()) > 1
    first = min(counts.glob("*.parquet"))
    whole, stat = first.read_bytes(), first.stat()
    at = whole.index(b'"digest": "') + len(b'"digest": "')
    damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    first.write_bytes(damaged)
    os.utime(first, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert again() == []  # its size and its time are those of the file that was counted
    with pytest.raises(BadCounts, match="changed since it was written"):
        Counts.load(first)
    os.utime(first)  # anything else, and it is opened
    assert again() == [first.stem]
    assert first.read_bytes() == whole
    for odd in (b"", b"[1]", b'{"%s": 3}' % first.name.encode(), b"\xff"):
        (counts / KnownFiles.NAME).write_bytes(odd)
        assert again() == []


@pytest.mark.parametrize("options", [{"max_rank": 4}, {"where": "device = 'web'"}], ids=str)
def test_other_options_count_again(duckdb_engine, tmp_path, day_files, options):
    by_day(duckdb_engine, day_files, tmp_path / "counts", day="on")
    counted = by_day(duckdb_engine, day_files, tmp_path / "counts", day="on", **options)[1]
    assert len(counted) == 3


def test_a_moved_folder_is_the_same_input(duckdb_engine, tmp_path, day_files):
    by_day(duckdb_engine, day_files, tmp_path / "counts", day="on")
    moved = day_files.rename(tmp_path / "moved")
    assert by_day(duckdb_engine, moved, tmp_path / "counts", day="on")[1] == []


def test_days_of_a_table(duckdb_engine, tmp_path):
    rows = with_holes(many_days(8, days=2), 8, 0.03, ["on"])
    path = write_parquet(tmp_path / "log.parquet", rows, on=pa.timestamp("us"))
    with duckdb.connect(tmp_path / "log.duckdb") as con:
        con.execute(f"CREATE TABLE log AS FROM read_parquet('{path}')")
    merged = by_day(duckdb_engine, tmp_path / "log.duckdb", tmp_path / "counts", day="on")[2]
    assert_same(merged, tally(rows, day="on"))


def test_rows_that_a_killed_writer_left_beside_a_database_are_noticed(tmp_path):
    path, counts = tmp_path / "log.duckdb", tmp_path / "counts"

    def write(more, sql):
        with duckdb.connect(path) as con:
            con.execute(f"PRAGMA disable_checkpoint_on_shutdown; {more}; {sql}")

    def again():
        done = []
        harvest_by_day(read_log(path), counts, each=lambda day, path, skipped: done.append(skipped))
        return done

    rows = (
        "SELECT 'q' AS query, doc, (doc + s) % 5 + 1 AS rank, doc % 2 AS click,"
        " DATE '2024-05-01' AS day FROM range(5) AS d(doc), range(4) AS times(s)"
    )
    write("SELECT 1", f"CREATE TABLE log AS {rows}; CHECKPOINT")
    assert again() == [False] and again() == [True]
    before = path.stat()
    write("SET wal_autocheckpoint = '1TB'", f"INSERT INTO log {rows}")
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert again() == [False] and again() == [True]
    assert Counts.load(counts / "2024-05-01.parquet").funnel.rows == 40


def test_days_of_folders_whose_columns_differ(duckdb_engine, tmp_path):
    rows = []
    for i, row in enumerate(many_days(9, days=2)):
        doc = str(int(row["doc"], 36) % 10)
        rows.append({**row, "on": row["on"].date(), "doc": doc, "n": i})
    for day in {row["on"] for row in rows}:
        part = [{k: v for k, v in row.items() if k != "on"} for row in rows if row["on"] == day]
        types = {}
        if day.day == 26:  # numbers, another order, and a column less
            part = [dict(reversed([*row.items()][:-1])) | {"doc": int(row["doc"])} for row in part]
            types = {"doc": pa.int64(), "rank": pa.int64()}
        write_parquet(tmp_path / "log" / f"on={day}" / "x.parquet", part, n=pa.int64(), **types)
    merged = by_day(duckdb_engine, tmp_path / "log", tmp_path / "counts", day="on")[2]
    assert_same(merged, tally(rows, day="on"))


@pytest.mark.parametrize(
    ("format", "type_", "odd"),
    [
        ("duckdb", "TIMESTAMP", "0001-01-01"),
        ("parquet", "TIMESTAMP", "9999-12-31"),
        ("parquet", "TIMESTAMP", "infinity"),
        ("parquet", "TIMESTAMPTZ", "10000-01-01"),
        ("parquet", "TIMESTAMPTZ", "0044-03-15 (BC)"),
        ("duckdb", "VARCHAR", "1899-12-31"),
        ("parquet", "VARCHAR", "infinity"),
        ("parquet", "DATE", "-infinity"),
        ("parquet", "DATE", "20000-01-01"),
        ("json", "DATE", "infinity"),
    ],
)
def test_times_that_stand_for_none_have_no_day(duckdb_engine, tmp_path, format, type_, odd):
    """Also where the files' statistics say that no value is missing."""
    zone = "Pacific/Kiritimati" if type_ == "TIMESTAMPTZ" else None
    with duckdb.connect(tmp_path / "log.duckdb") as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute(
            "CREATE TABLE log AS SELECT 'q' AS query, 'd' AS doc, i AS rank, i % 2 AS click,"
            f" CAST(CASE WHEN i < 4 THEN '2024-02-29' ELSE '{odd}' END AS {type_}) AS day"
            " FROM range(1, 7) AS t(i)"
        )
        source = tmp_path / f"log.{format}"
        if format != "duckdb":
            con.execute(f"COPY log TO '{source}' (FORMAT {format})")
    files, _, merged = by_day(duckdb_engine, source, tmp_path / "counts", time_zone=zone)
    inspect(duckdb_engine.read(source, time_zone=zone))
    assert [path.stem for path in files] == ["undated", "2024-02-29"]
    assert merged.funnel.dropped["no_day"].rows == merged.funnel.used.rows == 3


class Told:
    """Progress, as far as it tells which stretch of the whole is being read."""

    def __init__(self):
        self.stretches = []

    def __call__(self, step, fraction):
        assert 0 <= fraction <= 1

    def piece(self, first, last):
        self.stretches.append((first, last))


@pytest.mark.parametrize(
    ("many", "counted_after"), [(0, [2, 3, 4]), (1_500, [3, 4]), (harvesting.MANY, [4])]
)
def test_a_large_log_is_read_day_by_day_to_the_same_counts(
    tmp_path, monkeypatch, many, counted_after
):
    """Files keep days apart; rows of one search have no day. So much is held before it is counted:
    one day, two days, all days."""
    for day in (1, 2, 3):
        duckdb.sql(f"""
            COPY (
                SELECT s AS search, 'q' || (s % 7) AS query, 'd' || ((r * 7 + s) % 30) AS doc,
                    r AS rank, CAST((r * 13 + s * 7 + {day}) % (4 + r) = 0 AS INTEGER) AS click,
                    CASE WHEN s > 1 THEN DATE '2024-05-0{day}' END AS day,
                    (r * s) % 11 / 4 AS score, 'v' || (s % 2) AS ranker, s % 5 AS user,
                    r % 3 = 0 AS purchase
                FROM range(1, 120) AS a(s), range(1, 21) AS b(r)
            ) TO '{tmp_path}/{day}.parquet'""")
    whole = harvest(read_log(str(tmp_path)))
    pieces = []
    monkeypatch.setattr(harvesting, "LARGE", 1)
    monkeypatch.setattr(harvesting, "LARGE_DAY", 1)
    days = DuckdbDays.part
    monkeypatch.setattr(DuckdbDays, "part", lambda *of: pieces.append(of[1].day) or days(*of))
    monkeypatch.setattr(harvesting, "MANY", many)
    wholes = []
    whole_of = DuckdbEngine.run_whole
    monkeypatch.setattr(
        DuckdbEngine, "run_whole", lambda *of: wholes.append(len(pieces)) or whole_of(*of)
    )
    told = Told()
    counts = harvest(read_log(str(tmp_path)), progress=told)
    assert told.stretches[0][0] == 0.0 and told.stretches[-1][1] == 1.0
    assert all(first < last for first, last in told.stretches)
    assert [last for _, last in told.stretches[:-1]] == [first for first, _ in told.stretches[1:]]
    assert wholes == counted_after
    assert pieces == ["", "2024-05-01", "2024-05-02", "2024-05-03"]
    on_request = {SPLITS.index("trust")}
    assert set(whole.splits.split) == set(range(len(SPLITS))) - on_request
    if len(counted_after) == 1:  # all days at once
        assert counts.equals(whole)
    assert within_days(counts).equals(within_days(whole))
    assert counts.funnel == whole.funnel and counts.sources == whole.sources


def test_a_day_in_an_older_format_is_counted_again(duckdb_engine, tmp_path):
    """It holds less than this rankdrift counts."""
    log = write_parquet(tmp_path / "log.parquet", random_log(12))
    files, *_ = by_day(duckdb_engine, log, tmp_path / "counts", day="on")
    before = files[0].read_bytes()
    meta = json.dumps({**read_metadata(files[0]), "format": 1})
    with duckdb.connect() as con:
        con.execute(f"""COPY (FROM read_parquet('{files[0]}') WHERE kind <> 'held') TO '{files[0]}'
            (FORMAT parquet, KV_METADATA {{rankdrift: '{meta.replace("'", "''")}'}})""")
    assert files[0].read_bytes() != before
    _, counted, _ = by_day(duckdb_engine, log, tmp_path / "counts", day="on")
    assert counted == [files[0].stem]
    assert files[0].read_bytes() == before
