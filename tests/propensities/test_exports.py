import json
from dataclasses import replace

import duckdb
import numpy as np
import pytest
import sqlglot
from support.curve_example import by_device, hand, small_counts

from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.estimation import estimate
from rankdrift.propensities.exports import (
    FORMATS,
    ExportFormat,
    label_gain,
    save_export,
    sql_case,
    ultra_ipw,
)
from rankdrift.propensities.propensities import Propensities


def whole():
    """Ranks 1 to 4 without a gap, two of them alike."""
    return hand(
        ranks=np.array([1, 2, 3, 4], dtype=np.int32), log_p=np.log([1, 0.5, 0.5, 0.1]), gaps={}
    )


# ULTRA


def test_ultra_has_a_weight_for_every_rank_from_1():
    assert list(ultra_ipw(whole())) == ["IPW_list"]
    assert ultra_ipw(whole())["IPW_list"] == pytest.approx([1, 2, 2, 10])
    assert ultra_ipw(whole(), clip=5)["IPW_list"] == pytest.approx([1, 2, 2, 5])


def test_ultra_refuses_gaps_by_name():
    with pytest.raises(NotIdentified, match=r"none for rank 4 \(no clicked pair moved"):
        ultra_ipw(hand())
    deep = hand(ranks=np.array([3, 4, 5, 7], dtype=np.int32), reference=3, gaps={})
    with pytest.raises(NotIdentified, match=r"from 1 to 7, .* ranks 1–2, 6\. Estimate"):
        ultra_ipw(deep)


# LightGBM


def test_label_gain_is_an_ascending_table_and_labels_point_into_it():
    gains, labels = label_gain(whole())
    assert gains == pytest.approx([0, 1, 2, 10])
    assert labels == {1: 1, 2: 2, 3: 2, 4: 3}


def test_clipped_gains_share_a_label():
    gains, labels = label_gain(hand(), clip=3)
    assert gains == pytest.approx([0, 1, 2, 3])
    assert labels == {1: 1, 2: 2, 3: 3, 5: 3}


def test_labels_give_back_the_weights_of_an_estimate():
    p = estimate(small_counts(deepest=40), curve="direct")
    gains, labels = label_gain(p)
    assert gains == sorted(set(gains))
    assert [gains[labels[rank]] for rank in p.ranks.tolist()] == p.weights(p.ranks).tolist()
    assert len(gains) > 31  # more than LightGBM's own table


# SQL


def run(expression, rows, columns):
    values = ", ".join("(" + ", ".join(map(repr_sql, row)) + ")" for row in rows)
    names = ", ".join(f'"{c}"' for c in columns)
    query = f"SELECT {expression} FROM (VALUES {values}) AS t ({names})"
    return [row[0] for row in duckdb.sql(query).fetchall()]


def repr_sql(value):
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def test_sql_gives_the_weight_to_the_last_bit_and_null_elsewhere():
    p = estimate(small_counts())
    found = run(sql_case(p), [(rank,) for rank in [*p.ranks.tolist(), 99, None]], ["rank"])
    assert found == [*p.weights(p.ranks).tolist(), None, None]


def test_sql_of_very_small_and_large_weights_is_exact():
    p = hand(log_p=np.array([0, -40.0, 50.0, 0.1]))
    assert run(sql_case(p), [(r,) for r in (1, 2, 3, 5)], ["rank"]) == p.weights(p.ranks).tolist()


def test_sql_clips_and_quotes_the_column():
    odd = 'the "rank"'
    sql = sql_case(hand(), odd, clip=3, table="t")
    assert sql.startswith('CAST(CASE "t"."the ""rank"""')
    rows = f"(VALUES (1), (2), (3), (4), (5)) AS t ({DIALECTS['duckdb'].quote(odd)})"
    found = duckdb.sql(f"SELECT {sql} AS w FROM {rows}")
    assert [row[0] for row in found.fetchall()] == pytest.approx([1, 2, 3, None, 3])
    assert found.types[0] == "DOUBLE"


def test_sql_by_segment_tells_null_and_odd_values_apart():
    odd = "it's a/b\\"
    p = by_device()
    p = replace(
        p,
        shrunk={("it's a/b\\",): p.shrunk[("web",)], (None,): p.shrunk[(None,)]},
        by_segment={("it's a/b\\",): p.by_segment[("web",)], (None,): p.by_segment[(None,)]},
    )
    rows = [(odd, 2), (None, 2), ("other", 2), (odd, 4)]
    found = run(sql_case(p, by_segment=True), rows, ["device", "rank"])
    leaning = [1 / p.segment(s).at(2) for s in (odd, None)]
    assert found == pytest.approx([*leaning, None, None])
    own = [1 / p.segment(s, shrunk=False).at(2) for s in (odd, None)]
    found = run(sql_case(p, by_segment=True, shrunk=False), rows, ["device", "rank"])
    assert found == pytest.approx([*own, None, None])
    assert own != leaning


def test_sql_by_segment_compares_numbers_as_text():
    p = replace(by_device(), segment_columns=("site",), shrunk={("7",): hand()})
    assert run(sql_case(p, by_segment=True), [(7, 2), (8, 2)], ["site", "rank"]) == [
        pytest.approx(2),
        None,
    ]


def test_sql_by_segment_needs_segments():
    with pytest.raises(BadOption, match="no curves by segment"):
        sql_case(hand(), by_segment=True)


@pytest.mark.parametrize("name", DIALECTS)
def test_sql_parses_in_every_dialect(name):
    sql = sql_case(by_device(), dialect=name, by_segment=True)
    tree = sqlglot.parse_one(f"SELECT {sql} AS w FROM t", read=name)
    assert len(list(tree.find_all(sqlglot.exp.Case))) == 4
    values = {lit.name for lit in tree.find_all(sqlglot.exp.Literal) if lit.is_string}
    assert values == {"web", "a/b\\"}


def test_an_unknown_dialect_gets_a_hint():
    with pytest.raises(BadOption, match="Did you mean 'duckdb'"):
        sql_case(hand(), dialect="duckbd")


# Files


def test_forms_are_written_whole(tmp_path):
    p = whole()
    save_export(p, tmp_path / "ultra.json", "ultra", clip=5)
    assert json.loads((tmp_path / "ultra.json").read_text()) == ultra_ipw(p, clip=5)
    p.export(tmp_path / "gain.json", "lightgbm")
    found = json.loads((tmp_path / "gain.json").read_text())
    assert found["label_gain"] == label_gain(p)[0]
    assert found["label_of_click_at_rank"] == {"1": 1, "2": 2, "3": 2, "4": 3}
    p.export(tmp_path / "w.sql", "sql", rank_column="place", dialect="spark")
    assert (tmp_path / "w.sql").read_text() == sql_case(p, "place", dialect="spark") + "\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_what_cannot_be_exported_leaves_no_file(tmp_path):
    for form, options, words in (
        ("ultr", {}, "Did you mean 'ultra'"),
        ("ultra", {"dialect": "duckdb"}, "does not take these options: it got .* 'dialect'"),
        ("ultra", {}, "none for rank 4"),
    ):
        with pytest.raises((BadOption, NotIdentified), match=words):
            hand().export(tmp_path / "x.json", form, **options)
    assert not list(tmp_path.iterdir())


def test_a_curve_read_from_csv_can_be_exported(tmp_path):
    whole().save(tmp_path / "p.csv")
    back = Propensities.load(tmp_path / "p.csv")
    assert ultra_ipw(back)["IPW_list"] == pytest.approx([1, 2, 2, 10])


# A form is an extension point


def test_a_new_form_is_one_object(tmp_path):
    tabbed = ExportFormat(
        "tabbed",
        ending=".tsv",
        use="a test",
        function=lambda p, clip=None: p.weights(p.ranks, clip).tolist(),
        text=lambda weights: "\t".join(map(str, weights)),
    )
    assert tabbed.options == ("clip",)
    with FORMATS.registered(tabbed):
        hand().export(tmp_path / "w.tsv", "tabbed", clip=3)
        assert (tmp_path / "w.tsv").read_text() == "1.0\t2.0\t3.0\t3.0"
        with pytest.raises(BadOption, match=r"'tabbed'\? There are ultra, lightgbm, sql, tabbed"):
            hand().export(tmp_path / "x", "tabed")
        with pytest.raises(BadOption, match="'tabbed' does not take these options: it got an unex"):
            hand().export(tmp_path / "x", "tabbed", dialect="spark")
    with pytest.raises(BadOption, match=r"No form 'tabbed'\. There are ultra, lightgbm, sql\."):
        hand().export(tmp_path / "x", "tabbed")
    assert [path.name for path in tmp_path.iterdir()] == ["w.tsv"]


def test_every_form_says_what_it_is_for():
    for form in FORMATS:
        assert form.use and form.ending.startswith(".") and "clip" in form.options
