"""The pictures of a page: how far their axes reach, and what their captions say."""

import re
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from support.curve_example import hand
from support.results_example import made
from support.worlds import power, simulate

from rankdrift.estimation import estimate
from rankdrift.methods.click_rates import split_click_rates
from rankdrift.pipeline import make_report
from rankdrift.report.page.axis import (
    UNSEEN,
    Axis,
    largest_drawn,
    smallest_drawn,
    spaced,
    without_needless,
)
from rankdrift.report.page.curve_svg import TOP, curve_picture
from rankdrift.report.page.headline import NOTHING, WIDEST, headline, is_told, worth
from rankdrift.report.page.rates_svg import rate_pictures, rate_words
from rankdrift.report.page.series import all_series
from rankdrift.report.page.small_pictures import method_pictures, weight_picture
from rankdrift.report.results import gather

RANKS = 30


def curve_of(values, errors=0.1, supported=True, **changes):
    """A curve of ranks 1, 2, 3 … with these propensities."""
    size = len(values)
    log_p = np.log(values)
    return hand(
        ranks=np.arange(1, size + 1, dtype=np.int32),
        log_p=log_p - log_p[0],
        deviations=np.diag(np.r_[0.0, np.full(size - 1, errors)]),
        pairs=np.full(size, 90),
        clicks=np.full(size, 50),
        supported=np.full(size, supported),
        **changes,
    )


def first_line(curve):
    found = gather(curve)
    return all_series(found, found.curves, True)[0]


def falling(outlier=None, at=17):
    values = np.arange(1, RANKS + 1) ** -0.5
    if outlier:
        values[at - 1] = outlier
    return values


# -- axes --------------------------------------------------------------------------------------


def test_a_rank_that_is_far_off_does_not_stretch_the_axis_and_is_marked():
    plain = curve_picture([first_line(curve_of(falling()))], True, False)
    wild = curve_picture([first_line(curve_of(falling(outlier=80.0)))], True, False)
    assert wild["y"] == plain["y"] and wild["x"] == plain["x"]
    assert plain["off"] == "" and plain["lines"][0]["off"] == ""
    assert wild["off"] == "All, rank 17 (80.0)"
    x = Axis(1, RANKS, 54, 614, True)(17)
    assert wild["lines"][0]["off"] == f"M{round(x - 5, 1)} {float(TOP)}h10l-5 -8z"
    html = make_report(curve_of(falling(outlier=80.0))).html
    assert "off the chart, <b>All, rank 17 (80.0)</b>" in html


def test_a_rank_that_is_far_below_is_marked_where_axes_are_logarithmic():
    picture = curve_picture([first_line(curve_of(falling(outlier=1e-6)))], True, True)
    assert picture["off"] == "All, rank 17 (0.000001)"
    assert min(float(text) for text, _ in picture["y"]) >= 0.05


def test_a_steep_curve_keeps_its_first_rank():
    values = np.r_[1.0, np.full(RANKS - 1, 0.1)]
    picture = curve_picture([first_line(curve_of(values))], True, False)
    assert picture["off"] == "" and "1" in dict(picture["y"])
    third = curve_of(values).relative_to(3)
    picture = curve_picture([first_line(third)], True, False)
    assert picture["off"] == "" and max(float(text) for text, _ in picture["y"]) >= 8


def test_a_wild_curve_does_not_flatten_the_first():
    lines = [
        replace(first_line(curve_of(values)), shown=True, number=i)
        for i, values in enumerate((falling(), np.geomspace(1, 900, RANKS)))
    ]
    picture = curve_picture(lines, True, False)
    assert max(float(text) for text, _ in picture["y"]) <= 8
    assert picture["off"].endswith("more") and picture["lines"][0]["off"] == ""


@pytest.mark.parametrize("few", [0, 1, 2, 3])
def test_few_values_are_left_off_and_not_many(few):
    values = [*np.linspace(1, 2, 40), *[100.0] * few]
    assert largest_drawn(values, [0.0]) == (2 if few in (0, 1, 2) else 100)
    assert smallest_drawn([1 / v for v in values], [9.0]) == (0.5 if few < 3 else 0.01)
    assert largest_drawn(values, [70.0]) == (70 if few < 3 else 100)


def test_texts_do_not_touch():
    assert spaced([("1", 0.0), ("2", 10.0), ("5", 30.0), ("10", 61.0)], 30) == [
        ("1", 0.0),
        ("5", 30.0),
        ("10", 61.0),
    ]


def test_points_that_a_line_goes_through_anyhow_are_not_written():
    straight = [(float(x), 2.0 * x) for x in range(100)]
    assert without_needless(straight) == [straight[0], straight[-1]]
    bent = [(float(x), abs(x - 50.0)) for x in range(100)]
    assert without_needless(bent) == [bent[0], bent[50], bent[99]]
    rng = np.random.default_rng(1)
    wild = [(float(x), float(y)) for x, y in enumerate(rng.normal(0, 20, 200).cumsum())]
    kept = np.array(without_needless(wild))
    between = np.interp([x for x, _ in wild], kept[:, 0], kept[:, 1])
    slopes = np.abs(np.diff(kept[:, 1]) / np.diff(kept[:, 0])).max()
    # Nowhere further off than UNSEEN, measured across the line; upwards that is more.
    assert np.abs(between - [y for _, y in wild]).max() <= UNSEEN * np.hypot(1, slopes)


# -- the headline ------------------------------------------------------------------------------


def test_a_headline_has_its_interval():
    line = first_line(curve_of(falling(), errors=0.1))
    low, p, high = line.low[9], line.p[9], line.high[9]
    assert headline([line], 10) == worth(line, 10)
    assert worth(line, 10) == (
        f"A click at rank 10 is worth {1 / p:.2f} ({1 / high:.2f}–{1 / low:.2f}) clicks at rank 1."
    )


@pytest.mark.parametrize(
    "curve",
    [
        curve_of(falling(), errors=2.0),
        curve_of(falling(), supported=False),
        replace(curve_of(falling()), errors="none"),
        replace(curve_of(falling()), supported=np.arange(1, RANKS + 1) > 1),
    ],
    ids=["wide", "thin", "no errors", "thin reference"],
)
def test_where_the_interval_says_nothing_there_is_no_headline(curve):
    line = first_line(curve)
    assert not is_told(line, 10) and headline([line], 10) == NOTHING
    html = make_report(curve).html
    assert f"<h1>{NOTHING}</h1>" in html and "A click at rank 10 is worth" not in html
    assert "cannot be told" in html or "no interval is known" in html


def test_the_widest_interval_of_a_headline():
    line = first_line(curve_of(falling()))
    for factor, told in ((WIDEST, True), (WIDEST * 1.01, False)):
        wide = replace(line, low=[0.1] * RANKS, high=[0.1 * factor] * RANKS)
        assert is_told(wide, 10) == told
    assert not is_told(line, 1) and worth(line, 1) == "Rank 1 is the unit of all others."


# -- position and relevance --------------------------------------------------------------------


def test_position_and_relevance_make_the_click_rate():
    counts, curve = made().counts, made().curve
    split = split_click_rates(counts, curve)
    assert split.rate == pytest.approx(split.position * split.relevance)
    assert (split.first[0], split.last[0], split.rate[0], split.relevance[0]) == (1, 1, 1, 1)
    assert (split.position_low <= split.position).all()
    assert (split.position <= split.position_high).all()
    # Rank by rank at the top: the propensity and the rates themselves.
    assert split.position[9] == pytest.approx(float(curve.at(10)))
    totals = counts.pool().by_rank
    rate = totals.clicks / totals.impressions
    assert split.rate[9] == pytest.approx(rate[totals.rank == 10][0] / rate[totals.rank == 1][0])
    interval = curve.ratio(10, 1)
    rate, position, relevance = split.at(10)
    assert (position.low, position.high) == pytest.approx((interval.low, interval.high))
    assert relevance.high / relevance.low > position.high / position.low


def test_relevance_that_is_the_same_everywhere_is_found_to_be():
    world = simulate(40_000, 20, 3, curve=power(0.7), query_effect=0.0, shown=(4, 4))
    # Of these pairs all impressions are counted, whatever their rank: rates are p times a constant.
    split = split_click_rates(world.counts, estimate(world.counts, curve="loglog"))
    assert ((split.relevance_low <= 1.05) & (split.relevance_high >= 0.95)).mean() >= 0.9


def test_segments_have_a_picture_each_and_names_only_if_allowed():
    counts, curve = made().counts, made().curve
    named, hidden = (rate_pictures(curve, counts, 10, queries) for queries in (True, False))
    assert [p["name"] for p in hidden] == ["segment 1", "segment 2"]
    assert {p["name"] for p in named} == {"<script>alert(1)</script>", "web"}
    pool = estimate(counts.pool())
    [one] = rate_pictures(pool, counts.pool(), 10, True)
    assert one["name"] == "" and one["width"] > named[0]["width"]


def test_the_caption_tells_numbers_with_their_intervals_or_that_it_cannot():
    counts = made().counts.pool()
    curve = estimate(counts)
    split = split_click_rates(counts, curve)
    told = rate_words(split, 10)
    at = curve.ratio(10, 1)
    assert re.search(r"alone it would be \S+% \(\S+% to \S+%\); the rest is relevance", told)
    assert f"{100 * at.value:.0f}%" in told
    vague = replace(curve, deviations=20 * curve.deviations)
    assert "cannot be told" in rate_words(split_click_rates(counts, vague), 10)
    assert rate_words(split, 10_000) == ""


# -- methods, weights, time --------------------------------------------------------------------


def test_methods_share_their_axes_and_have_the_first_behind_them():
    found = gather(made().methods)
    first, second = method_pictures(found.methods[0], found)
    assert (first["name"], second["name"]) == ("loglog", "direct")
    assert first["y"] == second["y"] and first["x"] == second["x"]
    assert [line["css_classes"] for line in second["lines"]] == ["behind", "c1 d0"]
    assert second["lines"][0]["line"] == first["lines"][0]["line"]
    assert second["lines"][0]["band"] == "" and second["lines"][1]["band"]


def test_weights_are_one_over_the_propensities():
    line = first_line(curve_of(falling()))
    picture = weight_picture([line])
    assert [text for text, _ in picture["y"]] == ["1", "2", "5"]
    points = re.findall(r"[ML]([\d.]+) ([\d.]+)", picture["lines"][0]["line"])
    assert len(points) == 2  # 1 / √rank is straight on these axes
    assert float(points[0][1]) > float(points[1][1])
    nothing = replace(line, p=[*line.p[:-1], 0.0], low=[0.0] * RANKS)
    assert weight_picture([nothing])["lines"][0]["band"]


def days_of(slopes, pairs=1500):
    """Counts of a day each, with these slopes of log p."""
    return [
        replace(
            simulate(pairs, 40, seed, curve=power(slope)).counts,
            days=(str(date(2024, 5, 1) + timedelta(seed)),),
        )
        for seed, slope in enumerate(slopes)
    ]


def test_counts_of_days_given_apart_tell_whether_the_curve_stays():
    steady = make_report(days_of([0.6] * 5)).html
    assert 'id="over-time"' in steady and "Chance alone explains such differences" in steady
    assert "2024-05-01" in steady and "of 5 days" in steady
    moved = make_report(days_of([0.2, 0.2, 0.2, 1.2, 1.2])).html
    assert "more than chance explains" in moved
    assert 'id="over-time"' not in make_report(sum(days_of([0.6] * 3)[1:], days_of([0.6])[0])).html
