"""Counts as a table and as a file, and files that are something else."""

import json
import os
import re
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace

import duckdb
import pytest
from support.counts_example import META, Pairs, by_device, example, with_comparisons
from support.curve_example import hand

from rankdrift.core.errors import BadCounts, CannotWrite, Remark
from rankdrift.counts.counts import ByRank, Counts, Overflow, RankPairs
from rankdrift.counts.file import metadata, read_metadata
from rankdrift.counts.funnel import Dropped, Funnel, Used
from rankdrift.counts.reading import read_table

# The file


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection


AWKWARD = 'it\'s "q" é \\ ; -- {} %s'


def test_saved_and_loaded_with_awkward_names(tmp_path):
    counts = replace(
        by_device(),
        segment_columns=(AWKWARD,),
        segments=(("",), (AWKWARD,)),
        pairs=Pairs([0, 1], [5, 3], [[5, 8, 19], [6, 15, 0]], [1, 2]),
        by_rank=ByRank([0], [1], [1], [1]),
        options={AWKWARD: [AWKWARD, None, 1.5, True]},
        sources=(AWKWARD,),
        days=("2024-02-29",),
    )
    path = tmp_path / "n=5" / "[x] *? it's é" / "counts"
    counts.save(path)
    loaded = Counts.load(str(path))
    assert loaded.equals(counts)
    assert (loaded.sources, loaded.version) == (counts.sources, counts.version)
    assert os.listdir(path.parent) == ["counts"]


def test_the_file_is_the_documented_table(tmp_path, con):
    by_device(
        rank_pairs=RankPairs([0], [1], [2], [3], [True], [7]),
        overflow=Overflow([0, 0], [2, 3], [True, True], first=[0, 1], pairs=[1, 1], clicks=[1, 0]),
        funnel=Funnel(13, 6, {"one_rank": Dropped(1, 1, 1)}, Used(12, 5, 4), {"null_click": 1}),
    ).save(tmp_path / "counts")
    file = f"'{tmp_path}/counts'"
    columns = con.sql(f"DESCRIBE FROM read_parquet({file})").fetchall()
    assert [column[:2] for column in columns] == [
        ("kind", "VARCHAR"), ("segment_device", "VARCHAR"), ("bucket", "INTEGER"),
        ("drift", "INTEGER"), ("shown", "VARCHAR"), ("single", "BOOLEAN"), ("rank", "INTEGER"),
        ("other", "INTEGER"), ("n", "BIGINT"), ("clicks", "BIGINT"), ("pairs", "BIGINT"),
    ]  # fmt: skip
    assert con.sql(f"FROM read_parquet({file})").fetchall() == [
        ("pair", None, 3, 0, "6 15", None, None, None, 2, None, None),
        ("pair", "web", 5, 0, "5 8 19", None, None, None, 1, None, None),
        ("comparison", "web", 1, None, None, True, 2, 3, 7, None, None),
        ("held", "web", None, None, None, True, 2, None, 0, 1, 1),
        ("held", "web", None, None, None, True, 3, None, 1, 0, 1),
        ("rank", "web", None, None, None, None, 1, None, 30, 9, None),
        ("rank", "web", None, None, None, None, 3, None, 10, 2, None),
        ("funnel", None, None, None, "input", None, None, None, 13, 6, None),
        ("funnel", None, None, None, "one_rank", None, None, None, 1, 1, 1),
        ("funnel", None, None, None, "used", None, None, None, 12, 5, 4),
        ("note", None, None, None, "null_click", None, None, None, 1, None, None),
    ]
    [(key, value)] = con.sql(f"SELECT key, value FROM parquet_kv_metadata({file})").fetchall()
    assert key == b"rankdrift"
    assert json.loads(value) == {
        "format": 2, "version": "0.1.0", "options": {}, "buckets": 64, "max_rank": 500,
        "max_shown": 4, "days": [], "sources": [], "segment_columns": ["device"],
    }  # fmt: skip


def test_the_metadata_can_be_read_alone(tmp_path):
    counts = example(sources=("a", "b"), days=("2024-02-29",), options={"where": "x > 1"})
    counts.save(tmp_path / "counts")
    assert read_metadata(tmp_path / "counts") == json.loads(json.dumps(metadata(counts)))
    (tmp_path / "counts").write_bytes((tmp_path / "counts").read_bytes()[:-9])
    with pytest.raises(BadCounts, match="cannot be read as a Parquet file"):
        read_metadata(tmp_path / "counts")


def test_a_table_of_text_in_any_order_is_read(tmp_path, con):
    counts = by_device()
    counts.save(tmp_path / "counts.parquet")
    file = f"'{tmp_path}/counts.parquet'"
    con.execute(f"""COPY (
        SELECT * REPLACE (n - 1 AS n, clicks - 1 AS clicks, pairs - 1 AS pairs) FROM {file}
        UNION ALL
        SELECT * REPLACE (1 AS n, 1 + 0 * clicks AS clicks, 1 + 0 * pairs AS pairs) FROM {file}
        ORDER BY random()) TO '{tmp_path}/counts.csv'""")
    csv = f"read_csv('{tmp_path}/counts.csv', all_varchar = true)"
    assert con.sql(f"SELECT typeof(n) FROM {csv} LIMIT 1").fetchall() == [("VARCHAR",)]
    assert read_table(con, csv, metadata(counts)).equals(counts)
    assert con.sql("SHOW TABLES").fetchall() == []


GOOD = [
    "pair,3,6 15,,,,2,,",
    "pair,5,5 8 19,,,,1,,",
    "comparison,1,,true,2,3,2147483648,,",
    "held,,,true,2,,2,2,2",
    "held,,,true,3,,0,0,2",
    "rank,,,,3,,10,2,",
    "funnel,,input,,,,17,6,",
    "funnel,,used,,,,17,6,5",
    "note,,null_click,,,,1,,",
]


# What columns hold when the table comes with types; by default all are text.
TYPES = {"single": "BOOLEAN"} | dict.fromkeys("bucket rank other n clicks pairs".split(), "BIGINT")


def table(con, rows, columns="kind,bucket,shown,single,rank,other,n,clicks,pairs", types=None):
    names, types = columns.split(","), types or {}
    typed = ", ".join(f"{name} {types.get(name, 'VARCHAR')}" for name in names)
    con.execute(f"CREATE OR REPLACE TEMP TABLE given ({typed})")
    con.executemany(
        f"INSERT INTO given VALUES ({', '.join('?' * len(names))})",
        [[value or None for value in row.split(",")] for row in rows],
    )
    return read_table(con, "given", META)


def test_a_good_table_is_read(con):
    counts = table(con, GOOD)
    assert counts.pairs.equals(example().pairs)
    assert counts.rank_pairs.weight.tolist() == [2**31]
    assert counts.overflow.equals(with_comparisons().overflow)
    assert counts.funnel.notes["null_click"] == 1
    assert table(con, [row.replace(",17,", ", 17.0,") for row in GOOD]).equals(counts)


WRONG = [
    ("pears,3,6 15,,,,2,,", "1 rows have an unknown kind, for example kind 'pears'"),
    (",3,6 15,,,,2,,", "an unknown kind"),
    ("pair,3,6 15,,,,,,", "no n"),
    ("pair,,6 15,,,,2,,", "no bucket"),
    ("pair,3,,,,,2,,", "no shown"),
    ("pair,3,6 15,,,,2.5,,", "something other than a whole number as n"),
    ("pair,3,6 15,,,,many,,", "something other than a whole number as n"),
    ("pair,3,6 15,,,,99999999999999999999,,", "something other than a whole number as n"),
    ("pair,x,6 15,,,,2,,", "something other than a whole number as bucket"),
    ("pair,4294967299,6 15,,,,2,,", "do not fit int32"),
    ("pair,64,6 15,,,,2,,", "a bucket outside 0 to 63"),
    ("pair,3,6-15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6  15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,0 6 15,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 15 0,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 15 x,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,x,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,6 99999999999,,,,2,,", "something other than codes 2*rank+click"),
    ("pair,3,15 6,,,,2,,", "not ascending"),
    ("pair,3,6 1003,,,,2,,", "a rank outside 1 to max_rank 500"),
    ("pair,3,6 14,,,,2,,", "no click, or one rank only"),
    ("pair,3,6 7,,,,2,,", "no click, or one rank only"),
    ("pair,3,6 6 6 6 15,,,,2,,", "1 listed pairs have more appearances than max_shown 4"),
    ("pair,3,6 15,,,,-2,,", "a negative number"),
    ("comparison,1,,,2,3,7,,", "no single"),
    ("comparison,1,,maybe,2,3,7,,", "no single"),
    ("comparison,1,,true,2,,7,,", "no other"),
    ("comparison,1,,true,2,2,7,,", "the same rank twice"),
    ("comparison,1,,true,2,3,-9,,", "a negative number"),
    ("held,,,true,,,2,2,2", "no rank"),
    ("held,,,,2,,2,2,2", "no single"),
    ("held,,,true,2,,2,,2", "no clicks"),
    ("held,,,true,2,,2,2,", "no pairs"),
    ("held,,,true,2,,3,2,2", "more pairs that have it as their first rank"),
    ("held,,,true,5,,0,0,1", "which are 2 pairs with 2 clicks"),
    ("rank,,,,,,10,2,", "no rank"),
    ("rank,,,,501,,10,2,", "a rank outside 1 to max_rank 500"),
    ("rank,,,,5,,-10,2,", "a negative number"),
    ("rank,,,,5,,1,2,", "more clicks than impressions"),
    ("funnel,,no_dog,,,,1,0,", "unknown reason 'no_dog'. Did you mean 'no_doc'?"),
    ("funnel,,no_doc,,,,1,0,", "17 rows in the log, but 1 dropped and 17 used"),
    ("funnel,,input,,,,1,0,", "18 rows in the log, but 0 dropped and 17 used"),
    ("note,,odd,,,,1,,", "unknown note 'odd'"),
    ("note,,null_click,,,,,,", "no n"),
    ("funnel,,,,,,1,0,", "no shown"),
    ("pair,3,6 15,,,,9,,", "Rows were lost or counted twice"),
]


@pytest.mark.parametrize(("row", "words"), WRONG)
def test_a_table_that_cannot_be_is_refused(con, row, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        table(con, [*GOOD, row])
    assert con.sql("SHOW TABLES").fetchall() == [("given",)]


@pytest.mark.parametrize(
    ("row", "words"),
    [(row, words) for row, words in WRONG if "whole number" not in words and "maybe" not in row],
)
def test_a_table_with_types_that_cannot_be_is_refused_alike(con, row, words):
    assert table(con, GOOD, types=TYPES).equals(table(con, GOOD))
    with pytest.raises(BadCounts, match=re.escape(words)):
        table(con, [*GOOD, row], types=TYPES)
    assert con.sql("SHOW TABLES").fetchall() == [("given",)]


@pytest.mark.parametrize("lost", range(len(GOOD) - 2))
def test_a_table_with_a_row_lost_is_refused(con, lost):
    rows = [row for i, row in enumerate(GOOD) if i != lost]
    if GOOD[lost].startswith("rank"):
        assert len(table(con, rows).by_rank) == 0  # nothing else tells of these
        return
    with pytest.raises(BadCounts, match=r"counted twice|no row 'input'"):
        table(con, rows)


def test_columns_must_be_there(con):
    rows = [",".join(row.split(",")[:-1]) for row in GOOD]
    with pytest.raises(BadCounts, match=r"no column pairs\.$"):
        table(con, rows, "kind,bucket,shown,single,rank,other,n,clicks")
    with pytest.raises(BadCounts, match=r"no column pairs\. Did you mean 'pair'\?"):
        table(con, GOOD, "kind,bucket,shown,single,rank,other,n,clicks,pair")
    with pytest.raises(BadCounts, match="has segment_os, but the segment columns are none"):
        table(con, [row + ",ios" for row in GOOD],
              "kind,bucket,shown,single,rank,other,n,clicks,pairs,segment_os")  # fmt: skip


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({}, "no buckets, max_rank, max_shown"),
        ({**META, "days": 5}, "days 5"),
        ({**META, "sources": "abc"}, "sources 'abc'"),
        ({**META, "segment_columns": [1]}, "segment_columns [1]"),
        ({**META, "options": []}, "damaged options"),
        ({**META, "max_shown": "4"}, "max_shown is '4'"),
    ],
)
def test_metadata_must_be_right(con, meta, words):
    table(con, GOOD)
    with pytest.raises(BadCounts, match=re.escape(words)):
        read_table(con, "given", meta)


# Files that are something else


def test_missing_files(tmp_path):
    with pytest.raises(BadCounts, match="none does not exist"):
        Counts.load(tmp_path / "none")
    with pytest.raises(BadCounts, match="is a directory"):
        Counts.load(tmp_path)


def test_a_pattern_is_not_a_name(tmp_path):
    example().save(tmp_path / "day1")
    with pytest.raises(BadCounts, match="does not exist"):
        Counts.load(tmp_path / "day*")


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    example().save(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    for length in (0, 3, 4, 8, 100, len(data) // 2, len(data) - 8, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(BadCounts, match=r"cannot be read as a Parquet file.*Harvest again"):
            Counts.load(tmp_path / "cut")


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (None, "was not written by rankdrift"),
        ("{}", "names no format"),
        ("[]", "names no format"),
        ('{"format": "1"}', "names no format"),
        ("{", "damaged"),
        ('{"format": 3, "version": "9.1"}', "format 3, written by rankdrift 9.1.*Upgrade"),
        ('{"format": 2}', "no buckets"),
    ],
)
def test_a_parquet_file_of_another_kind_is_refused(tmp_path, con, stored, words):
    meta = f", KV_METADATA {{rankdrift: '{stored}'}}" if stored else ""
    con.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path}/other' (FORMAT parquet{meta})")
    with pytest.raises(BadCounts, match=f"other: .*{words}"):
        Counts.load(tmp_path / "other")


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_propensities_are_no_counts(tmp_path, ending):
    path = tmp_path / f"curve{ending}"
    hand().save(path)
    with pytest.raises(BadCounts, match=r"curve.*holds propensities.*Propensities\.load"):
        Counts.load(path)


def test_other_text_is_not_taken_for_propensities(tmp_path):
    for name, text in (("log.csv", "rank,propensity,click\n1,1,0\n"), ("x.json", '{"kind": "x"}')):
        (tmp_path / name).write_text(text)
        with pytest.raises(BadCounts, match=f"{name} cannot be read as a Parquet file"):
            Counts.load(tmp_path / name)


def test_a_file_of_format_1_is_read_and_what_it_does_not_know_is_told(tmp_path, con):
    """Those did not count much-shown pairs by rank."""
    with_comparisons().save(tmp_path / "new")
    meta = json.dumps({**metadata(with_comparisons()), "format": 1})
    con.execute(f"""COPY (FROM read_parquet('{tmp_path}/new') WHERE kind <> 'held')
        TO '{tmp_path}/old' (FORMAT parquet, KV_METADATA {{rankdrift: '{meta}'}})""")
    with pytest.warns(Remark, match="The 2 pairs shown more than 4 times are not counted by rank"):
        old = Counts.load(tmp_path / "old")
    assert old.equals(with_comparisons(overflow=Overflow.empty()))
    old.save(tmp_path / "again")
    with pytest.warns(Remark, match="Harvest again"):
        assert Counts.load(tmp_path / "again").equals(old)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Counts.load(tmp_path / "new")


def test_a_counts_file_with_rows_missing_is_refused(tmp_path, con):
    example().save(tmp_path / "whole")
    meta = json.dumps(metadata(example()))
    con.execute(f"""COPY (FROM read_parquet('{tmp_path}/whole') WHERE bucket IS DISTINCT FROM 5)
        TO '{tmp_path}/some' (FORMAT parquet, KV_METADATA {{rankdrift: '{meta}'}})""")
    with pytest.raises(BadCounts, match=r"some: The funnel says 3 pairs.*but 2 pairs"):
        Counts.load(tmp_path / "some")


def test_a_full_disk_leaves_the_old_counts(tmp_path):
    example().save(tmp_path / "counts")
    before = (tmp_path / "counts").read_bytes()
    code = """
        import resource, sys
        from rankdrift.counts import Counts
        from rankdrift.core.errors import CannotWrite
        counts = Counts.load(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        try:
            counts.save(sys.argv[1])
        except CannotWrite as error:
            print(error)
        """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "counts")]
    said = subprocess.check_output(command, text=True, stderr=subprocess.STDOUT)
    assert f"Cannot write {tmp_path}/counts: " in said and "unchanged" in said
    assert "Traceback" not in said
    assert (tmp_path / "counts").read_bytes() == before
    assert os.listdir(tmp_path) == ["counts"]


def test_a_directory_is_no_place_for_counts(tmp_path):
    with pytest.raises(CannotWrite, match="Is a directory"):
        example().save(tmp_path)
