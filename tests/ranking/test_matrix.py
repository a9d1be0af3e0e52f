import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.clicklogs import frame, matrix

from rankdrift import read_log, read_matrix
from rankdrift.core.errors import BadLog, BadOption, MissingColumns
from rankdrift.ranking.matrix import Feature, Matrix, key_of
from rankdrift.ranking.matrix_reading import matrix_bytes


@pytest.fixture(scope="module")
def table():
    return frame(searches=40, size=6, queries=8)


def by_doc(found):
    """Rows of a matrix read with docs, by doc."""
    return np.argsort(found.doc.astype(int))


def test_every_value_is_where_it_was(table):
    found = read_matrix(read_log(table, segment="platform"), relevance="relevance", docs=True)
    order = by_doc(found)
    assert found.names == ("f_1", "f_2", "f_3", "f_word", "f_flag")
    assert np.array_equal(found.x[order, 0], table.f_1.to_numpy(np.float32))
    assert np.array_equal(found.x[order, 4], table.f_flag.to_numpy(np.float32))
    words = np.array([*found.features[3].categories, None], object)
    codes = np.nan_to_num(found.x[order, 3], nan=2).astype(int)
    assert words[codes].tolist() == [w if isinstance(w, str) else None for w in table.f_word]
    assert np.array_equal(found.rank[order], table["rank"])
    assert np.array_equal(found.click[order], table.click == 1)
    labels = np.array([segment for (segment,) in found.segments])
    assert labels[found.segment[order]].tolist() == table.platform.tolist()
    assert found.segment_columns == ("platform",)
    assert np.allclose(found.relevance[order], table.relevance, rtol=1e-6)
    queries = pd.factorize(table["query"], sort=True)[0]
    assert np.array_equal(found.query[order], queries)
    same = table.search.to_numpy()[:, None] == table.search.to_numpy()
    mine = found.search[order]
    assert np.array_equal(mine[:, None] == mine, same)


def test_rows_of_a_search_are_together_and_the_order_never_changes(table):
    first = read_matrix(read_log(table))
    again = read_matrix(read_log(table.sample(frac=1, random_state=3)))
    assert first.fingerprint() == again.fingerprint()
    assert (np.diff(first.search) >= 0).all() and first.n_searches == 40
    assert np.array_equal(np.diff(first.starts), np.full(40, 6))
    changed = table.assign(f_1=table.f_1.where(table.doc != 7, 0.25))
    assert read_matrix(read_log(changed)).fingerprint() != first.fingerprint()


def test_all_sources_agree(table, tmp_path):
    table.to_csv(tmp_path / "log.csv", index=False)
    table.to_parquet(tmp_path / "log.parquet")
    named = {"features": ["f_1", "f_2", "f_word"]}
    first = read_matrix(read_log(table), **named)
    for source in (tmp_path / "log.parquet", pl.from_pandas(table), tmp_path / "log.csv"):
        assert read_matrix(read_log(source), **named).fingerprint() == first.fingerprint()
    arrays = matrix(table, ("f_1", "f_2", "f_word"))
    assert sorted(arrays.query_keys) == sorted(first.query_keys)
    assert arrays.features == first.features
    assert np.array_equal(np.sort(arrays.x[:, 0]), np.sort(first.x[:, 0]))
    assert key_of("q3") in first.query_keys


def test_dropped_rows_are_counted_by_reason(table):
    odd = table.astype({"rank": "float", "click": "float", "query": "object"})
    odd.loc[0, "rank"], odd.loc[1, "query"], odd.loc[2, "click"] = None, " ", -1
    odd.loc[3, "rank"] = 900
    found = read_matrix(read_log(odd))
    assert len(found) == len(table) - 4
    found.funnel.check()
    reasons = {name for name, _, rows, *_ in found.funnel.lines() if rows}
    assert reasons == {"input", "no_rank", "no_query", "bad_click", "deep_rank", "used"}
    with pytest.raises(BadLog, match="rank 0"):
        read_matrix(read_log(table.assign(rank=table["rank"] - 1)))


def test_what_is_not_a_finite_number_is_missing(table):
    odd = table.copy()
    odd["f_1"] = odd.f_1.astype(object)
    odd.loc[[0, 1, 2, 3], "f_2"] = [np.nan, np.inf, -np.inf, 1e300]
    found = read_matrix(read_log(odd.drop(columns="f_1")), features="f_2", docs=True)
    assert np.isnan(found.x[by_doc(found)[:4], 0]).all()
    assert np.isnan(found.x).sum() == 4


def test_text_of_numbers_is_numbers_unless_told_otherwise(table):
    odd = table.assign(f_code=[f"{i % 3}" for i in range(len(table))])
    assert read_matrix(read_log(odd), features="f_code").features == (Feature("f_code"),)
    told = read_matrix(read_log(odd), features="f_code", categorical="f_c*")
    assert told.features == (Feature("f_code", ("0", "1", "2")),)
    flags = read_matrix(read_log(odd), features="f_flag", categorical="f_flag")
    assert flags.features == (Feature("f_flag", ("false", "true")),)


def test_patterns_never_match_what_plays_a_part(table):
    found = read_matrix(read_log(table.drop(columns="relevance")), features="*")
    assert not {"click", "rank", "doc", "query", "search"} & set(found.names)
    assert "platform" in found.names


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [("f_9", MissingColumns, "Did you mean"), ("g*", MissingColumns, "f_1, f_2"),
     ("click", BadOption, "to predict"), ([], BadOption, "No features"),
     (["f_1", "rank"], BadOption, "the old ranking back"),
     ("when", BadOption, "is a time"), ("many", BadOption, "is a list"),
     ("id", BadOption, "rather than a category")],
)  # fmt: skip
def test_bad_features_are_explained(table, features, error, words):
    big = pd.concat([table] * 50, ignore_index=True)
    odd = big.assign(when=pd.Timestamp("2024-01-01"), many=[[1, 2]] * len(big),
                     id=[f"id{i}" for i in range(len(big))])  # fmt: skip
    with pytest.raises(error, match=words):
        read_matrix(read_log(odd, day=""), features=features)


def test_columns_that_tell_nothing_are_named(table):
    odd = table.assign(f_7=3.0, f_8=np.inf, f_9=1e308)
    said = read_matrix(read_log(odd), features=["f_1", "f_7", "f_8", "f_9"]).remarks
    assert [line for line in said if "nothing can be learnt" in line] == [
        "f_8, f_9 have no value in any row, so nothing can be learnt from it.",
        "f_7 has the same value in every row, so nothing can be learnt from it.",
    ]


def test_memory_is_stated_before_reading_and_too_much_is_refused(table, monkeypatch):
    told = []
    read_matrix(read_log(table), features="f_1", say=told.append)
    assert told[0].startswith("240 rows with 1 feature: about ")
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    with pytest.raises(BadOption, match="this machine has"):
        read_matrix(read_log(table), features="f_1")
    assert matrix_bytes(10**6, 25) > 10**6 * 25 * 4


def test_only_searches_with_a_click_only_some_ranks(table):
    log = read_log(table)
    whole, clicked = read_matrix(log), read_matrix(log, searches="clicked")
    assert clicked.n_clicks == whole.n_clicks
    assert clicked.fingerprint() == whole.only_clicked().fingerprint()
    assert clicked.n_searches == table[table.click == 1].search.nunique() < whole.n_searches
    top = read_matrix(log, ranks=(1, 3))
    assert set(top.rank.tolist()) == {1, 3} and len(top) == 80
    with pytest.raises(BadLog, match=r"None of the \d+ results was shown at rank 9\."):
        read_matrix(log, ranks=(9,))
    with pytest.raises(BadLog, match=r"was clicked at rank 9, so"):
        read_matrix(log, ranks=(9,), searches="clicked")


def test_without_searches_rows_are_dealt_into_lists_with_each_rank_once(table):
    found = read_matrix(read_log(table.drop(columns="search")))
    assert any("does not tell searches apart" in remark for remark in found.remarks)
    assert found.n_searches == 40
    lists = found.rank.reshape(40, 6)
    assert (lists == np.arange(1, 7)).all()
    for rows in found.query.reshape(40, 6):
        assert len(set(rows.tolist())) == 1


def test_list_logs_keep_their_lists_and_take_features_by_place(tmp_path):
    rows = [
        {"query": "a", "results": ["x", "y"], "clicked": ["y"], "f_1": [1.5, None]},
        {"query": "a", "results": ["x", "y"], "clicked": ["y"], "f_1": [1.5, None]},
        {"query": "a", "results": ["y", "z", "x"], "clicked": [], "f_1": [3, 4, 5]},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_matrix(read_log(path, shown="results", clicked="clicked"), docs=True)
    assert sorted(np.diff(found.starts).tolist()) == [2, 2, 3]
    assert found.n_clicks == 2
    values = {(d, r): v for d, r, v in zip(found.doc, found.rank, found.x[:, 0], strict=True)}
    assert values["x", 1] == 1.5 and np.isnan(values["y", 2]) and values["x", 3] == 5


def test_a_model_asks_for_its_features_by_name_and_category(table):
    found = matrix(table, ("f_word", "f_1"))
    wanted = (Feature("f_1"), Feature("f_word", ("green", "blue", "pink")))
    given = found.with_features(wanted)
    assert np.array_equal(given.x[:, 0], found.x[:, 1])
    green = table.f_word == "green"
    assert (given.x[green, 1] == 0).all() and np.isnan(given.x[~green, 1]).all()
    assert "f_word" in given.remarks[-1]
    with pytest.raises(BadOption, match="2 of them are not here: f_2, f_3"):
        found.with_features((Feature("f_1"), Feature("f_2"), Feature("f_3")))
    with pytest.raises(BadOption, match="is words here"):
        found.with_features((Feature("f_word"),))
    read = read_matrix(read_log(table), features=list(wanted))
    assert read.features == wanted and "f_word" in read.remarks[-1]


def test_take_and_split_keep_queries_whole(table):
    found = matrix(table)
    rest, apart = found.split(0.4, seed=1)
    assert len(rest) + len(apart) == len(found)
    assert not set(rest.query_keys.tolist()) & set(apart.query_keys.tolist())
    assert apart.query.max() == apart.n_queries - 1 and apart.search[-1] == apart.n_searches - 1
    with pytest.raises(BadOption, match="between 0 and 1"):
        found.split(1.5)
    with pytest.raises(BadOption, match="one value a row"):
        found.take([True])


@pytest.mark.parametrize(
    ("change", "words"),
    [({"rank": [0, 1, 2]}, "from 1"), ({"rank": [1, np.nan, 2]}, "from 1"),
     ({"rank": [1, 2]}, "equally long"), ({"click": [0, 2, 1]}, "0 or 1"),
     ({"search": [1, 2, 1]}, "together"), ({"query": [[1], [2], [3]]}, "one value a row"),
     ({"relevance": [0, -1, 2]}, "0 or more"), ({"relevance": [0, np.nan, 2]}, "never missing"),
     ({"names": ["a"]}, "name of its own"), ({"x": np.zeros(3)}, "rows and columns")],
)  # fmt: skip
def test_bad_arrays_are_explained(change, words):
    good = {"x": np.zeros((3, 2)), "rank": [1, 2, 3], "click": [0, 1, 0], "query": [1, 1, 1]}
    Matrix.from_arrays(good["x"], **{k: v for k, v in good.items() if k != "x"})
    told = good | change
    with pytest.raises(BadOption, match=words):
        Matrix.from_arrays(told.pop("x"), **told)


def test_relevance_may_be_text_and_what_is_missing_is_told(table, tmp_path):
    odd = table.assign(relevance=table.relevance.round(3).astype(str).where(table.doc > 1))
    found = read_matrix(read_log(odd), features="f_1", relevance="relevance", docs=True)
    order = by_doc(found)
    assert np.allclose(found.relevance[order][2:], table.relevance.round(3)[2:])
    assert any("The relevance of 2 of 240 rows is missing" in remark for remark in found.remarks)
    with pytest.raises(BadOption, match="not a number in any row"):
        read_matrix(read_log(table), features="f_1", relevance="f_word")
    with pytest.raises(MissingColumns, match="Did you mean 'relevance'"):
        read_matrix(read_log(table), features="f_1", relevance="relevances")
