import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from rankdrift import counts as counts_module
from rankdrift.counts import UNIT, ByRank, Comparisons, Counts, merge
from rankdrift.counts import Pairs as AllPairs
from rankdrift.counts_table import metadata, read_metadata, read_table
from rankdrift.errors import BadCounts, BadOption, CannotWrite
from rankdrift.funnel import Dropped, Funnel, Used

META = {"buckets": 64, "max_rank": 500, "max_shown": 4}


def Pairs(segment, bucket, shown, pairs, drift=None):
    return AllPairs(segment, bucket, drift or [0] * len(segment), shown, pairs)


def example(**more):
    """Three pairs in buckets 3 and 5: clicked at 7 over 3 (twice); at 2 and 9, shown also at 4."""
    given = {
        "pairs": Pairs(segment=[0, 0], bucket=[5, 3], shown=[[5, 8, 19], [6, 15, 0]], pairs=[1, 2]),
        "comparisons": Comparisons.empty(),
        "by_rank": ByRank(segment=[0, 0], rank=[3, 1], impressions=[10, 30], clicks=[2, 9]),
        "funnel": Funnel(9, 4, {"no_doc": Dropped(2, 0)}, Used(7, 4, 3), {"null_click": 1}),
        "version": "0.1.0",
        **META,
    }
    return Counts(**{**given, **more})


def with_comparisons():
    return example(
        comparisons=Comparisons([0], [1], [2], [3], [False], [UNIT // 2]),
        funnel=Funnel(17, 6, {}, Used(17, 6, 5)),
    )


def by_device(**more):
    return example(
        segment_columns=("device",),
        segments=(("web",), (None,)),
        pairs=Pairs([0, 1], [5, 3], [[5, 8, 19], [6, 15, 0]], [1, 2]),
        **more,
    )


# The arrays


def test_rows_are_sorted_summed_and_never_empty():
    counts = example(
        pairs=Pairs(
            segment=[0] * 5,
            bucket=[5, 3, 5, 3, 0],
            shown=[[5, 8, 19, 0], [6, 15, 0, 0], [4, 7, 0, 0], [6, 15, 0, 0], [6, 9, 0, 0]],
            pairs=[1, 1, 1, 1, 0],
        ),
        funnel=Funnel(9, 5, {}, Used(9, 5, 4)),
    )
    assert counts.pairs.bucket.tolist() == [3, 5, 5]
    assert counts.pairs.shown.tolist() == [[6, 15, 0], [4, 7, 0], [5, 8, 19]]
    assert counts.pairs.pairs.tolist() == [2, 1, 1]
    assert counts.by_rank.rank.tolist() == [1, 3]
    assert counts.ranks.tolist() == [2, 3, 4, 7, 9]


def test_rows_wider_than_a_machine_word_are_sorted_and_summed():
    rng = np.random.default_rng(0)
    shown = np.sort(2 * rng.choice([2, 7, 10**6 - 1], (500, 5)) + rng.integers(0, 2, (500, 5)))
    shown[:, 0], shown[:, 4] = 3, 2 * 10**6
    buckets = rng.integers(0, 2, 500)
    counts = Counts(
        Pairs([0] * 500, buckets, shown, [1] * 500),
        Comparisons.empty(),
        ByRank.empty(),
        Funnel(2500, clicks := int((shown & 1).sum()), {}, Used(2500, clicks, 500)),
        buckets=2, max_rank=10**6, max_shown=5,
    )  # fmt: skip
    expected = Counter((bucket, *row) for bucket, row in zip(buckets, shown.tolist(), strict=True))
    rows = np.column_stack([counts.pairs.bucket, counts.pairs.shown]).tolist()
    assert [tuple(row) for row in rows] == sorted(expected)
    assert counts.pairs.pairs.tolist() == [expected[row] for row in sorted(expected)]
    assert len(rows) < 500  # some were equal


def test_arrays_cannot_be_changed():
    given = np.array([1, 2])
    counts = example(pairs=Pairs([0, 0], [5, 3], [[5, 8, 19], [6, 15, 0]], given))
    with pytest.raises(ValueError, match="read-only"):
        counts.pairs.pairs[0] = 7
    given[0] = 1  # the caller's own array is still the caller's


def test_nothing_counted():
    nothing = Counts(AllPairs.empty(), Comparisons.empty(), ByRank.empty(), Funnel(), **META)
    assert nothing.n_pairs == nothing.n_clicks == len(nothing.ranks) == 0
    assert nothing.choices().shown.shape == (0, 2)
    assert nothing.segments == ((),)
    assert (nothing + example()).equals(example())


def test_sizes():
    assert (example().n_pairs, example().n_clicks) == (3, 4)
    assert (with_comparisons().n_pairs, with_comparisons().n_clicks) == (5, 6)
    summary = with_comparisons().summary()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["pairs_listed"], summary["pairs_compared"]) == (3, 2)
    assert (summary["comparison_weight"], summary["deepest_rank"]) == (0.5, 9)


def test_importing_counts_is_light():
    code = "import sys, rankdrift.counts; print({'duckdb', 'pandas', 'pyarrow'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


# Pairs shown too often become comparisons


def test_a_long_pair_becomes_comparisons_by_the_rule():
    # Shown 5 times: at 1 (not clicked), 2 (clicked twice of 3 times), 6 (clicked).
    counts = example(
        max_shown=5,
        pairs=Pairs([0], [9], [[2, 4, 5, 5, 13]], [10]),
        funnel=Funnel(50, 30, {}, Used(50, 30, 10)),
    ).restrict(max_shown=4)
    cells = zip(*(column.tolist() for column in counts.comparisons.columns()), strict=True)
    assert list(cells) == [
        (0, 9, 2, 1, False, 10 * UNIT * 2 * 1 // 4),
        (0, 9, 2, 6, False, 10 * UNIT * 2 * 1 // 4),
        (0, 9, 6, 1, False, 10 * UNIT * 1 * 1 // 4),
        (0, 9, 6, 2, False, 10 * UNIT * 1 * 3 // 4),
    ]
    assert len(counts.pairs) == 0
    assert counts.n_pairs == 10


def test_single_tells_of_the_whole_pair():
    counts = example(
        pairs=Pairs([0, 0], [0, 0], [[2, 4, 7], [3, 4, 7]], [1, 1]),
        funnel=Funnel(6, 3, {}, Used(6, 3, 2)),
    ).restrict(max_shown=2)
    cells = {
        (a, b, one): w for _, _, a, b, one, w in zip(*counts.comparisons.columns(), strict=True)
    }
    assert cells == {
        (3, 1, True): UNIT // 2,
        (3, 2, True): UNIT // 2,
        (1, 2, False): UNIT // 2,
        (1, 3, False): UNIT // 2,
        (3, 1, False): UNIT // 2,
        (3, 2, False): UNIT // 2,
    }


def test_weights_are_those_of_sql_to_the_last_bit():
    rng = np.random.default_rng(0)
    log, shown = [], np.zeros((400, 60), int)
    for pair in range(400):
        m = int(rng.integers(8, 60))
        ranks, clicks = rng.integers(1, 9, m), rng.random(m) < (pair % 2) * 0.3
        ranks[:2], clicks[0] = (1 + pair % 7, 8), True  # usable
        log += [(pair, rank, click) for rank, click in zip(ranks.tolist(), clicks, strict=True)]
        shown[pair, :m] = np.sort(2 * ranks + clicks)
    pairs = Pairs([0] * 400, [0] * 400, shown, [1] * 400)
    total = pairs.total
    short = Counts(
        pairs, Comparisons.empty(), ByRank.empty(), Funnel(total.rows, total.clicks, {}, total),
        buckets=1, max_rank=8, max_shown=60,
    ).restrict(max_shown=2)  # fmt: skip
    with duckdb.connect() as con:
        con.execute("CREATE TABLE log (pair INT, rank INT, click INT)")
        pair, rank, click = (np.array(column) for column in zip(*log, strict=True))
        con.register("rows", {"pair": pair, "rank": rank, "click": click})
        con.execute("INSERT INTO log SELECT pair, rank, click::INT FROM rows")
        expected = con.sql("""
            WITH by_rank AS (
                SELECT pair, rank, count(*) AS n, sum(click) AS c FROM log GROUP BY ALL
            ), by_pair AS (SELECT pair, count(*) AS m, sum(click) AS k FROM log GROUP BY ALL)
            SELECT a.rank, b.rank, k = 1, sum(CAST(floor(CAST(a.c * b.n AS DOUBLE)
                * CAST(4294967296 AS DOUBLE) / CAST(m - 1 AS DOUBLE) + 0.5) AS BIGINT))
            FROM by_rank a JOIN by_rank b USING (pair) JOIN by_pair USING (pair)
            WHERE a.c > 0 AND a.rank <> b.rank GROUP BY ALL ORDER BY ALL""").fetchall()
    _, _, *columns = (column.tolist() for column in short.comparisons.columns())
    assert list(zip(*columns, strict=True)) == expected
    assert {single for _, _, single, _ in expected} == {True, False}


# Merging


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_rank": 100}, "max_rank is 500 in one and 100 in another"),
        ({"options": {"where": "b"}}, "option 'where' is 'not set' in one and 'b' in another"),
        ({"segment_columns": ("x",), "segments": (("1",),)}, "segment columns is () in one"),
    ],
)
def test_different_things_do_not_merge(change, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example() + example(**change)


def test_the_option_that_differs_is_named():
    a, b = (
        {"columns": {"query": name, "doc": "d"}, "buckets": n} for name, n in (("q", 1), ("k", 2))
    )
    with pytest.raises(BadCounts, match="option 'columns' 'query' is 'q' in one and 'k' in anoth"):
        example(options=a) + example(options=b)


def test_sizes_are_not_options():
    assert (example(options={"buckets": 64}) + example(options={"buckets": 8})).n_pairs == 6


def test_nothing_is_counted_twice():
    day = example(sources=("a.parquet", "b.parquet"))
    with pytest.raises(BadCounts, match=r"1 of the inputs would be counted twice.* a\.parquet"):
        day + example(sources=("a.parquet",))
    assert (day + example(sources=("c.parquet",))).sources == (
        "a.parquet",
        "b.parquet",
        "c.parquet",
    )
    assert (example() + example()).n_pairs == 6  # no fingerprint, no way to tell


def test_nothing_to_merge():
    with pytest.raises(BadCounts, match="no counts to merge"):
        merge([])


def test_many_parts_are_merged_in_batches(monkeypatch):
    parts = [
        example(pairs=Pairs([0, 0], [i, 9], [[5, 8, 19], [6, 15, 0]], [1, 2])) for i in range(9)
    ]
    at_once = merge(parts)
    monkeypatch.setattr(counts_module, "_BATCH", 3)
    assert merge(iter(parts)).equals(at_once)
    assert at_once.n_pairs == 27


def test_a_sum_too_large_is_refused():
    cell = Comparisons([0], [1], [2], [3], [False], [2**62])
    full = replace(with_comparisons(), comparisons=cell)
    with pytest.raises(BadCounts, match="more than a 64-bit whole number holds"):
        full + full


# Restricting


def test_restricted_counts_say_so_and_keep_to_themselves():
    counts = example()
    strict = counts.restrict(strict=True).restrict(max_rank=8)
    assert counts.whole and not strict.whole
    assert strict.options["restrict"] == {"strict": True, "max_rank": 8}
    assert (strict.n_pairs, strict.n_clicks) == (2, 2)
    assert strict.funnel == counts.funnel
    with pytest.raises(BadCounts, match="option 'restrict'"):
        counts + counts.restrict(strict=True)
    assert counts.restrict(max_rank=500, buckets=64, max_shown=4).equals(counts)


def test_more_than_was_counted_cannot_be_had():
    for name, value in (("max_rank", 501), ("max_shown", 5), ("buckets", 128), ("max_rank", 0)):
        with pytest.raises(BadOption, match=f"{name} is {value}"):
            example().restrict(**{name: value})
    with pytest.raises(BadOption, match="power of two"):
        example().restrict(buckets=48)


def test_segments_are_chosen_by_value_or_tuple():
    counts = by_device()
    assert counts.segments == ((None,), ("web",))
    assert counts.restrict(segments=["web"]).equals(counts.restrict(segments=[("web",)]))
    assert counts.restrict(segments=[None]).pairs.shown.tolist() == [[6, 15]]
    with pytest.raises(
        BadOption, match=r"no segment wed\. Did you mean 'web'\? .*\(missing\); web"
    ):
        counts.restrict(segments=["wed"])


def test_choices_of_pairs_with_several_clicks():
    counts = example(
        pairs=Pairs([0, 0], [0, 1], [[5, 5, 8, 19], [6, 15, 0, 0]], [3, 2]),
        funnel=Funnel(16, 11, {}, Used(16, 11, 5)),
    )
    every = counts.choices()
    assert every.shown.tolist() == [[2, 2, 4, 9], [2, 2, 4, 9], [3, 7, 0, 0]]
    assert every.clicked.tolist() == [2, 9, 7]
    assert every.weight.tolist() == [6, 3, 2]
    assert every.pair.tolist() == [0, 0, 1]
    assert every.weight.sum() == counts.n_clicks
    single = counts.choices("single")
    assert (single.clicked.tolist(), single.weight.tolist()) == ([7], [2])
    with pytest.raises(BadOption, match="'all'"):
        counts.choices("all")


# What cannot be right


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buckets": 48}, "buckets is 48, which is not a power of two. Use 64."),
        (
            {"buckets": 4},
            "1 of 2 listed pairs have a bucket outside 0 to 3, for example: segment 0",
        ),
        ({"max_rank": 8}, "1 of 2 listed pairs have a rank outside 1 to max_rank 8"),
        ({"max_rank": 0}, "max_rank is 0."),
        ({"max_rank": "9"}, "max_rank is '9'."),
        ({"max_shown": 1}, "max_shown is 1."),
        ({"max_shown": 2}, "more appearances than max_shown 2"),
        ({"days": ("20240101",)}, "'20240101'"),
        ({"options": {"x": {1, 2}}}, "not plain values"),
        ({"segment_columns": ("a",)}, "Segment () has 0 values for 1 segment columns"),
        ({"segment_columns": ("a", "A"), "segments": ()}, "repeat a name"),
        ({"segments": ()}, "an unknown segment"),
        ({"funnel": Funnel(9, 4, {}, Used(7, 4, 3))}, "difference of 2"),
        (
            {"funnel": Funnel(7, 4, {}, Used(7, 4, 4))},
            "says 4 pairs, 7 rows and 4 clicks were used",
        ),
        ({"funnel": Funnel(8, 4, {}, Used(8, 4, 3))}, "Rows were lost or counted twice"),
        ({"funnel": Funnel(7, 5, {}, Used(7, 5, 3))}, "Rows were lost or counted twice"),
        ({"funnel": Funnel(7, 4, {}, Used(7, 4, 2))}, "Rows were lost or counted twice"),
        ({"comparisons": Comparisons([0], [1], [2], [3], [False], [9])}, "with 1 comparisons"),
        ({"comparisons": Comparisons([0], [1], [2], [2], [False], [9])}, "the same rank twice"),
        ({"comparisons": Comparisons([0], [1], [2], [0], [False], [9])}, "a rank outside 1 to"),
        ({"comparisons": Comparisons([0], [64], [2], [1], [False], [9])}, "a bucket outside 0 to"),
        ({"comparisons": Comparisons([0], [1], [2], [1], [False], [-9])}, "a negative number"),
        ({"by_rank": ByRank([0], [501], [1], [1])}, "a rank outside 1 to max_rank 500"),
        ({"by_rank": ByRank([0], [5], [1], [2])}, "more clicks than impressions"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example(**change)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            [15, 6, 0],
            "not ascending, for example: segment 0, bucket 7, drift 0, shown 15 6, pairs 1.",
        ),
        ([6, 0, 15], "not ascending"),
        ([0, 6, 15], "not ascending"),
        ([1, 6, 15], "a rank outside 1"),
        ([-3, 6, 15], "a rank outside 1"),
        ([6, 14, 0], "no click, or one rank only"),
        ([6, 7, 7], "no click, or one rank only"),
        ([7, 0, 0], "no click, or one rank only"),
        ([0, 0, 0], "no click, or one rank only"),
    ],
)
def test_what_cannot_be_shown_is_refused(shown, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        example(pairs=Pairs([0, 0], [3, 7], [[6, 15, 0], shown], [3, 1]))


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(BadCounts, match="'bucket' of Pairs has values that do not fit int32"):
        Pairs([0], [2**32 + 5], [[6, 15]], [1])
    with pytest.raises(BadCounts, match="'pairs' of Pairs"):
        Pairs([0], [5], [[6, 15]], [1.5])
    with pytest.raises(BadCounts, match="differ in length"):
        Pairs([0, 0], [5], [[6, 15]], [1])


def test_comparisons_need_long_pairs_behind_them():
    assert with_comparisons().n_pairs == 5
    for used in (Used(16, 6, 5), Used(17, 5, 5), Used(17, 6, 2)):  # 2 pairs of at least 5 rows each
        with pytest.raises(BadCounts, match="Rows were lost or counted twice"):
            replace(with_comparisons(), funnel=Funnel(used.rows, used.clicks, {}, used))


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
        comparisons=Comparisons([0], [1], [2], [3], [True], [7]),
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
        "format": 1, "version": "0.1.0", "options": {}, "buckets": 64, "max_rank": 500,
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
    "rank,,,,3,,10,2,",
    "funnel,,input,,,,17,6,",
    "funnel,,used,,,,17,6,5",
    "note,,null_click,,,,1,,",
]


def table(con, rows, columns="kind,bucket,shown,single,rank,other,n,clicks,pairs"):
    names = columns.split(",")
    con.execute(f"CREATE OR REPLACE TEMP TABLE given ({', '.join(f'{n} VARCHAR' for n in names)})")
    con.executemany(
        f"INSERT INTO given VALUES ({', '.join('?' * len(names))})",
        [[value or None for value in row.split(",")] for row in rows],
    )
    return read_table(con, "given", META)


def test_a_good_table_is_read(con):
    counts = table(con, GOOD)
    assert counts.pairs.equals(example().pairs)
    assert counts.comparisons.weight.tolist() == [2**31]
    assert counts.funnel.notes["null_click"] == 1
    assert table(con, [row.replace(",17,", ", 17.0,") for row in GOOD]).equals(counts)


@pytest.mark.parametrize(
    ("row", "words"),
    [
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
        ("rank,,,,,,10,2,", "no rank"),
        ("rank,,,,501,,10,2,", "a rank outside 1 to max_rank 500"),
        ("rank,,,,5,,-10,2,", "a negative number"),
        ("rank,,,,5,,1,2,", "more clicks than impressions"),
        ("funnel,,no_dog,,,,1,0,", "unknown reason 'no_dog'. Did you mean 'no_doc'?"),
        ("funnel,,no_doc,,,,1,0,", "17 rows in the log, but 1 dropped and 17 used"),
        ("funnel,,input,,,,1,0,", "18 rows in the log, but 0 dropped and 17 used"),
        ("note,,odd,,,,1,,", "unknown note 'odd'"),
        ("pair,3,6 15,,,,9,,", "Rows were lost or counted twice"),
    ],
)
def test_a_table_that_cannot_be_is_refused(con, row, words):
    with pytest.raises(BadCounts, match=re.escape(words)):
        table(con, [*GOOD, row])
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
        ('{"format": 2, "version": "9.1"}', "format 2, written by rankdrift 9.1.*Upgrade"),
        ('{"format": 1}', "no buckets"),
    ],
)
def test_a_parquet_file_of_another_kind_is_refused(tmp_path, con, stored, words):
    meta = f", KV_METADATA {{rankdrift: '{stored}'}}" if stored else ""
    con.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path}/other' (FORMAT parquet{meta})")
    with pytest.raises(BadCounts, match=f"other: .*{words}"):
        Counts.load(tmp_path / "other")


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
        from rankdrift.errors import CannotWrite
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
