import gzip
import json
import os
from pathlib import Path

import pytest

from rankdrift.core.errors import BadLog, BadOption
from rankdrift.log.log import read_log
from rankdrift.log.sources import Files, Stream, Table, find


@pytest.fixture
def folder(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.PARQUET", "sub/_tmp/d.parquet", ".e.parquet",
                 "readme.txt", "_SUCCESS"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names(files):
    return list(files.names.values())


def test_nothing_is_fetched_to_read_what_is_elsewhere(tmp_path, monkeypatch):
    """Where no extension is installed, none is; the message says what to do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadLog, match=r"fetches no program by itself\. Copy the files"):
        read_log("hf://d/x.json")
    assert not list(tmp_path.rglob("*.duckdb_extension*"))


@pytest.mark.parametrize("scheme", ["ftp", "hdfs", "nonsense"])
def test_addresses_that_nobody_reads_are_no_damaged_files(scheme):
    with pytest.raises(BadLog, match=rf"nothing here reads {scheme}://.* s3://, .*Copy") as error:
        read_log(f"{scheme}://me:word@host/x.parquet")
    assert "damaged" not in str(error.value) and "word" not in str(error.value)


def test_packed_files_without_a_name_may_be_damaged(tmp_path):
    packed = gzip.compress(b"q\t1\n" * 200, mtime=0)
    (tmp_path / "log").write_bytes(packed[:10] + bytes(20) + packed[30:])
    with pytest.raises(BadLog, match="Cannot tell the format"):
        find(tmp_path / "log")


def test_an_address_of_a_file_here_is_its_path(tmp_path):
    (tmp_path / "a b.csv").write_text("x\n")
    assert find(f"file://{tmp_path}/a%20b.csv").paths == (str(tmp_path / "a b.csv"),)


def test_a_folder_is_its_log_files_in_order_without_hidden_ones(folder):
    found = find(folder)
    assert names(found) == ["a.parquet", "b.parquet", "sub/c.PARQUET"]
    assert found.format == "parquet"


def test_a_format_given_takes_every_file(folder):
    found = find(folder, format="csv")
    assert names(found) == ["a.parquet", "b.parquet", "readme.txt", "sub/c.PARQUET"]
    assert found.format == "csv"


def test_of_a_known_format_text_is_read_unless_it_lies_beside_other_files(tmp_path):
    for name in ("part-0", "sessions.txt"):
        (tmp_path / name).write_text("1\t0\tQ\t5\t3\t10\t11\n")
    assert names(find(tmp_path, every=True)) == ["part-0", "sessions.txt"]
    for name in ("more.log", "events.jsonl"):
        (tmp_path / name).write_text('{"event": "ranking"}\n')
    (tmp_path / "report.html").write_text("<!doctype html>")
    assert names(find(tmp_path, every=True)) == ["events.jsonl", "more.log"]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("x.parquet", "parquet"), ("x.pq", "parquet"), ("x.snappy.parquet", "parquet"),
        ("x.csv", "csv"), ("x.tsv.gz", "csv"), ("X.CSV.GZ", "csv"),
        ("x.jsonl", "json"), ("x.ndjson.zst", "json"), ("x.json", "json"),
    ],
)  # fmt: skip
def test_formats_by_name(tmp_path, name, format):
    packed = name.lower().endswith(".gz")
    (tmp_path / name).write_bytes(gzip.compress(b"x") if packed else b"x")
    assert find(tmp_path / name).format == format


def test_names_that_say_otherwise_than_what_is_in_the_file(tmp_path):
    for name in ("a.csv", "a.parquet"):
        (tmp_path / name).write_text('{"query": "tea"}\n')
        assert find(tmp_path / name).format == "json"
    (tmp_path / "b.json").write_bytes(gzip.compress(b"{}"))
    (tmp_path / "c.json.gz").write_bytes(b"{}")
    with pytest.raises(BadLog, match=r"b.json' is compressed .* does not end in .gz.* Add that"):
        find(tmp_path / "b.json")
    with pytest.raises(BadLog, match=r"c.json.gz' is not compressed .* does end in .gz.* off"):
        find(tmp_path / "c.json.gz")


def test_globs_lists_and_repeats(folder):
    assert names(find(str(folder / "*.parquet"))) == ["a.parquet", "b.parquet"]
    assert len(find(str(folder / "**" / "*.parquet")).paths) >= 2
    several = [folder / "b.parquet", str(folder / "*.parquet"), folder / "sub"]
    assert names(find(several)) == ["b.parquet", "a.parquet", "sub/c.PARQUET"]


def test_a_name_with_brackets_is_a_name_first(folder):
    (folder / "a[bc].parquet").write_text("x")
    (folder / "ab.parquet").write_text("x")
    assert names(find(folder / "a[bc].parquet")) == ["a[bc].parquet"]


def test_a_path_from_home(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert names(find("~/a.parquet")) == ["a.parquet"]


def test_addresses_are_left_to_the_engine():
    assert find("s3://bucket/*.parquet").paths == ("s3://bucket/*.parquet",)


def test_a_database_is_a_table(tmp_path):
    (tmp_path / "x.duckdb").write_text("x")
    assert find(tmp_path / "x.duckdb", table="t") == Table(str(tmp_path / "x.duckdb"), "t")
    (tmp_path / "y.db").write_text("x")
    with pytest.raises(BadLog, match="one DuckDB file"):
        find([tmp_path / "x.duckdb", tmp_path / "y.db"])


def test_a_table_in_memory():
    class Arrow:
        def __arrow_c_stream__(self):
            raise AssertionError("not read yet")

    table = Arrow()
    assert find(table) == Stream(table)  # for all we know


def test_files_whose_names_do_not_tell_are_known_by_how_they_begin(folder):
    (folder / "dump").write_text('  {"a": 1}')
    (folder / "packed.gz").write_bytes(gzip.compress(b"[{}]"))
    (folder / "table").write_bytes(b"PAR1...")
    kinds = {"dump": "json", "packed.gz": "json", "table": "parquet", "readme.txt": "text"}
    assert {name: find(folder / name).format for name in kinds} == kinds
    with pytest.raises(BadLog, match=r"Cannot tell the format of .*readme.txt.*rankdrift formats"):
        read_log(folder / "readme.txt")


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        ("a.parquett", {}, BadLog, "No file 'a.parquett'. Did you mean 'a.parquet'?"),
        ("*.csv", {}, BadLog, "No file '*.csv'."),
        ("no/a.parquet", {}, BadLog, "folder does not exist"),
        ("sub/_tmp/empty", {}, BadLog, "No log files in the folder"),
        ([], {}, BadOption, "No log was named"),
        (7, {}, BadOption, "from a int"),
        (b"a.parquet", {}, BadOption, "from a bytes"),
        ("a.parquet", {"format": "cvs"}, BadOption, "Did you mean 'csv'?"),
        ("a.parquet", {"table": "t"}, BadOption, "--table"),
    ],
    ids=str,
)
def test_what_is_not_there_or_not_a_source(folder, monkeypatch, source, options, error, words):
    (folder / "sub/_tmp/empty").mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(error) as raised:
        find(source, **options)
    assert words in str(raised.value)


def test_mixed_formats_are_refused_with_an_example_of_each(folder):
    (folder / "more.csv").write_text("x")
    with pytest.raises(BadLog, match=r"csv \(.*more\.csv\), parquet \(.*a\.parquet\)"):
        find(folder)


def test_the_truth_of_a_made_up_log_is_no_part_of_it(folder):
    truth = folder / "truth.json"
    truth.write_text('{\n "propensities": {},\n "options": {}\n}\n')
    expected = ["a.parquet", "b.parquet", "sub/c.PARQUET"]
    assert names(find(folder)) == expected
    assert names(find(str(folder / "*.[pj]*"))) == expected[:2]
    assert names(find([truth, *sorted(folder.glob("?.parquet"))])) == expected[:2]
    assert names(find(truth)) == ["truth.json"]  # to be told what it is


def test_rows_in_a_file_called_truth_are_not_lost(tmp_path):
    for name in ("rows.json", "truth.json"):
        (tmp_path / name).write_text('{"query": "lamp", "doc": 1, "rank": 1, "click": 1}\n')
    assert names(find(tmp_path)) == ["rows.json", "truth.json"]


def test_the_fingerprint_follows_the_files_not_where_they_are(folder):
    files = find(folder)
    before = files.fingerprint()
    assert files.fingerprint(files.paths) == before
    assert files.fingerprint(files.paths[:1]) != before
    moved = folder.rename(folder.with_name("moved"))
    assert find(moved).fingerprint() == before
    os.utime(moved / "b.parquet", (1, 1))
    assert find(moved).fingerprint() != before
    a_only = find(moved).paths[:1]
    assert find(moved).fingerprint(a_only) == Files(find(moved).paths, "x").fingerprint(a_only)


def test_a_longer_file_has_another_fingerprint(tmp_path):
    path = Path(tmp_path, "x.csv")
    path.write_text("a")
    os.utime(path, (1, 1))
    before = find(path).fingerprint()
    path.write_text("ab")
    os.utime(path, (1, 1))
    assert find(path).fingerprint() != before


def test_the_fingerprint_of_a_file_that_went_away(tmp_path):
    (tmp_path / "x.csv").write_text("x")
    files = find(tmp_path)
    (tmp_path / "x.csv").unlink()
    with pytest.raises(BadLog, match=r"x\.csv"):
        files.fingerprint()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty, of 0 bytes"),
        ("a.parquet", b"", "is empty, of 0 bytes"),
        ("a.csv", "query,doc\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
        ("a.xlsx", b"PK", "Save it as CSV"),
    ],
)
def test_what_newcomers_have_is_refused_with_what_to_do(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadLog, match=words):
        find(path)


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_json_may_be_an_array(ending, tmp_path):
    rows = [{"query": "q", "doc": "d", "rank": n, "click": 1} for n in (1, 2)]
    path, lines = tmp_path / f"a.{ending}", "\n".join(map(json.dumps, rows))
    for text, array in ((f"\n {json.dumps(rows)}", True), (lines, False)):
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
        assert find(path).array is array
        log = read_log(path)
        assert log.engine.query(f"SELECT sum(rank) FROM {log.planner().source}") == [(3,)]
