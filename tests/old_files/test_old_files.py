"""Files that an earlier version wrote are read as it read them. README.md tells where from."""

import gzip
import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from old_files.make import OPTIONS, write_log

from rankdrift import (
    Counts,
    Propensities,
    Ranker,
    harvest,
    harvest_by_day,
    import_counts,
    merge,
    read_log,
)
from rankdrift.core.errors import Remark
from rankdrift.counts.counts import Splits
from rankdrift.harvesting import counting
from rankdrift.report.results import gather

HERE = Path(__file__).parent
FILES = HERE / "files"
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
# Sums of a few numbers: libraries of linear algebra may add them up in another order.
LAST_DIGITS = 1e-9
# Leaves are 64-bit numbers in LightGBM and 32-bit numbers in XGBoost.
SINGLE = 1e-6
COUNTS = ("counts", "pairs", "days/2024-01-01", "days/2024-01-02")
CURVES = ("plain", "by_segment", "gaps", "bootstrap")
MODELS = ("lightgbm.txt", "xgboost.json")


def expected(kind, name):
    return EXPECTED[f"{kind}/{name}"]


def plain(value):
    """As it comes out of JSON."""
    return json.loads(json.dumps(value))


# To drop a row, which earlier versions did not know.
NEW_REASONS = (
    "randomised", "other_day", "no_propensity", "no_search", "not_drawn", "same_rank",
)  # fmt: skip
KNOWN = {**OPTIONS, "randomised": ""}  # without the roles that they did not know


# -- counts ----------------------------------------------------------------------------------------


def describe_counts(counts):
    funnel = counts.funnel
    return plain({
        "n_pairs": counts.n_pairs, "n_clicks": counts.n_clicks, "n_overflow": counts.n_overflow,
        "segment_columns": counts.segment_columns, "segments": counts.segments,
        "days": counts.days, "sources": counts.sources, "options": dict(counts.options),
        "sizes": [counts.buckets, counts.max_rank, counts.max_shown], "version": counts.version,
        "listed": digest(counts.pairs), "rank_pairs": digest(counts.rank_pairs),
        "overflow": digest(counts.overflow), "by_rank": digest(counts.by_rank),
        "funnel": {
            "rows": funnel.rows, "clicks": funnel.clicks, "notes": dict(funnel.notes),
            "used": [funnel.used.rows, funnel.used.clicks, funnel.used.pairs],
            "dropped": {
                k: [d.rows, d.clicks, d.pairs] for k, d in funnel.dropped.items()
                if k not in NEW_REASONS or d.rows
            },
        },
    })  # fmt: skip


def digest(table):
    columns = [column.tolist() for column in table.columns()]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, tmp_path):
    file = FILES / f"{name}.parquet"
    counts = Counts.load(file)
    assert describe_counts(counts) == expected("counts", name)
    counts.save(tmp_path / "again.parquet")
    assert_same_parquet(tmp_path / "again.parquet", file)


def assert_same_parquet(one, other):
    """The same rows in the same order and the same metadata, but for the digest, which earlier
    versions did not write."""
    with duckdb.connect() as con:
        for sql in ("FROM read_parquet('{}')", "DESCRIBE FROM read_parquet('{}')"):
            assert con.sql(sql.format(one)).fetchall() == con.sql(sql.format(other)).fetchall()
        stored = "SELECT key, value FROM parquet_kv_metadata('{}')"
        (key, now), (was, before) = (con.sql(stored.format(f)).fetchall()[0] for f in (one, other))
    now = json.loads(now)
    assert len(now.pop("digest")) == 32 and now.pop("sealed")
    assert key == was and now == json.loads(before)


def test_counts_of_format_1():
    with pytest.warns(Remark, match="not counted by rank"):
        counts = Counts.load(FILES / "counts_format_1.parquet")
    assert describe_counts(counts) == expected("counts", "counts_format_1")
    assert not len(counts.overflow) and not counts.overflow_known


def test_counts_of_days_add_up():
    days = merge([Counts.load(path) for path in sorted((FILES / "days").iterdir())])
    whole = Counts.load(FILES / "counts.parquet")
    assert days.n_pairs == whole.n_pairs > 0 and days.funnel == whole.funnel


def test_the_result_of_a_warehouse():
    assert describe_counts(import_counts(FILES / "warehouse.csv")) == expected(
        "counts", "warehouse"
    )


@pytest.fixture
def log(tmp_path):
    write_log(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_the_same_log_gives_the_same_file(log, tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "__version__", EXPECTED["made by/rankdrift"])
    counts = harvest(read_log(log, **KNOWN), buckets=8, max_shown=3)
    assert len(counts.splits)  # which the earlier version did not have
    replace(counts, splits=Splits.empty()).save(tmp_path / "counts.parquet")
    assert_same_parquet(tmp_path / "counts.parquet", FILES / "counts.parquet")


def test_days_that_have_no_splits_are_counted_once_more(log, tmp_path, monkeypatch):
    """A folder of days that was begun with the earlier version gets what it did not count."""
    monkeypatch.setattr(counting, "__version__", EXPECTED["made by/rankdrift"])
    shutil.copytree(FILES / "days", tmp_path / "days")
    for before in (False, True):
        done = []
        harvest_by_day(
            read_log(log, **KNOWN), tmp_path / "days", buckets=4, max_shown=3,
            each=lambda day, path, skipped, done=done: done.append((path.name, skipped)),
        )  # fmt: skip
        assert done == [("2024-01-01.parquet", before), ("2024-01-02.parquet", before)]
    for path in sorted((FILES / "days").iterdir()):
        counts = Counts.load(tmp_path / "days" / path.name)
        assert replace(counts, splits=Splits.empty()).equals(Counts.load(path))


def test_options_in_a_file(log):
    read = read_log(log, config=FILES / "options.toml")
    assert read.roles.segment == ("platform",) and read.roles.same == ("price",)
    assert read.rules.max_rank == 6


# -- propensities ----------------------------------------------------------------------------------


def describe_curve(p):
    low, high = p.interval(0.95)
    wide = p.interval(0.9, simultaneous=True)
    inner = {"by_segment": p.by_segment, "shrunk": p.shrunk}
    return plain({
        "ranks": p.ranks.tolist(), "values": p.values.tolist(), "std_error": p.std_error.tolist(),
        "low": low.tolist(), "high": numbers(high), "simultaneous": [numbers(end) for end in wide],
        "pairs": p.pairs.tolist(), "clicks": p.clicks.tolist(),
        "supported": p.supported.tolist(), "reference": p.reference, "method": p.method,
        "errors": p.errors, "gaps": p.gaps, "segment_columns": p.segment_columns, "text": str(p),
        "inner": {
            name: [[s, c.values.tolist(), numbers(c.interval(0.95)[1])] for s, c in curves.items()]
            for name, curves in inner.items()
        },
    })  # fmt: skip


def numbers(values):
    return [v if abs(v) < 1e300 else None for v in values.tolist()]


def assert_close(found, wanted):
    """Equal, but for the last digits of numbers."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert_close(found[key], value)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=LAST_DIGITS)
    else:
        assert found == wanted


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
@pytest.mark.parametrize("name", CURVES)
def test_propensities(name, ending, tmp_path):
    file = FILES / f"{name}.{ending}"
    curve = Propensities.load(file)
    wanted = expected("propensities", f"{name}.{'csv' if ending == 'csv' else 'json'}")
    assert_close(describe_curve(curve), wanted)  # Parquet holds what JSON holds
    again = tmp_path / file.name
    curve.save(again, full=True)
    assert_close(describe_curve(Propensities.load(again)), wanted)
    if ending == "csv":  # a table only, from which the rest cannot be had
        return
    for text in ("json", "csv"):
        curve.save(again.with_suffix(f".{text}"), full=True)
        assert shortened(again.with_suffix(f".{text}")) == shortened(file.with_suffix(f".{text}"))
    curve.save(again.with_suffix(".json"))  # the shorter form
    assert Propensities.load(again.with_suffix(".json")).segments.keys() == curve.segments.keys()


def shortened(path):
    """The text of a file without the last digits of long numbers, and without its digest."""
    text = path.read_bytes().decode().replace(' "sealed": true,\n', "")
    text = re.sub(r',\n "digest": "[0-9a-f]{32}"', "", text)
    if path.suffix == ".csv" and ",df" in text:  # which files had not at first
        text = re.sub(r"((?:[^,\n]*,){8}[^,\n]*),[^,\n]*", r"\1", text)
    return re.sub(r"\d+\.\d{12,}(e-?\d+)?", lambda found: f"{float(found[0]):.10g}", text)


# -- rankers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    ranker, wanted = Ranker.load(FILES / name), expected("rankers", name)
    rows = np.array([[np.nan if v is None else v for v in row] for row in wanted["rows"]])
    assert ranker.predict(rows) == pytest.approx(wanted["scores"], rel=SINGLE)
    assert ranker.importance == pytest.approx(wanted["importance"], rel=SINGLE)
    record = plain({
        "features": [[f.name, f.categories] for f in ranker.features],
        "backend": ranker.backend, "trees": ranker.trees, "text": repr(ranker),
        "history": ranker.history, "propensities": ranker.propensities,
        "queries": [str(q) for q in ranker.queries], "gains": dict(ranker.gains),
        "training": dict(ranker.training), "options": dict(ranker.options),
    })  # fmt: skip
    assert record == {name: wanted[name] for name in record}
    ranker.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (FILES / name).read_bytes()
    before, after = (
        json.loads((folder / f"{name}.meta.json").read_text()) for folder in (FILES, tmp_path)
    )
    assert len(after.pop("digest")) == 32 and after.pop("sealed")
    assert after | {"rankdrift": before["rankdrift"], "name": before["name"]} == before


@pytest.mark.parametrize("name", MODELS)
def test_models_without_their_record_are_of_numbers_only(name, tmp_path):
    """They have a category, whose names are in the record."""
    shutil.copy(FILES / name, tmp_path / name)
    with pytest.raises(ValueError, match="uses categories"):
        Ranker.load(tmp_path / name)


# -- what a report is made from --------------------------------------------------------------------


def test_every_result_is_known_for_what_it_is(tmp_path):
    def read(name):
        return json.loads((FILES / name).read_text(encoding="utf-8"))

    truth = tmp_path / "truth.json"
    truth.write_bytes(gzip.decompress((FILES / "truth.json.gz").read_bytes()))
    names = ("counts.parquet", "by_segment.json", "gaps.parquet", "plain.csv", "methods.json",
             "comparison.json", "diagnosis.json")  # fmt: skip
    found = gather([*(FILES / name for name in names), truth])
    assert dict(found.given) == {
        "counts.parquet": "counts", "by_segment.json": "propensities",
        "gaps.parquet": "propensities", "plain.csv": "propensities",
        "methods.json": "comparison of methods", "comparison.json": "comparison of rankers",
        "diagnosis.json": "diagnosis", "truth.json": "truth",
    }  # fmt: skip
    assert set(found.methods[0]["names"]) == {"loglog", "all-pairs", "ctr", "experiment"}
    assert found.methods[0]["table"] == read("methods.json")["table"]
    (rankers,) = found.rankers
    assert rankers == read("comparison.json")
    assert rankers["models"] == ["lightgbm", "xgboost"]
    assert {row["measure"] for row in rankers["table"]} >= {"AUC", "true NDCG"}
    assert found.diagnosis["verdict"] == read("diagnosis.json")["verdict"]
    assert len(found.diagnosis["checks"]) == len(read("diagnosis.json")["checks"]) > 3
    assert set(found.truth) == {"web", "mobile"} and len(found.truth["web"]["best_match"]) == 500
