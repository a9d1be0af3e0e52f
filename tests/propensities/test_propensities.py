import csv
import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.curve_example import DEVICES, by_device, hand, small_counts
from support.worlds import listed

from rankdrift.core.errors import BadCounts, BadOption, BadPropensities, NotIdentified
from rankdrift.counts.counts import Counts, Overflow
from rankdrift.estimation import estimate
from rankdrift.propensities.csv import label, parse_label
from rankdrift.propensities.propensities import Propensities

NORMAL_95 = 1.959963984540054  # scipy.special.ndtri(0.975)
T7_95 = 2.364624251592785  # scipy.special.stdtrit(7, 0.975)
# log(exp(x)) and a number written in decimal differ from x by rounding only.
ROUNDING = 1e-14


@pytest.fixture(scope="module")
def fits():
    """Estimates of each kind: by knots, by rank, by segment and by bootstrap."""
    counts = small_counts()
    return {
        "loglog": estimate(counts),
        "direct": estimate(counts, curve="direct"),
        "by": estimate(small_counts(segments=3), by="device"),
        "bootstrap": estimate(counts, errors="bootstrap", samples=30, extrapolate_to=15),
    }


# Look up


def test_lookup_keeps_the_shape_asked_for():
    np.testing.assert_allclose(hand().at([[1, 5], [2, 2]]), [[1, 0.1], [0.5, 0.5]])
    assert hand().at(3) == pytest.approx(0.25)


def test_a_rank_without_estimate_is_refused_by_name():
    with pytest.raises(NotIdentified, match=r"rank 4, 6; the curve covers 1–3, 5\."):
        hand().at([1, 4, 6])


def test_a_ratio_uses_the_covariance_of_both_ranks():
    found = hand().ratio(3, 5)
    error = np.sqrt((0.1 - 0.3) ** 2 + (0.2 + 0.4) ** 2)
    assert found.value == pytest.approx(2.5)
    assert found.low == pytest.approx(2.5 * np.exp(-T7_95 * error))
    assert found.high == pytest.approx(2.5 * np.exp(T7_95 * error))
    assert hand().ratio(2, 2).high == 1


def test_another_reference_changes_no_ratio():
    moved = hand().relative_to(3)
    assert moved.reference == 3
    assert moved.at(3) == 1
    assert moved.std_error[2] == 0
    assert vars(moved.ratio(2, 5)) == pytest.approx(vars(hand().ratio(2, 5)))


def test_the_band_of_the_whole_curve_is_wider_and_needs_some_error():
    low, high = hand().interval()
    lower, higher = hand().interval(simultaneous=True)
    assert (lower[1:] < low[1:]).all()
    assert (higher[1:] > high[1:]).all()
    sure = hand(deviations=np.zeros((4, 0)))
    np.testing.assert_allclose(sure.interval(simultaneous=True)[1], sure.values)


def test_weights_are_clipped_and_counted():
    np.testing.assert_allclose(hand().weights([1, 5], clip=4), [1, 4])
    with pytest.raises(BadOption, match="1 or more"):
        hand().weights([1], clip=0.5)
    sizes = hand().effective_sample_size(clips=(1,))
    assert sizes[1] == pytest.approx(71)
    n, w = np.array([40, 20, 10, 1]), np.array([1, 2, 4, 10])
    assert sizes[None] == pytest.approx((n @ w) ** 2 / (n @ w**2))


# The table


def test_the_table_has_these_columns_and_no_others():
    columns = hand().table(level=0.95)
    assert list(columns) == [
        "segment", "rank", "propensity", "low", "high", "std_error", "pairs", "clicks", "supported",
    ]  # fmt: skip
    assert columns["segment"] == [""] * 4
    assert columns["rank"] == [1, 2, 3, 5]
    assert columns["supported"] == [True, True, True, False]
    assert columns["std_error"] == pytest.approx([0, 0.1, np.sqrt(0.05), 0.5])
    assert columns["high"] == pytest.approx(
        [1, *np.array([0.5, 0.25, 0.1]) * np.exp(T7_95 * np.array([0.1, np.sqrt(0.05), 0.5]))]
    )
    assert {type(value) for column in columns.values() for value in column} <= {
        str, int, float, bool,
    }  # fmt: skip


def test_the_table_has_a_curve_for_each_segment_after_the_pool():
    columns = by_device().table()
    assert list(columns)[-1] == "pooling"
    seen = list(dict.fromkeys(zip(columns["pooling"], columns["segment"], strict=True)))
    names = ["web", "(none)", "a\\/b\\\\"]
    assert seen == [("all", ""), *(("own", n) for n in names), *(("leaning", n) for n in names)]
    assert len(columns["rank"]) == 7 * 4


def test_a_curve_without_errors_has_no_interval():
    """It is not certain, it is unknown."""
    bare = hand(errors="none", deviations=np.zeros((4, 0)))
    for ask in (bare.interval, lambda: bare.ratio(2, 3), lambda: bare.interval(simultaneous=True)):
        with pytest.raises(NotIdentified, match="came without errors"):
            ask()
    assert bare.at([2, 5]).tolist() == pytest.approx([0.5, 0.1])


def test_pairs_and_clicks_are_counted_and_not_weighed():
    """Those of pairs held as comparisons too, and by segment."""
    rows = [(((1, c), (2, 1 - c)), b, 3) for b in range(8) for c in (0, 1)]
    rows += [(((1, 1), (2, 1), (2, 0)), b, 2) for b in range(8)]
    long = [(((1, 1), (1, 1), (2, 0), (2, 1)), b, 5) for b in range(8)]
    long += [(((1, 0), (2, 0), (2, 1 - c), (3, c)), b, 1) for b in range(8) for c in (0, 1)]
    every = estimate(listed(rows, max_shown=3))
    assert every.pairs.tolist() == [48 + 16, 48 + 16]
    assert every.clicks.tolist() == [24 + 16, 24 + 16]
    single = estimate(listed(rows, max_shown=3), clicks="single")
    assert (single.pairs.tolist(), single.clicks.tolist()) == ([48, 48], [24, 24])
    for max_shown in (2, 3, 4):  # whether listed or held
        counts = listed(rows + long, max_shown=max_shown)
        both = estimate(counts)
        assert both.pairs.tolist() == [64 + 40 + 16, 64 + 40 + 16, 16]
        assert both.clicks.tolist() == [40 + 80, 40 + 40 + 8, 8]
        assert both.clicks.sum() == counts.n_clicks == both.provenance["counts"]["clicks"]
        single = estimate(counts, clicks="single")
        assert single.pairs.tolist() == [48 + 16, 48 + 16, 16]
        assert single.clicks.tolist() == [24, 24 + 8, 8]
    of_each = [(*row, 0) for row in rows] + [(*row, 1) for row in long]
    split = listed(of_each, max_shown=3, names=("app", "web"))
    by = estimate(split, by="device", errors="model")
    assert by.segment("web", shrunk=False).pairs.tolist() == [40 + 16, 40 + 16, 16]
    assert by.segment("web", shrunk=False).clicks.tolist() == [80, 40 + 8, 8]


def test_pairs_and_clicks_of_old_counts_are_those_listed():
    rows = [(((1, c), (2, 1 - c)), b, 3) for b in range(8) for c in (0, 1)]
    long = [(((1, 1), (1, 1), (2, 0), (2, 1)), b, 5) for b in range(8)]
    old = replace(listed(rows + long, max_shown=3), overflow=Overflow.empty())
    found = estimate(old)
    assert (found.pairs.tolist(), found.clicks.tolist()) == ([48, 48], [24, 24])
    assert np.array_equal(found.log_p, estimate(listed(rows + long, max_shown=3)).log_p)


def test_a_curve_without_errors_has_no_interval_in_the_table():
    columns = hand(errors="none", deviations=np.zeros((4, 0))).table()
    assert columns["low"] == columns["high"] == columns["std_error"] == [None] * 4


@given(st.lists(st.none() | st.text("a/\\() \n") | st.just("(none)"), min_size=1, max_size=3))
def test_a_label_tells_segments_apart(values):
    assert parse_label(label(tuple(values))) == tuple(values)


def test_levels_outside_0_and_1_are_refused(tmp_path):
    for use in (hand().table, lambda level: hand().save(tmp_path / "x.csv", level)):
        with pytest.raises(BadOption, match="level must lie between"):
            use(95)
    assert not list(tmp_path.iterdir())


# JSON and Parquet give back all


EXAMPLES = {
    "by hand": hand(),
    "segments": by_device(),
    "no errors": hand(errors="none", deviations=np.zeros((4, 0)), df=np.inf, log_likelihood=None),
    "unknown errors": hand(deviations=np.array([[0, 0], [np.nan, 0], [0, 1e-300], [0.1, 0]])),
    "wide": hand(deviations=np.diag([0, 0.1, 900.0, 0.2])),
    "plain": hand(
        provenance={"counts": {"at": (1, np.int64(2)), "x": np.inf}}, reference=np.int64(1)
    ),
}


@pytest.mark.parametrize("ending", ["json", "parquet"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_loaded_equals_what_was_saved(name, ending, tmp_path):
    p = EXAMPLES[name]
    p.save(tmp_path / f"p.{ending}")
    back = Propensities.load(tmp_path / f"p.{ending}")
    assert back.equals(p)
    assert p.equals(back)
    assert [f.name for f in tmp_path.iterdir()] == [f"p.{ending}"]


@pytest.mark.parametrize("ending", ["JSON", "Parquet"])
def test_estimates_come_back_with_their_covariance(fits, ending, tmp_path):
    for name, p in fits.items():
        p.save(tmp_path / f"{name}.{ending}")
        back = Propensities.load(tmp_path / f"{name}.{ending}")
        assert back.equals(p), name
        assert back.ratio(3, 7) == p.ratio(3, 7)
        np.testing.assert_array_equal(
            back.interval(simultaneous=True), p.interval(simultaneous=True)
        )
    by = Propensities.load(tmp_path / f"by.{ending}")
    assert by.segment(None).ratio(2, 4) == fits["by"].segment(None).ratio(2, 4)
    assert set(by.shrunk) == set(DEVICES)
    assert by.provenance["counts"]["pairs"] == fits["by"].provenance["counts"]["pairs"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"log_p": np.log([1, 0.5, 0.25, 0.1 + 1e-16])},
        {"deviations": np.zeros((4, 2))},
        {"deviations": np.zeros((4, 0))},
        {"pairs": np.array([100, 80, 60, 3])},
        {"clicks": np.array([40, 20, 10, 2])},
        {"supported": np.ones(4, bool)},
        {"method": "loglog"},
        {"errors": "model"},
        {"df": np.inf},
        {"log_likelihood": None},
        {"parameters": 4},
        {"gaps": {}},
        {"provenance": {}},
        {"segment_columns": ("device",)},
        {"by_segment": {("web",): hand()}},
    ],
    ids=str,
)
def test_equal_means_in_every_number_and_word(change):
    assert hand().equals(hand())
    assert not hand().equals(hand(**change))


def test_parquet_is_a_table_that_others_read(tmp_path):
    by_device().save(tmp_path / "p.parquet", level=0.9)
    rows = duckdb.sql(f"FROM read_parquet('{tmp_path / 'p.parquet'}')")
    table = by_device().table(0.9)
    assert rows.columns == [*table, "log_p", "deviations"]
    found = rows.fetchall()
    assert [row[: len(table)] for row in found] == list(zip(*table.values(), strict=True))
    assert found[3][-1] == [0.3, -0.4]


def test_json_is_plain_and_shows_the_interval(tmp_path):
    hand().save(tmp_path / "p.json", level=0.9)
    text = (tmp_path / "p.json").read_text()
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["level"] == 0.9
    assert found["curves"][0]["low"] == hand().table(0.9)["low"]
    assert found["curves"][0]["gaps"] == dict.fromkeys(["4"], hand().gaps[4])
    # Numbers of one kind share a line.
    assert '"rank": [1, 2, 3, 5]' in text


def test_files_hold_the_band_that_was_asked_for(fits, tmp_path):
    p, paths = fits["loglog"], [tmp_path / f"p{ending}" for ending in (".csv", ".json", ".parquet")]
    for path in paths:
        p.save(path, 0.9, simultaneous=True)
    low, high = p.interval(0.9, simultaneous=True)
    with paths[0].open() as file:
        assert [float(row["high"]) for row in csv.DictReader(file)] == pytest.approx(high)
    told = json.loads(paths[1].read_text())
    assert told["simultaneous"]
    assert told["curves"][0]["low"] == pytest.approx(low)
    assert duckdb.read_parquet(str(paths[2])).fetchnumpy()["low"] == pytest.approx(low)
    assert all(Propensities.load(path).equals(p) for path in paths[1:])


def test_zeros_and_long_curves_stay_small(tmp_path):
    size = 300
    ranks = np.arange(1, size + 1, dtype=np.int32)
    count, all_of = np.ones(size, int), np.ones(size, bool)
    diagonal = np.diag(np.linspace(0, 1, size))
    p = Propensities(
        ranks, -np.log(ranks), diagonal, count, count, all_of, 1, "direct", "buckets"
    )  # fmt: skip
    for ending in ("json", "parquet"):
        p.save(tmp_path / f"p.{ending}")
        # The zeros alone would take 4 characters or 8 bytes each: 360 kB or more.
        assert (tmp_path / f"p.{ending}").stat().st_size < 60_000
        assert Propensities.load(tmp_path / f"p.{ending}").equals(p)


# CSV holds the table


def test_csv_is_the_table(tmp_path):
    by_device().save(tmp_path / "p.csv", level=0.9)
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    table = by_device().table(0.9)
    assert rows[0] == list(table)
    assert [row[1] for row in rows[1:]] == [str(rank) for rank in table["rank"]]
    assert [float(row[3]) for row in rows[1:]] == table["low"]
    assert [row[8] for row in rows[1:5]] == ["true", "true", "true", "false"]


def test_csv_comes_back_with_each_ranks_own_error(tmp_path):
    by_device().save(tmp_path / "p.csv")
    back = Propensities.load(tmp_path / "p.csv")
    assert back.errors == "pointwise"
    for (_, ours), (_, theirs) in zip(
        (("", back), *back.by_segment.items(), *back.shrunk.items()),
        (("", hand()), *by_device().by_segment.items(), *by_device().shrunk.items()),
        strict=True,
    ):
        np.testing.assert_allclose(ours.log_p, theirs.log_p, atol=ROUNDING)
        np.testing.assert_allclose(ours.std_error, theirs.std_error, atol=ROUNDING)
        for name in ("ranks", "pairs", "clicks", "supported"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert back.segment_columns == ("segment",)
    assert list(back.by_segment) == list(DEVICES)


def test_pointwise_errors_give_no_ratio_that_needs_more(tmp_path):
    hand().save(tmp_path / "p.csv")
    p = Propensities.load(tmp_path / "p.csv")
    for refused in (lambda: p.ratio(2, 3), lambda: p.relative_to(2)):
        with pytest.raises(BadOption, match=r"\.json or \.parquet"):
            refused()
    assert p.ratio(5, 1).high == pytest.approx(0.1 * np.exp(NORMAL_95 * 0.5))
    assert p.ratio(1, 5).low == pytest.approx(10 * np.exp(-NORMAL_95 * 0.5))
    assert p.ratio(2, 2).value == 1
    assert p.relative_to(1).equals(p)
    # Taken as independent, the band can only be too wide.
    width = np.log(p.interval(simultaneous=True)[1][3] / 0.1) / 0.5
    assert width > np.log(replace(hand(), df=np.inf).interval(simultaneous=True)[1][3] / 0.1) / 0.5


def test_a_pointwise_curve_stays_so_in_json(tmp_path):
    hand().save(tmp_path / "p.csv")
    p = Propensities.load(tmp_path / "p.csv")
    p.save(tmp_path / "p.json")
    assert Propensities.load(tmp_path / "p.json").equals(p)


def test_a_curve_from_elsewhere_needs_only_rank_and_propensity(tmp_path):
    (tmp_path / "p.csv").write_text("\ufeffpropensity,rank\n0.5,2\n1,1\n", encoding="utf-8")
    p = Propensities.load(tmp_path / "p.csv")
    assert p.ranks.tolist() == [1, 2]
    assert p.at(2) == 0.5
    assert (p.errors, p.reference) == ("none", 1)


def test_two_segment_columns_in_csv(tmp_path):
    text = "segment,rank,propensity\n,1,1\n,2,.5\nweb/us,1,1\nweb/us,2,.4\n"
    (tmp_path / "p.csv").write_text(text)
    p = Propensities.load(tmp_path / "p.csv")
    assert p.segment_columns == ("segment_1", "segment_2")
    assert p.segment("web", "us").at(2) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column rank and no column propensity"),
        ("rank,propensty\n1,1\n", "no column propensity. Did you mean 'propensty'"),
        ("rank,propensity\n", "no row of the pooled curve"),
        ("rank,propensity\n1,1\none,0.5\n", "line 3: invalid literal"),
        ("rank,propensity\n1,1\n2\n", "line 3"),
        ("rank,propensity\n1,1\n2,0\n", "line 3: propensity must be above 0"),
        ("rank,propensity\n1,1\n2,nan\n", "line 3: propensity must be above 0"),
        ("rank,propensity\n1,1\n0,0.5\n", "line 3: 0 is no rank"),
        ("rank,propensity\n1,1\n2,.5\n2,.4\n", "ranks do not ascend"),
        ("rank,propensity\n1,0.9\n2,0.5\n", "no rank has propensity 1"),
        ("rank,propensity,std_error\n1,1,0\n2,0.5,\n", "1 of 2 rows have no std_error"),
        ("rank,propensity,std_error\n1,1,0\n2,0.5,-1\n", "std_error 0 or more"),
        ("rank,propensity,supported\n1,1,maybe\n", "supported is 'maybe'"),
        ("rank,propensity,pooling\n1,1,both\n", "pooling is 'both'"),
        ("rank,propensity,pairs\n1,1,-1\n", "pairs or clicks are negative"),
        ("segment,rank,propensity\n,1,1\na,1,1\na/b,1,1\n", "segments have 1 or 2 values"),
    ],
)
def test_bad_csv_is_refused_with_the_place(text, words, tmp_path):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(BadPropensities, match=r"p\.csv: ") as caught:
        Propensities.load(tmp_path / "p.csv")
    assert words in str(caught.value)


def test_csv_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"rank,propensity\n\xff\xfe,1\n")
    with pytest.raises(BadPropensities, match="not CSV in UTF-8"):
        Propensities.load(tmp_path / "p.csv")


# Files that are not what they should be


def test_other_endings_are_refused_with_advice(tmp_path):
    for use in (hand().save, Propensities.load):
        with pytest.raises(BadOption, match=r"'\.jsn'. Did you mean '\.json'\? Use \.json or"):
            use(tmp_path / "p.jsn")
        with pytest.raises(BadOption, match="without an ending"):
            use(tmp_path / "p")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_what_is_not_there_is_said_so(ending, tmp_path):
    with pytest.raises(BadPropensities, match="does not exist"):
        Propensities.load(tmp_path / f"p.{ending}")
    (tmp_path / f"d.{ending}").mkdir()
    with pytest.raises(BadPropensities, match="is a directory"):
        Propensities.load(tmp_path / f"d.{ending}")


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_files_cut_short_are_refused(ending, tmp_path):
    path = tmp_path / f"p.{ending}"
    hand().save(path)
    whole = path.read_bytes()
    for part in (b"", whole[:20], whole[: len(whole) // 2], whole[:-10]):
        path.write_bytes(part)
        with pytest.raises(BadPropensities, match="p." + ending):
            Propensities.load(path)


def _edit(path, change):
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(format=2, version="9.1"), "format 2, written by rankdrift 9.1"),
        (lambda f: f.update(format="x"), "names no format"),
        (lambda f: f.update(kind="counts"), "not a file of propensities"),
        (lambda f: f.pop("curves"), "damaged"),
        (lambda f: f.update(curves=[]), "damaged"),
        (lambda f: f["curves"][0].pop("log_p"), "damaged"),
        (lambda f: f["curves"][0].update(rank=[1, 2, 3, 3]), "ranks do not ascend"),
        (lambda f: f["curves"][0].update(rank=[1.5, 2, 3, 5]), "not whole numbers"),
        (lambda f: f["curves"][0].update(rank=[1, 2, 3, 2**40]), "p.json"),
        (lambda f: f["curves"][0].update(clicks=[1]), "4 rows"),
        (lambda f: f["curves"][0].update(supported=[1, 1, 1, 1]), "true or false"),
        (lambda f: f["curves"][0].update(log_p=[0, None, 0, 0]), "not positive numbers"),
        (lambda f: f["curves"][0].update(log_p=[0.5, 0, 0, 0]), "rank 1 is not 1"),
        (lambda f: f["curves"][0].update(reference=4), "reference rank 4"),
        (lambda f: f["curves"][0]["deviations"].update(rows=5), "4 rows"),
        (lambda f: f["curves"][0]["deviations"].update(rows=3), "damaged"),
        (lambda f: f["curves"][0]["deviations"].update(columns=[[3, 1, 2]]), "damaged"),
    ],
)
def test_json_that_contradicts_itself_is_refused(change, words, tmp_path):
    hand().save(tmp_path / "p.json")
    _edit(tmp_path / "p.json", change)
    with pytest.raises(BadPropensities) as caught:
        Propensities.load(tmp_path / "p.json")
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "3", "null", "[" * 100_000, '{"kind": []}'])
def test_json_of_another_kind_is_refused(text, tmp_path):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(BadPropensities):
        Propensities.load(tmp_path / "p.json")


def _parquet(path, meta, query="SELECT 1 AS rank"):
    pairs = ", ".join(f"{k}: '{v}'" for k, v in meta.items())
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, KV_METADATA {{{pairs}}})")


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"other": "1"}, "something else"),
        ({"rankdrift": "{}"}, "counts: estimate from them"),
        ({"rankdrift_propensities": "{"}, "damaged"),
        ({"rankdrift_propensities": "{}"}, "not a file of propensities"),
        (
            {"rankdrift_propensities": '{"kind": "rankdrift propensities", "format": 7}'},
            "reads up to format 1. Upgrade",
        ),
    ],
)
def test_parquet_of_another_kind_is_refused(meta, words, tmp_path):
    _parquet(tmp_path / "p.parquet", meta)
    with pytest.raises(BadPropensities) as caught:
        Propensities.load(tmp_path / "p.parquet")
    assert words in str(caught.value)


def test_counts_and_propensities_are_told_apart(tmp_path):
    hand().save(tmp_path / "p.parquet")
    with pytest.raises(BadCounts, match=r"holds propensities, not counts.*Propensities\.load"):
        Counts.load(tmp_path / "p.parquet")
    small_counts(pairs=50).save(tmp_path / "c.parquet")
    with pytest.raises(BadPropensities, match="counts: estimate from them"):
        Propensities.load(tmp_path / "c.parquet")


def test_parquet_with_rows_lost_is_refused(tmp_path):
    hand().save(tmp_path / "p.parquet")
    path = str(tmp_path / "p.parquet")
    [(key, value)] = duckdb.sql(f"SELECT key, value FROM parquet_kv_metadata('{path}')").fetchall()
    query = f"FROM '{path}' WHERE rank < 5"
    _parquet(tmp_path / "q.parquet", {key.decode(): value.decode()}, query)
    with pytest.raises(BadPropensities, match="3 rows, not 4"):
        Propensities.load(tmp_path / "q.parquet")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_what_cannot_be_right_is_not_written(ending, tmp_path):
    path = tmp_path / f"p.{ending}"
    path.write_text("before")
    with pytest.raises(BadPropensities, match="not positive numbers"):
        hand(log_p=np.array([0, np.nan, 0, 0])).save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_names_with_signs_of_sql_and_patterns(tmp_path):
    path = tmp_path / "it's [1] *.parquet"
    hand().save(path)
    assert Propensities.load(path).equals(hand())


# In few words


def test_summary_is_plain_and_short():
    told = by_device().summary(level=0.9)
    json.dumps(told, allow_nan=False)
    assert told["ranks"] == "1–3, 5"
    assert told["clicks"] == 71
    assert told["thin"] == "5"
    assert told["gaps"] == {"no clicked pair moved to or from it": "4"}
    assert list(told["at"]) == [1, 2, 3, 5]
    assert told["at"][5]["high"] == hand().table(0.9)["high"][3]
    assert told["segments"] == ["web", "(none)", "a\\/b\\\\"]
    assert told["left_out"] == {"tv": "The counts hold no usable pair."}
    assert told["segments_differ"]["spread_percent"] == pytest.approx(100 * (np.exp(0.05) - 1))


def test_summary_of_a_long_curve_has_a_few_ranks_and_the_reference(fits):
    p = fits["loglog"].relative_to(7)
    assert list(p.summary()["at"]) == [1, 2, 3, 5, 7, 10]


def test_repr_is_one_short_line():
    assert repr(by_device()) == (
        "<Propensities: direct, every; ranks 1–3, 5 relative to rank 1; 71 clicks; "
        "3 segments by device>"
    )


def test_the_notebook_view_is_escaped():
    bad = "<script>alert(1)</script>"
    p = replace(by_device(), method=bad, gaps={4: bad}, segment_columns=(bad,))
    p = replace(p, by_segment={(bad,): hand()}, shrunk={})
    seen = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append(tag)
    parser.feed(p._repr_html_())
    assert set(seen) == {"table", "thead", "tbody", "tr", "th", "td", "div"}
    assert p._repr_html_().count("&lt;script&gt;") == 4
    assert "<td>0.25</td><td>0.147 to 0.424</td>" in p._repr_html_()
    assert "thin data" in p._repr_html_()


# Two curves


def test_compare_tells_the_largest_and_the_mean_difference():
    other = hand(log_p=np.log([1, 0.5, 0.2, 0.11]), clicks=np.array([0, 20, 30, 1]))
    told = hand().compare(other)
    assert told["max_percent"] == pytest.approx(25)
    assert told["max_rank"] == 3
    assert told["mean_percent"] == pytest.approx((40 * 0 + 40 * 25 + 2 * 10) / 82)
    assert told["shared"] == "1–3, 5"
    assert "same counts" in told["note"]
    assert other.compare(hand())["mean_percent"] == pytest.approx(told["mean_percent"])


def test_compare_takes_both_relative_to_the_same_rank():
    told = hand().compare(hand().relative_to(3))
    assert told["relative_to"] == 1
    assert told["max_percent"] == pytest.approx(0, abs=1e-10)
    deeper = hand(ranks=np.array([2, 3, 5, 6], dtype=np.int32), reference=2)
    told = hand().compare(deeper)
    assert told["relative_to"] == 2
    assert (told["only_first"], told["only_second"]) == ("1", "6")
    assert told["max_percent"] == pytest.approx(25)  # p_5/p_2: 1/5 here, 1/4 there


def test_compare_without_clicks_weighs_ranks_alike():
    none = hand(clicks=np.zeros(4, int))
    told = none.compare(replace(none, log_p=np.log([1, 0.5, 0.25, 0.2])))
    assert told["mean_percent"] == pytest.approx(100 / 3)


def test_compare_needs_two_shared_ranks():
    other = hand(ranks=np.array([5, 6, 7, 8], dtype=np.int32), reference=5)
    with pytest.raises(NotIdentified, match="share 1 ranks"):
        hand().compare(other)


def test_looking_things_up_loads_nothing_heavy():
    code = (
        "import sys, rankdrift.propensities;"
        "print([m for m in ('altair', 'scipy', 'duckdb') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
