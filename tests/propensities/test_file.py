"""JSON and Parquet give back what is needed, or all; what is not right is refused."""

import csv
import json
import zlib
from base64 import b64encode
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from support.curve_example import DEVICES, by_device, hand, small_counts

from rankdrift.core.errors import BadCounts, BadOption, BadPropensities
from rankdrift.counts.counts import Counts
from rankdrift.estimation import estimate
from rankdrift.propensities.exports import sql_case
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.steps import TOLERANCE

SIX_DIGITS = 1e-5  # of intervals and errors in files that are not full
TWELVE_DIGITS = 1e-11  # of propensities


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
    p.save(tmp_path / f"p.{ending}", full=True)
    back = Propensities.load(tmp_path / f"p.{ending}")
    assert back.equals(p)
    assert p.equals(back)
    assert [f.name for f in tmp_path.iterdir()] == [f"p.{ending}"]


@pytest.mark.parametrize("ending", ["JSON", "Parquet"])
def test_estimates_come_back_with_their_covariance(fits, ending, tmp_path):
    for name, p in fits.items():
        p.save(tmp_path / f"{name}.{ending}", full=True)
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
    by_device().save(tmp_path / "p.parquet", level=0.9, full=True)
    rows = duckdb.sql(f"FROM read_parquet('{tmp_path / 'p.parquet'}')")
    table = by_device().table(0.9, full=True)
    assert rows.columns == [*table, "log_p", "deviations"]
    found = rows.fetchall()
    assert [row[: len(table)] for row in found] == list(zip(*table.values(), strict=True))
    assert found[3][-1] == [0.3, -0.4]


def test_json_is_plain_and_shows_the_interval(tmp_path):
    hand().save(tmp_path / "p.json", level=0.9)
    text = (tmp_path / "p.json").read_text()
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["level"] == 0.9
    assert found["curves"][0]["low"] == pytest.approx(hand().table(0.9)["low"], rel=SIX_DIGITS)
    assert found["curves"][0]["gaps"] == dict.fromkeys(["4"], hand().gaps[4])
    # Numbers of one kind share a line.
    assert '"rank": [1, 2, 3, 5]' in text


def test_files_hold_the_band_that_was_asked_for(fits, tmp_path):
    p, paths = fits["loglog"], [tmp_path / f"p{ending}" for ending in (".csv", ".json", ".parquet")]
    for path in paths:
        p.save(path, 0.9, simultaneous=True, full=True)
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
        np.testing.assert_allclose(
            Propensities.load(tmp_path / f"p.{ending}").covariance, p.covariance, atol=TOLERANCE
        )
        p.save(tmp_path / f"p.{ending}", full=True)
        assert (tmp_path / f"p.{ending}").stat().st_size < 60_000
        assert Propensities.load(tmp_path / f"p.{ending}").equals(p)


# By default: one curve a segment, and no more than errors of ratios need


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_what_was_loaded_is_saved_the_same_to_the_last_byte(fits, ending, tmp_path):
    for name, p in {**fits, **EXAMPLES}.items():
        if ending == "csv" and name == "unknown errors":
            continue  # a table has all errors of a curve or none
        first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
        p.save(first)
        Propensities.load(first).save(second)
        assert first.read_bytes() == second.read_bytes(), name


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_ratios_and_intervals_are_those_of_the_full_file(fits, ending, tmp_path):
    for name, p in fits.items():
        p.save(tmp_path / f"p.{ending}")
        back = Propensities.load(tmp_path / f"p.{ending}")
        for ours, theirs in [(back, p), *zip(back.shrunk.values(), p.shrunk.values(), strict=True)]:
            np.testing.assert_allclose(ours.values, theirs.values, rtol=TWELVE_DIGITS)
            for i, j in ((3, 7), (1, 12), (11, 12), (6, 5)):
                found, wanted = np.log([vars_of(c.ratio(i, j)) for c in (ours, theirs)])
                width = wanted[2] - wanted[1]
                np.testing.assert_allclose(found, wanted, atol=TOLERANCE * width, err_msg=name)
            np.testing.assert_allclose(
                ours.interval(simultaneous=True), theirs.interval(simultaneous=True), rtol=0.02
            )  # fmt: skip
        assert back.provenance == p.provenance
        assert back.gaps == p.gaps
        assert back.difference == p.difference


def vars_of(interval):
    return interval.value, interval.low, interval.high


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_what_a_file_left_out_is_asked_for_with_advice(ending, tmp_path):
    by_device().save(tmp_path / f"p.{ending}")
    p = Propensities.load(tmp_path / f"p.{ending}")
    assert set(p.segments) == set(DEVICES)
    assert p.segment("web").at(2) == pytest.approx(by_device().segment("web").at(2))
    for ask in (
        lambda: p.segment("web", shrunk=False),
        lambda: sql_case(p, by_segment=True, shrunk=False),
    ):
        with pytest.raises(BadOption, match=r"full=True \(rankdrift estimate --full\)"):
            ask()
    by_device().save(tmp_path / f"p.{ending}", full=True)
    p = Propensities.load(tmp_path / f"p.{ending}")
    assert p.segment("web", shrunk=False).at(2) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "change",
    [
        {"zlib": "AAAA"},
        {"zlib": "?"},
        {"zlib": b64encode(zlib.compress(b"0" * 10**6)).decode()},
        {"steps": 4},
        {"causes": -1},
        {"steps": 2**40},
        {"exponent": 2000},
        {"exponent": 900},
        {"exponent": 0},  # errors beyond all numbers
    ],
    ids=str,
)
def test_a_covariance_that_is_none_is_refused(change, tmp_path):
    hand().save(tmp_path / "p.json")
    _edit(
        tmp_path / "p.json",
        lambda f: (f.update(digest=None), f["curves"][0]["steps"].update(change)),
    )
    with pytest.raises(BadPropensities, match=r"p\.json"):
        Propensities.load(tmp_path / "p.json")


def test_two_segments_of_500_ranks_take_less_than_200_kb(tmp_path):
    """As in the demo: a curve of 18 parameters, and two that are shrunk towards it, with the random
    walk of each."""
    rng, size = np.random.default_rng(0), 500
    ranks, many = np.arange(1, size + 1, dtype=np.int32), rng.integers(1, 9_999, size)
    far = np.log(ranks)
    smooth = np.stack([np.interp(far, np.linspace(0, far[-1], 19), row) for row in np.eye(19)[1:]])
    smooth = smooth.T @ rng.normal(0, 0.05, (18, 64))
    walk = np.linalg.cholesky(0.01 * np.minimum(far[1:, None], far[1:]))
    shrunk = np.concatenate([smooth, np.pad(walk, ((1, 0), (0, 0)))], axis=1)
    curves = [
        hand(
            ranks=ranks, log_p=-0.7 * far, deviations=deviations, pairs=many, clicks=many,
            supported=many > 10, gaps={},
        )
        for deviations in (smooth, shrunk, shrunk)
    ]  # fmt: skip
    both = {("mobile",): curves[1], ("web",): curves[2]}
    p = replace(curves[0], segment_columns=("platform",), by_segment=both, shrunk=both)
    for ending in ("json", "csv", "parquet"):
        p.save(tmp_path / f"p.{ending}")
        assert (tmp_path / f"p.{ending}").stat().st_size < 200_000


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
        (lambda f: f.update(format=4, version="9.1"), "format 4, written by rankdrift 9.1"),
        (lambda f: f.update(format="x"), "names no format"),
        (lambda f: f.update(kind="counts"), "not a file of propensities"),
        (lambda f: f.pop("curves"), "damaged"),
        (lambda f: f.update(curves=[]), "no curve of pooling"),
        (lambda f: f["curves"][0].pop("log_p"), "damaged"),
        (lambda f: f["curves"][0].update(rank=[1, 2, 3, 3]), "ranks do not ascend"),
        (lambda f: f["curves"][0].update(rank=[1.5, 2, 3, 5]), "not whole numbers"),
        (lambda f: f["curves"][0].update(rank=[1, 2, 3, 2**40]), "p.json"),
        (lambda f: f["curves"][0].update(clicks=[1]), "4 rows"),
        (lambda f: f["curves"][0].update(supported=[1, 1, 1, 1]), "true or false"),
        (lambda f: f["curves"][0].update(log_p=[0, None, 0, 0]), "not positive numbers"),
        (lambda f: f["curves"][0].update(log_p=[0.5, 0, 0, 0]), "rank 1 is not 1"),
        (lambda f: f["curves"][0].update(reference=4), "reference rank 4"),
        (lambda f: f["curves"][0].update(df=1e-320), "curves.df"),
        (lambda f: f["curves"][0]["deviations"].update(rows=5), "4 rows"),
        (lambda f: f["curves"][0]["deviations"].update(rows=3), "damaged"),
        (lambda f: f["curves"][0]["deviations"].update(columns=[[3, 1, 2]]), "damaged"),
    ],
)
def test_json_that_contradicts_itself_is_refused(change, words, tmp_path):
    hand().save(tmp_path / "p.json", full=True)
    _edit(tmp_path / "p.json", lambda f: (f.update(digest=None), change(f)))
    with pytest.raises(BadPropensities) as caught:
        Propensities.load(tmp_path / "p.json")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["curves"].append(f["curves"][1]), "segment ['web'], is there twice"),
        (lambda f: f["curves"].append(f["curves"][0]), "segment [], is there twice"),
        (lambda f: f["curves"][1].update(segment=[None]), "segment [None], is there twice"),
        (lambda f: f["curves"][1].update(segment=["web", "b"]), "segment ['web', 'b'], where"),
        (lambda f: f["curves"][1].update(segment=[]), "segment_columns is ['device']"),
        (lambda f: f["curves"][0].update(segment=["web"]), "pooling 'all' has the segment ['web']"),
        (lambda f: f["curves"][1].update(pooling="other"), "'other', not all, own or leaning"),
        (lambda f: f["curves"][1].update(pooling=["own"]), "curves.pooling"),
        (lambda f: f["curves"][0].update(pooling="own"), "segment []"),
        (lambda f: f["curves"].pop(0), "no curve of pooling 'all'"),
        (lambda f: f.update(segment_columns=["device"] * 2), "a name is there twice"),
        (lambda f: f.update(segment_columns=[]), "segment_columns is []"),
        (lambda f: f.update(segment_columns=["a", "b"]), "segment_columns is ['a', 'b']"),
    ],
)
def test_segments_that_contradict_each_other_are_refused(change, words, tmp_path):
    by_device().save(tmp_path / "p.json")
    _edit(tmp_path / "p.json", lambda f: (f.update(digest=None), change(f)))
    with pytest.raises(BadPropensities) as caught:
        Propensities.load(tmp_path / "p.json")
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["statistic", "df", "p_value", "spread", "df_error"])
@pytest.mark.parametrize("value", ["=1+1", "", "0.5", [1], True, 10**400], ids=lambda v: str(v)[:4])
def test_a_difference_that_is_no_number_is_refused(name, value, tmp_path):
    by_device().save(tmp_path / "p.json")
    _edit(
        tmp_path / "p.json",
        lambda f: (f.update(digest=None), f["difference"].update({name: value})),
    )
    with pytest.raises(BadPropensities, match=rf"difference\.{name} is .*not a number"):
        Propensities.load(tmp_path / "p.json")


def test_a_difference_that_was_never_found_stays_a_number(tmp_path):
    p = by_device()
    unknown = replace(p.difference, p_value=np.nan, statistic=np.inf, df_error=12.0)
    replace(p, difference=unknown).save(tmp_path / "p.json")
    found = Propensities.load(tmp_path / "p.json").difference
    assert np.isnan(found.p_value) and (found.statistic, found.df_error) == (np.inf, 12.0)


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
            "reads up to format 3. Upgrade",
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
    hand().save(path, full=True)
    assert Propensities.load(path).equals(hand())
