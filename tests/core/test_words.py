"""Numbers and names as people read them."""

import math
import re

import pytest

from rankdrift.core.errors import did_you_mean
from rankdrift.core.words import (
    cell,
    chance_words,
    figure,
    many,
    margin,
    named_ranks,
    off_by,
    percent,
    ranges,
    rank_words,
    segment_words,
    verb,
)


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([], ""),
        ([3], "3"),
        ([2, 1], "1–2"),
        ([60, *range(1, 41), 43, 50, 51, 43], "1–40, 43, 50–51, 60"),
        (range(1, 40, 2), "1, 3, 5, 7, 9, 11, 13, 15, and 12 more"),
    ],
)
def test_ranges(ranks, words):
    assert ranges(ranks) == words


def test_ranges_may_be_cut_sooner():
    assert ranges([1, 3, 5, 7], most=2) == "1, 3, and 2 more"
    assert ranges([1, 2, 4, 6, 7, 9], most=2) == "1–2, 4, and 3 more"  # ranks, not ranges


def test_rank_words():
    assert (rank_words(3, 3), rank_words(3, 5)) == ("3", "3–5")


def test_figures_have_about_three_digits_and_no_power_of_ten():
    assert [figure(x) for x in (None, 1234.5, 2.5, 1.0, 0.5, 0.05, 0.00005)] == [
        *("", "1,234.5", "2.50", "1.000", "0.500", "0.0500", "0.000050")
    ]


def test_margins_past_a_factor_of_two_say_so():
    assert (margin(0.12), margin(1.5)) == ("±12%", "over ±100%")


def test_many():
    assert [many(n, "day") for n in (0, 1, 2000)] == ["0 days", "1 day", "2,000 days"]


def test_segments_are_harmless_and_tell_null_from_text():
    assert segment_words(("web", None, "a\x1b[0m")) == r"web, (missing), a\x1b[0m"


def test_did_you_mean():
    assert did_you_mean("Keywrods", ["keywords", "doc"]) == " Did you mean 'keywords'?"
    assert did_you_mean("zzz", ["keywords", "doc"]) == ""
    assert did_you_mean("x", []) == ""


@pytest.mark.parametrize("n", [0, 1, 2, 999, 1_000_000])
def test_one_of_a_thing_is_one_and_many_are_many(n):
    assert (many(n, "query", "queries") == f"{n:,} query") == (n == 1)
    assert (verb(n, "has", "have") == "has") == (n == 1)


@pytest.mark.parametrize(
    ("ranks", "words"), [([3], "rank 3"), ([3, 3], "rank 3"), ([4, 3], "ranks 3–4"), ([], "ranks ")]
)
def test_ranks_with_their_word(ranks, words):
    assert named_ranks(ranks) == words


def test_no_number_is_told_as_a_power_of_ten_nor_as_none():
    sizes = [0.0, *(10.0**k for k in range(-300, 301)), math.inf, math.nan]
    for told in (figure, percent, off_by, margin, chance_words):
        for size in sizes if told in (figure, percent) else sizes[:-1]:
            if told is chance_words and size > 1:
                continue  # a chance is at most 1
            assert not re.search(r"\de[-+]?\d|nan|inf", told(size)), (told, size)
            assert len(told(size)) <= len("over 1,000,000"), (told, size)


def test_past_a_factor_of_two_a_size_says_so():
    assert [off_by(x) for x in (0.0, 0.123, 0.99, 1.0, 7.12)] == [
        *("0%", "12%", "99%", "over 100%", "over 100%")
    ]
    assert off_by(0.1234, 1) == "12.3%"


def test_a_p_value_below_all_that_matters_says_so():
    assert [chance_words(p) for p in (0.0, 1e-9, 0.0001, 0.0462, 1.0)] == [
        *("p < 0.0001", "p < 0.0001", "p = 0.0001", "p = 0.046", "p = 1")
    ]


@pytest.mark.parametrize("separator", ["", ";", "\t", "\n", "; ", ';"', ";' ", "lamp;", "lamp;;\t"])
@pytest.mark.parametrize("sign", list("=+-@\uff1d\uff0b\uff0d\uff20"))
def test_no_cell_begins_a_formula_wherever_a_spreadsheet_ends_cells(separator, sign):
    written = cell(f"{separator}{sign}1+1")
    assert f"\\{sign}1+1" in written
    assert written.replace("\\", "") == f"{separator}{sign}1+1"


@pytest.mark.parametrize(
    "text", ["", "lamp", "a-b", "a;b", "a; b-c", "1=1", "a, -b", "\\=1", "(none)"]
)
def test_other_cells_are_as_they_were(text):
    assert cell(text) == text
