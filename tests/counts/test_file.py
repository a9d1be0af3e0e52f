"""Counts as a table and as a file, and files that are something else."""

import json
import os
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace

import duckdb
import pytest
from support.counts_example import Pairs, by_device, example, with_comparisons
from support.curve_example import hand

from rankdrift.core.errors import BadCounts, CannotWrite, Remark
from rankdrift.counts.counts import ByRank, Counts, Overflow, RankPairs
from rankdrift.counts.file import metadata, read_metadata
from rankdrift.counts.funnel import Dropped, Funnel, Used

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
    stored = json.loads(value)
    assert len(stored.pop("digest")) == 32 and stored.pop("sealed")
    assert stored == {
        "format": 2, "version": "0.1.0", "options": {}, "buckets": 64, "max_rank": 500,
        "max_shown": 4, "days": [], "sources": [], "segment_columns": ["device"],
    }  # fmt: skip


def test_the_metadata_can_be_read_alone(tmp_path):
    counts = example(sources=("a", "b"), days=("2024-02-29",), options={"where": "x > 1"})
    counts.save(tmp_path / "counts")
    stored = read_metadata(tmp_path / "counts")
    assert len(stored.pop("digest")) == 32 and stored.pop("sealed")
    assert stored == json.loads(json.dumps(metadata(counts)))
    (tmp_path / "counts").write_bytes((tmp_path / "counts").read_bytes()[:-9])
    with pytest.raises(BadCounts, match="cannot be read as a Parquet file"):
        read_metadata(tmp_path / "counts")


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
        ('{"format": 5, "version": "9.1"}', "format 5, written by rankdrift 9.1.*Upgrade"),
        ('{"format": 2}', "no buckets"),
    ],
)
def test_a_parquet_file_of_another_kind_is_refused(tmp_path, con, stored, words):
    meta = f", KV_METADATA {{rankdrift: '{stored}'}}" if stored else ""
    con.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path}/other' (FORMAT parquet{meta})")
    with pytest.raises(BadCounts, match=f"other: .*{words}"):
        Counts.load(tmp_path / "other")


@pytest.mark.parametrize(("key", "what"), [("judgments", "judgments"), ("stamp", "appearances")])
def test_what_judge_writes_is_no_counts(tmp_path, con, key, what):
    marked = f"KV_METADATA {{rankdrift_{key}: '{{}}'}}"
    con.execute(f"COPY (SELECT 1) TO '{tmp_path}/j' (FORMAT parquet, {marked})")
    with pytest.raises(BadCounts, match=f"holds {what}, not counts"):
        Counts.load(tmp_path / "j")


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
