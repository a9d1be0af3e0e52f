"""The pictures of an inspection's page, worked out from the counts by hand."""

import math
import re
from dataclasses import replace

import pytest

from rankdrift import inspect, read_log
from rankdrift.counts.connection import Connection
from rankdrift.counts.counts import ByRank
from rankdrift.report.page.inspection import (
    BOTTOM,
    LEFT,
    MOST_SEGMENTS,
    RIGHT,
    TOP,
    inspection_page,
)

# Coordinates are rounded to hundredths, widths from two of them.
ROUNDED = 0.011
PIXEL = 0.021


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rows = [f"q{i},{d},{1 + (d + i) % 3},{int((d + 2 * i) % 4 == 0)}" for i in range(40)
            for d in range(3)] + [f"q0,{d},{1 + (d + 1) % 3},1" for d in range(3)]  # fmt: skip
    path.write_text("\n".join(["query,doc,rank,click", *rows]))
    return inspect(read_log(path))


def shown(found, impressions, clicks, ranks=None):
    """The page of counts by rank as given."""
    ranks = ranks or list(range(1, len(impressions) + 1))
    table = ByRank([0] * len(ranks), ranks, impressions, clicks)
    return inspection_page(replace(found, counts=replace(found.counts, by_rank=table)))


def bars(text):
    pattern = r'<rect class="bar" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"'
    return [tuple(map(float, found)) for found in re.findall(pattern, text)]


def x_of(rank, deepest):
    return LEFT + (RIGHT - LEFT) * math.log(rank) / math.log(deepest + 1)


def test_bars_are_as_wide_as_their_ranks_and_as_high_as_their_rates(small):
    impressions, clicks = [10_000, 10_000, 10_000, 10_000], [4000, 2000, 1000, 500]
    text = shown(small, impressions, clicks)
    # The axis ends where the margin of the highest does.
    top = 0.4 + 1.96 * math.sqrt(4000) / 10_000
    found = bars(text)
    assert len(found) == 4
    for rank, (x, y, width, height) in enumerate(found, start=1):
        assert x == pytest.approx(x_of(rank, 4), abs=ROUNDED)
        assert x + width + 0.6 == pytest.approx(x_of(rank + 1, 4), abs=PIXEL)
        assert y + height == pytest.approx(BOTTOM, abs=ROUNDED)
        rate = clicks[rank - 1] / impressions[rank - 1]
        assert height == pytest.approx((BOTTOM - TOP) * rate / top, abs=ROUNDED)


def test_margins_stand_in_the_middle_of_their_bars(small):
    text = shown(small, [10_000, 400], [4000, 4])
    lines = re.findall(r'<line class="margin" x1="(\S+)" x2="(\S+)" y1="(\S+)" y2="(\S+)"', text)
    top = 0.4 + 1.96 * math.sqrt(4000) / 10_000
    rates = ((0.4, 1.96 * math.sqrt(4000) / 10_000), (0.01, 1.96 * 2 / 400))
    for rank, (line, (rate, margin)) in enumerate(zip(lines, rates, strict=True), start=1):
        x1, x2, low, high = map(float, line)
        middle = (x_of(rank, 2) + x_of(rank + 1, 2)) / 2
        assert (x1, x2) == pytest.approx((middle, middle), abs=ROUNDED)
        scale = (BOTTOM - TOP) / top
        assert low == pytest.approx(BOTTOM - scale * max(rate - margin, 0), abs=ROUNDED)
        assert high == pytest.approx(BOTTOM - scale * (rate + margin), abs=ROUNDED)


def test_a_margin_that_is_all_noise_does_not_squeeze_the_bars(small):
    """One click of two impressions may be anything: the axis ends at one and a half times 0.5."""
    (_, y, _, height), *_ = bars(shown(small, [2], [1]))
    assert height == pytest.approx((BOTTOM - TOP) / 1.5, abs=ROUNDED)
    assert y == pytest.approx(BOTTOM - height, abs=ROUNDED)
    assert re.search(rf'y2="{TOP}(\.0)?"', shown(small, [2], [1]))  # and the margin is cut there


def test_ranks_that_were_not_shown_have_no_bar_and_deep_ones_are_no_thinner_than_seen(small):
    assert len(bars(shown(small, [50, 0, 50], [5, 0, 5]))) == 2
    wide = bars(shown(small, [9] * 60, [1] * 60))
    assert len(wide) == 60 and min(width for *_, width, _ in wide) >= 0.4
    pooled = bars(shown(small, [9] * 61, [1] * 61))
    assert len(pooled) < 60
    (x, _, width, _) = pooled[-1]
    assert x + width == pytest.approx(RIGHT - 0.6, abs=PIXEL)


def test_a_log_without_clicks_has_bars_of_no_height(small):
    assert {height for *_, height in bars(shown(small, [50, 50], [0, 0]))} == {0.0}


def test_a_rank_without_clicks_does_not_squeeze_the_others(small):
    (_, _, _, height), _ = bars(shown(small, [10**8, 10**8], [10**6, 0]))
    top = 0.01 + 1.96 * 10**3 / 10**8
    assert height == pytest.approx((BOTTOM - TOP) * 0.01 / top, abs=ROUNDED)


@pytest.mark.parametrize(
    ("deepest", "wanted"), [(1, [1]), (19, [1, 2, 5, 10]), (20, [1, 2, 5, 10, 20])]
)
def test_ticks_are_1_2_5_up_to_the_deepest_rank(small, deepest, wanted):
    text = shown(small, [100] * deepest, [10] * deepest)
    ticks = re.findall(
        rf'<text x="(\S+)" y="{BOTTOM + 13}" text-anchor="middle">(\d+)</text>', text
    )
    assert [int(rank) for _, rank in ticks] == wanted
    for x, rank in ticks:
        middle = (x_of(int(rank), deepest) + x_of(int(rank) + 1, deepest)) / 2
        assert float(x) == pytest.approx(middle, abs=PIXEL)


@pytest.mark.parametrize(
    ("rate", "labels"),
    [
        (0.4, ["0%", "10%", "20%", "30%", "40%"]),
        (0.8, ["0%", "20%", "40%", "60%", "80%"]),
        (0.09, ["0%", "2.0%", "4.0%", "6.0%", "8.0%"]),
        (0.12, ["0%", "5.0%", "10%"]),
        (0.0115, ["0%", "0.50%", "1.0%"]),
    ],
)
def test_lines_are_at_round_rates(small, rate, labels):
    n = 10**12  # so that the margin is next to nothing
    text = shown(small, [n], [int(rate * n)])
    found = re.findall(r'<text x="32" y="(\S+)" text-anchor="end">(\S+?)</text>', text)
    assert [label for _, label in found] == labels
    for y, label in found:
        height = (BOTTOM - TOP) * float(label.rstrip("%")) / 100 / rate
        assert float(y) - 3.5 == pytest.approx(BOTTOM - height, abs=0.1)


def strip(found, *blocks, alone=()):
    text = inspection_page(replace(found, connection=Connection(tuple(blocks), tuple(alone))))
    inside = text[text.index('class="strip"') :] if 'class="strip"' in text else ""
    return re.findall(r'<path class="(\w+)" d="M(\S+) 0h([\d.]+)v2', inside)


def test_the_strip_has_a_run_for_ranks_that_belong_together(small):
    found = strip(small, (1, 2, 3, 5), (6, 7), alone=(8, 10))
    whole = math.log(11)
    runs = [("main", 1, 4), ("main", 5, 6), ("other", 6, 8), ("alone", 8, 9), ("alone", 10, 11)]
    assert [name for name, *_ in found] == [name for name, *_ in runs]
    for (_, left, width), (_, first, end) in zip(found, runs, strict=True):
        assert float(left) == pytest.approx(100 * math.log(first) / whole, abs=0.001)
        assert float(width) == pytest.approx(100 * math.log(end / first) / whole, abs=0.001)


def test_no_strip_without_ranks(small):
    assert strip(small) == []


def test_sizes_that_are_estimates_say_so(small):
    text = inspection_page(small)
    tiles = dict(re.findall(r'<div><span class="soft">([^<]+)</span><b>([^<]+)</b></div>', text))
    assert tiles["rows"] == "123" and tiles["clicks"] == "43"
    assert tiles["usable pairs"] == f"{small.counts.n_pairs:,}"
    assert tiles["queries"].startswith("about ") and tiles["docs"].startswith("about ")
    unknown = replace(small, sizes={**small.sizes, "queries": None})
    assert '<span class="soft">queries</span>' not in inspection_page(unknown)


@pytest.mark.parametrize("more", [0, 3])
def test_many_segments_are_cut_and_counted(small, more):
    n = MOST_SEGMENTS + more
    many = replace(
        small.counts, segment_columns=("site",), segments=tuple((f"s{i}",) for i in range(n)),
        by_rank=ByRank(list(range(n)), [1] * n, [9] * n, [1] * n),
    )  # fmt: skip
    text = inspection_page(replace(small, counts=many))
    assert re.findall(r"and (\d+) more</p>", text) == [str(more)] * bool(more)
    assert len(re.findall(r"<tr><td>s\d+</td>", text)) == MOST_SEGMENTS


def test_a_command_is_named_where_none_is_given(small):
    assert "rankdrift harvest LOG -o counts.parquet" in inspection_page(small)
    own = inspection_page(small, next_commands=["do this"])
    assert "do this" in own and "harvest LOG" not in own


def test_what_has_no_value_is_not_in_the_provenance(small):
    text = inspection_page(small)
    told = text[text.index("Options and provenance") :]
    assert "<th>input</th>" in told and "<th>max_rank</th>" in told
    assert "<th>days</th><td></td>" not in told and "None" not in told
