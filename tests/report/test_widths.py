"""Tables in a terminal, narrow or wide: no digit of a number is left out."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from support.curve_example import hand

from rankdrift.report.terminal.curve import curve_report

NARROW = 55  # columns, which a table with millions of clicks just needs
ADJUSTED = hand(provenance={"adjust": "score"})
LARGE = np.array([4_000_000, 80_000, 6_000, 2])


def shown(found, width, plain=None):
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(curve_report(found, 0.95, False, plain))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [*range(NARROW, 101, 5)])
@pytest.mark.parametrize("more", [{}, {"pairs": LARGE, "clicks": LARGE}])
def test_a_curve_s_numbers_are_whole_whatever_the_width(width, more):
    text = shown(hand(**more), width)
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    head, *rows = [line.split() for line in text.splitlines() if line[:4].strip().isdigit()] or [[]]
    assert [row[0] for row in (head, *rows)] == ["1", "2", "3", "5"]
    curve = hand(**more)
    assert head[1:4] == ["1.000"] * 3
    assert head[-2:] == [f"{curve.pairs[0]:,}", f"{curve.clicks[0]:,}"]


@pytest.mark.parametrize("plain", [None, ADJUSTED])
def test_bars_come_where_there_is_room_for_them(plain):
    assert "█" in shown(ADJUSTED, 80, plain) and "█" not in shown(ADJUSTED, 60, plain)


def test_what_is_larger_or_smaller_than_any_number_of_use_is_told_so():
    wild = hand(deviations=np.array([[0, 0], [30.0, 0], [0.1, 0.2], [0.3, -0.4]]))
    row = next(line for line in shown(wild, 80).splitlines() if line.startswith("2 "))
    assert row.split()[:4] == ["2", "0.500", "<0.001", ">1,000"]


def test_the_level_is_told_as_it_was_asked_for():
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(curve_report(hand(), 0.975, False))
    assert "intervals at 97.5%" in console.file.getvalue()
