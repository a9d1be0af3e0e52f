"""Judgments as a value: looked up, shown, saved and read again."""

import duckdb
import numpy as np
import pytest
from support.curve_example import hand
from support.judgments_example import QUERIES, by_hand, with_features

from rankdrift import Judgments
from rankdrift.core.errors import BadJudgments, BadOption
from rankdrift.core.frames import objects
from rankdrift.judging.file import FORMAT, load, save
from rankdrift.judging.judgments import NUMBERS


def assert_same(a, b):
    assert a.table() == b.table()
    assert a.queries.tolist() == b.queries.tolist() and a.docs.tolist() == b.docs.tolist()
    np.testing.assert_array_equal(a.features, b.features)
    for name in ("query_columns", "prior", "rest", "level", "feature_names", "options", "source",
                 "remarks", "version", "propensities"):  # fmt: skip
        assert getattr(a, name) == getattr(b, name), name
    assert a.funnel == b.funnel


def test_a_query_is_looked_up_by_its_text():
    found = by_hand().of(QUERIES[0])
    assert found["doc"] == ["d 1", "d%2", "d4", "d,3"]
    assert list(found) == ["query", "doc", *NUMBERS]
    with pytest.raises(BadOption, match=r"Did you mean 'lamp\\tshade'"):
        by_hand().of("lamp shade")


def test_one_doc_is_better_than_another_with_a_probability():
    judgments = by_hand()
    assert judgments.better(QUERIES[0], "d 1", "d,3") > 0.99
    # P(A over B) and P(B over A) are the two sides of one number.
    both = [judgments.better(QUERIES[0], *pair) for pair in (("d4", "d%2"), ("d%2", "d4"))]
    assert sum(both) == pytest.approx(1) and 0.3 < both[0] < 0.5
    with pytest.raises(BadOption, match="No doc 'd9'"):
        judgments.better(QUERIES[0], "d 1", "d9")


def test_queries_of_several_columns_are_told_apart(tmp_path):
    queries = objects([("lamp", "home"), ("lamp", None), (None, "home")], 2)
    judgments = by_hand(query_columns=("words", "category"), queries=queries)
    assert judgments.texts.tolist() == ["lamp | home", "lamp", "home"]
    assert judgments.table()["query_category"][:5] == ["home", "home", "home", "home", None]
    judgments.save(tmp_path / "j.parquet")
    assert_same(Judgments.load(tmp_path / "j.parquet"), judgments)


@pytest.mark.parametrize("make", [by_hand, with_features])
def test_what_is_saved_is_read_again(make, tmp_path):
    judgments = make()
    judgments.save(tmp_path / "j.parquet")
    assert_same(Judgments.load(tmp_path / "j.parquet"), judgments)
    rows = duckdb.sql(f"SELECT query, doc, relevance FROM '{tmp_path / 'j.parquet'}'").fetchall()
    assert len(rows) == 10 and (QUERIES[1], "d 1", 0.6) in rows


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "j.parquet"
    by_hand().save(path)
    [(_, meta)] = duckdb.sql(f"SELECT key, value FROM parquet_kv_metadata('{path}')").fetchall()
    text = bytes(meta).decode().replace("'", "''")
    other = tmp_path / "other.parquet"
    duckdb.sql(f"SELECT * REPLACE (relevance / 2 AS relevance) FROM '{path}'").query(
        "t", f"COPY t TO '{other}' (FORMAT parquet, KV_METADATA {{rankdrift_judgments: '{text}'}})"
    )
    with pytest.raises(BadJudgments, match="it was changed since it was written"):
        load(other)
    newer = text.replace(f'"format": {FORMAT}', f'"format": {FORMAT + 1}')
    duckdb.sql(f"FROM '{path}'").query(
        "t", f"COPY t TO '{other}' (FORMAT parquet, KV_METADATA {{rankdrift_judgments: '{newer}'}})"
    )
    with pytest.raises(BadJudgments, match="Upgrade rankdrift"):
        load(other)


def test_files_that_hold_none(tmp_path):
    with pytest.raises(BadJudgments, match="does not exist"):
        load(tmp_path / "no.parquet")
    hand().save(tmp_path / "p.parquet")
    with pytest.raises(BadJudgments, match="holds no judgments but propensities"):
        load(tmp_path / "p.parquet")
    (tmp_path / "text.parquet").write_text("PAR1 and no more")
    with pytest.raises(BadJudgments, match="cut short or of another kind"):
        load(tmp_path / "text.parquet")
    with pytest.raises(BadOption, match=r"named \.parquet"):
        save(by_hand(), tmp_path / "j.csv")


def test_a_column_whose_name_is_damaged_is_told_in_words(tmp_path):
    path = tmp_path / "j.parquet"
    by_hand().save(path)
    path.write_bytes(path.read_bytes().replace(b"logit_sd", b"logit\xf0sd"))
    with pytest.raises(BadJudgments, match=r"cannot be read as a Parquet file of judgments"):
        Judgments.load(path)
