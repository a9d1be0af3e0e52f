import json
import re
from dataclasses import replace

import pytest

from rankdrift.core.errors import BadCounts, did_you_mean
from rankdrift.counts.funnel import NOTES, REASONS, Dropped, Funnel, Used, waterfall

MONDAY = Funnel(
    rows=100,
    clicks=30,
    dropped={
        "one_rank": Dropped(20, 6, 9),
        "where": Dropped(10, 3),
        "stray_click": Dropped(0, 4),
        "click_event": Dropped(30, 0),
    },
    used=Used(40, 17, 15),
    notes={"null_click": 8},
)
TUESDAY = Funnel(5, 1, {"where": Dropped(3, 0)}, Used(2, 1, 1), {"null_segment": 2})


def test_the_order_is_the_waterfall():
    assert list(REASONS) == [
        "other_event", "click_event", "where", "randomised", "duplicate", "no_rank", "bad_rank",
        "low_rank", "deep_rank", "no_doc", "no_query", "no_day", "no_same", "bad_click",
        "other_day", "no_propensity", "no_search", "not_drawn", "same_rank", "stray_click",
        "repeat_click", "doc_twice", "never_clicked", "one_rank",
    ]  # fmt: skip
    assert list(MONDAY.dropped) == list(REASONS)
    assert list(MONDAY.notes) == list(NOTES)


def test_lines_are_the_input_what_was_dropped_and_what_is_used():
    assert list(MONDAY.lines()) == [
        ("input", "in the log", 100, 30, None),
        ("click_event", REASONS["click_event"], 30, 0, None),
        ("where", REASONS["where"], 10, 3, None),
        ("stray_click", REASONS["stray_click"], 0, 4, None),
        ("one_rank", REASONS["one_rank"], 20, 6, 9),
        ("used", "used", 40, 17, 15),
    ]


def test_funnels_add():
    both = MONDAY + TUESDAY
    assert (both.rows, both.clicks) == (105, 31)
    assert both.used == Used(42, 18, 16)
    assert both.dropped["where"] == Dropped(13, 3, None)
    assert both.dropped["one_rank"] == Dropped(20, 6, 9)
    assert {name: n for name, n in both.notes.items() if n} == {"null_segment": 2, "null_click": 8}
    assert both == TUESDAY + MONDAY
    assert both != MONDAY
    both.check()


def test_reasons_not_given_are_zero():
    assert Funnel(2, 1, {}, Used(2, 1, 1)) == Funnel(2, 1, {"no_doc": Dropped()}, Used(2, 1, 1))


def test_plain_values_and_back():
    plain = json.loads(json.dumps(MONDAY.to_dict()))
    assert Funnel.from_dict(plain) == MONDAY
    assert plain["dropped"]["one_rank"] == {"rows": 20, "clicks": 6, "pairs": 9}
    assert plain["dropped"]["where"] == {"rows": 10, "clicks": 3}
    assert plain["notes"] == {"null_click": 8}


@pytest.mark.parametrize(
    "plain",
    [{}, {"input": {"rows": 1}}, {"input": 1, "dropped": {}, "used": {}, "notes": {}},
     {"input": {}, "dropped": [], "used": {}, "notes": {}}],
)  # fmt: skip
def test_what_is_not_a_funnel_is_refused(plain):
    with pytest.raises(BadCounts, match="not a funnel"):
        Funnel.from_dict(plain)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 101}, "101 rows in the log, but 60 dropped and 40 used, a difference of 1."),
        ({"clicks": 28}, "28 clicks in the log, but 13 dropped and 17 used, a difference of -2."),
        ({"used": Used(40, 17, -1)}, "negative number at 'used'"),
        ({"notes": {"null_click": 101}}, "notes 101 rows as 'null_click', of 100"),
        ({"notes": {"null_click": -1}}, "notes -1 rows"),
        ({"dropped": {"click_event": Dropped(60, 13)}}, "13 clicks at 'click_event'"),
        ({"dropped": {"repeat_click": Dropped(60, 13)}}, "60 rows at 'repeat_click'"),
        ({"dropped": {"where": Dropped(61, 13), "no_doc": Dropped(-1, 0)}}, "negative"),
    ],
)
def test_what_does_not_add_up_is_refused_with_the_difference(change, words):
    MONDAY.check()
    with pytest.raises(BadCounts, match=re.escape(words)):
        replace(MONDAY, **change).check()


def test_unknown_names_are_refused():
    with pytest.raises(BadCounts, match=r"unknown reason 'dep_rank'\. Did you mean 'deep_rank'\?"):
        Funnel(dropped={"dep_rank": Dropped()})
    with pytest.raises(BadCounts, match="unknown note 'odd'"):
        Funnel(notes={"odd": 1})


def test_pairs_are_known_only_where_pairs_are_formed():
    assert Funnel(dropped={"where": Dropped(0, 0, 0)}).dropped["where"].pairs is None
    assert Funnel().dropped["one_rank"].pairs == 0
    with pytest.raises(BadCounts, match="3 pairs at 'where'"):
        Funnel(dropped={"where": Dropped(0, 0, 3)})


def test_did_you_mean():
    assert did_you_mean("Quer", ["doc", "QUERY"]) == " Did you mean 'QUERY'?"
    assert did_you_mean("zzz", ["doc", "query"]) == ""
    assert did_you_mean("x", []) == ""


def test_a_waterfall_by_hand():
    """Of 1,000 good rows 300 are of clicked pairs; 20 of those were rows of docs shown twice."""
    lines = waterfall({
        "where": (50, 5, 0), "rank_zero": (3, 1, 0), "low_rank": (4, 2, 0), "doc_twice": (6, 1, 0),
        "good": (1000, 90, 0), "candidates": (300, 80, 0),
        "unclicked": (11, 0, 5), "unmoved": (100, 30, 40), "used": (169, 47, 60),
    })  # fmt: skip
    assert {name: (line.rows, line.clicks) for name, line in lines.items()} == {
        "where": (50, 5), "low_rank": (7, 3), "repeat_click": (0, 10),
        "never_clicked": (1000 - 300 + 11, 0), "one_rank": (100, 30),
        "doc_twice": (6 + 300 - 280, 1 + 80 - 77), "input": (1063, 99), "used": (169, 47),
    }  # fmt: skip
    assert (lines["one_rank"].pairs, lines["used"].pairs, lines["where"].pairs) == (40, 60, None)
    parts = [line for name, line in lines.items() if name != "input"]
    assert sum(line.rows for line in parts) == 1063 and sum(line.clicks for line in parts) == 99


def test_a_waterfall_of_nothing():
    assert {(line.rows, line.clicks) for line in waterfall({}).values()} == {(0, 0)}
