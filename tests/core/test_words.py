"""Numbers and names as people read them."""

import pytest

from rankdrift.core.errors import did_you_mean
from rankdrift.core.words import figure, many, margin, ranges, rank_words, segment_words


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
