"""A curve in few words, and how far two curves are apart."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from support.curve_example import by_device, hand, small_counts

from rankdrift.core.errors import NotIdentified
from rankdrift.estimation import estimate


@pytest.fixture(scope="module")
def fits():
    """Estimates of each kind: by knots, by rank, by segment and by bootstrap."""
    counts = small_counts()
    return {
        "loglog": estimate(counts),
        "direct": estimate(counts, curve="direct"),
        "by": estimate(small_counts(segments=3), by="device"),
        "bootstrap": estimate(counts, errors="bootstrap", samples=30, extrapolate_to=15),
    }


# In few words


def test_summary_is_plain_and_short():
    told = by_device().summary(level=0.9)
    json.dumps(told, allow_nan=False)
    assert told["ranks"] == "1–3, 5"
    assert told["clicks"] == 71
    assert told["thin"] == "5"
    assert told["gaps"] == {"no clicked pair moved there or away": "4"}
    assert list(told["at"]) == [1, 2, 3, 5]
    assert told["at"][5]["high"] == hand().table(0.9)["high"][3]
    assert told["segments"] == ["web", "(none)", "a\\/b\\\\"]
    assert told["left_out"] == {"tv": "The counts hold no usable pair."}
    assert told["segments_differ"]["spread_percent"] == pytest.approx(100 * (np.exp(0.05) - 1))


def test_summary_of_a_long_curve_has_a_few_ranks_and_the_reference(fits):
    p = fits["loglog"].relative_to(7)
    assert list(p.summary()["at"]) == [1, 2, 3, 5, 7, 10]


def test_repr_is_one_short_line():
    assert repr(by_device()) == (
        "<Propensities: direct, every; ranks 1–3, 5 relative to rank 1; 71 clicks; "
        "3 segments by device>"
    )


def test_the_notebook_view_is_escaped():
    bad = "<script>alert(1)</script>"
    p = replace(by_device(), method=bad, gaps={4: bad}, segment_columns=(bad,))
    p = replace(p, by_segment={(bad,): hand()}, shrunk={})
    seen = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append(tag)
    parser.feed(p._repr_html_())
    assert set(seen) == {"table", "thead", "tbody", "tr", "th", "td", "div"}
    assert p._repr_html_().count("&lt;script&gt;") == 4
    assert "<td>0.25</td><td>0.147 to 0.424</td>" in p._repr_html_()
    assert "thin data" in p._repr_html_()


# Two curves


def test_compare_tells_the_largest_and_the_mean_difference():
    other = hand(log_p=np.log([1, 0.5, 0.2, 0.11]), clicks=np.array([0, 20, 30, 1]))
    told = hand().distance_to(other)
    assert told["max_percent"] == pytest.approx(25)
    assert told["max_rank"] == 3
    assert told["mean_percent"] == pytest.approx((40 * 0 + 40 * 25 + 2 * 10) / 82)
    assert told["shared"] == "1–3, 5"
    assert "same counts" in told["note"]
    assert other.distance_to(hand())["mean_percent"] == pytest.approx(told["mean_percent"])


def test_compare_takes_both_relative_to_the_same_rank():
    told = hand().distance_to(hand().relative_to(3))
    assert told["relative_to"] == 1
    assert told["max_percent"] == pytest.approx(0, abs=1e-10)
    deeper = hand(ranks=np.array([2, 3, 5, 6], dtype=np.int32), reference=2)
    told = hand().distance_to(deeper)
    assert told["relative_to"] == 2
    assert (told["only_first"], told["only_second"]) == ("1", "6")
    assert told["max_percent"] == pytest.approx(25)  # p_5/p_2: 1/5 here, 1/4 there


def test_compare_without_clicks_weighs_ranks_alike():
    none = hand(clicks=np.zeros(4, int))
    told = none.distance_to(replace(none, log_p=np.log([1, 0.5, 0.25, 0.2])))
    assert told["mean_percent"] == pytest.approx(100 / 3)


def test_compare_needs_two_shared_ranks():
    other = hand(ranks=np.array([5, 6, 7, 8], dtype=np.int32), reference=5)
    with pytest.raises(NotIdentified, match="share 1 rank, and"):
        hand().distance_to(other)
