"""Comparisons as the page's tables: which rows there are, and where their pictures point."""

import pytest
from support.results_example import EVIL, made

from rankdrift.report.page.comparison_tables import (
    WIDTH,
    distance_rows,
    meanings,
    method_table,
    ranker_tables,
)
from rankdrift.report.results import gather


@pytest.fixture(scope="module")
def methods():
    return gather(made().methods).methods[0]


def test_methods_are_columns_and_a_few_ranks_are_rows(methods):
    table = method_table(methods)
    assert table["names"] == ["loglog", "direct"]
    assert [rank for rank, _ in table["rows"]] == [1, 2, 3, 5, 10, 20, 30]
    (top, no_interval), _ = table["rows"][0][1]
    assert (top, no_interval) == ("1.000", "")
    p, interval = table["rows"][-1][1][0]
    low, high = map(float, interval.split("–"))
    assert low <= float(p) <= high


def test_a_distance_points_to_its_side(methods):
    [row] = distance_rows(methods)
    [given] = methods["distances"]
    assert (row["picture"]["at"] > WIDTH / 2) == (given["mean_percent"] > 0)
    assert row["picture"]["from"] <= row["picture"]["at"] <= row["picture"]["to"]
    assert {0.0 + 6, WIDTH - 6.0} & {row["picture"]["from"], row["picture"]["to"]}


def test_each_meaning_is_told_once():
    of = {"verdict": "differ", "meaning": "why"}
    two = [{"first": "a", "second": name, **of} for name in "bc"]
    silent = {"first": "a", "second": "d", "verdict": "agree", "meaning": ""}
    assert meanings({"distances": [*two, silent]}) == [("a and b; a and c", "differ", "why")]


def test_a_ranker_is_set_beside_its_baseline():
    found = ranker_tables(gather(made().rankers).rankers[0])
    [pair] = found["pairs"]
    assert (pair["model"], pair["baseline"]) == ("unbiased", EVIL)
    better, luck, gap, over_all = pair["rows"]
    assert (better["name"], better["improvement"], better["luck"]) == (
        "rank 1",
        "+5.0 ± 1.0%",
        False,
    )
    assert (better["baseline"], better["model"]) == ("0.6000", "0.6300")
    assert luck["luck"] and luck["picture"]["at"] < WIDTH / 2
    assert gap["picture"] is None and gap["note"] == "no click"
    assert over_all["improvement"] == better["improvement"]
