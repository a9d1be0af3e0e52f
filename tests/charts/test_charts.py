"""Every result can be drawn, in one style, and kept as PNG, SVG or a page without a network."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.results_example import EVIL, made

from rankdrift.charts.checks import checks_chart
from rankdrift.charts.difference import difference_chart
from rankdrift.charts.funnel import funnel_chart
from rankdrift.charts.importance import MOST_FEATURES, importance_chart
from rankdrift.charts.rates import rates_chart
from rankdrift.charts.style import COLOURS, Figure
from rankdrift.core.errors import BadOption
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import Dropped, Funnel, Used
from rankdrift.diagnosis.diagnosing import Check, Diagnosis, diagnose
from rankdrift.diagnosis.inspection import Inspection
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.comparison import Comparison
from rankdrift.ranking.ranker import Ranker
from rankdrift.simulate import searches


def rows_of(chart):
    found = chart.to_dict()
    return found["datasets"][found["data"]["name"]]


def test_every_result_has_a_plot():
    for kind in (Counts, Funnel, Inspection, Propensities, Diagnosis, Comparison, Ranker):
        assert callable(kind.plot)
    assert isinstance(made().methods.plot(), Figure)


@pytest.mark.parametrize("draw", [
    lambda: made().counts.plot(),
    lambda: made().counts.funnel.plot(),
    lambda: diagnose(made().counts).plot(),
    lambda: Diagnosis((found_by_rank(),)).plot(EVIL),
    lambda: Ranker.plot(SimpleNamespace(importance={EVIL: 1.0}, name=EVIL)),
], ids=["counts", "funnel", "diagnosis", "check", "ranker"])  # fmt: skip
def test_charts_are_kept_as_files(draw, tmp_path):
    figure = draw()
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<svg"), (".html", b"<!DOCTYPE")):
        figure.save(tmp_path / f"chart{ending}", scale=0.5)
        assert (tmp_path / f"chart{ending}").read_bytes().lstrip().startswith(start)
    assert EVIL not in (tmp_path / "chart.html").read_text("utf-8")


def test_rates_are_clicks_per_impression_of_each_segment():
    counts = made().counts
    rows = rows_of(rates_chart(counts))
    assert {row["segment"] for row in rows} == {EVIL, "web"}
    table = counts.by_rank
    for row in rows:
        if row["ranks"] == "3":
            number = counts.segments.index((row["segment"],))
            here = (table.segment == number) & (table.rank == 3)
            rate = table.clicks[here].sum() / table.impressions[here].sum()
            assert row["rate"] == pytest.approx(rate) and row["low"] < rate < row["high"]
    assert sum(row["clicks"] for row in rows) == table.clicks.sum()
    for part, keyed in ((counts, True), (counts.pool(), False)):
        colour = rates_chart(part).to_dict()["layer"][0]["encoding"]["color"]
        assert (colour["legend"] is not None) == keyed


def test_rates_of_an_inspected_log_are_those_of_its_counts(tmp_path):
    from rankdrift import inspect, read_log

    searches(tmp_path, rows=3000, days=1, queries=5, depth=20, click_rate=0.3)
    found = inspect(read_log(tmp_path))
    assert (
        found.plot(log_rank=False).chart.to_dict()
        == rates_chart(found.counts, log_rank=False).to_dict()
    )


def test_nothing_to_draw_is_said():
    counts = made().counts
    empty = counts.restrict(segments=[])
    with pytest.raises(BadOption, match="nothing to draw"):
        rates_chart(empty)
    with pytest.raises(BadOption, match="nothing to draw"):
        checks_chart(Diagnosis(()))


def test_the_funnel_adds_up():
    funnel = Funnel(100, 20, {"never_clicked": Dropped(60, 0)}, Used(40, 20, 9))
    rows = rows_of(funnel_chart(funnel))
    shares = {(row["reason"], row["what"]): row["share"] for row in rows}
    assert shares["pair never got a click", "rows"] == 0.6
    assert shares["used", "rows"] == 0.4 and shares["used", "clicks"] == 1
    assert [row["reason"] for row in rows[::2]] == ["in the log", "pair never got a click", "used"]
    assert rows_of(funnel_chart(Funnel()))[0]["share"] == 0


def test_checks_stand_at_their_p_values():
    checks = (
        Check("a", "serious", "far", "do", {"p_value": 1e-30}),
        Check("b", "cannot tell", "who knows"), Check("c", "good", "fine", "", {"p_value": 0.5}),
    )  # fmt: skip
    rows = rows_of(checks_chart(Diagnosis(checks)))
    assert [row["p"] for row in rows] == [1e-6, 1, 0.5]
    assert [row["told"] for row in rows] == ["p < 0.0001", "", "p = 0.5"]


def test_importance_leaves_out_the_least():
    shares = dict(zip((f"f_{i}" for i in range(30)), np.linspace(1, 0, 30), strict=True))
    chart = importance_chart(shares, "m")
    assert [row["feature"] for row in rows_of(chart)] == list(shares)[:MOST_FEATURES]
    assert "5 features" in chart.to_dict()["title"]["subtitle"][0]
    assert chart.to_dict()["layer"][0]["mark"]["color"] == COLOURS[0]


def found_by_rank(**more):
    numbers = {"ranks": [1, 4, 9], "difference": [0.0, 0.1, -0.4], "error": [0.0, 0.05, 0.1]}
    return Check(EVIL, "caution", "They differ.", "", {**numbers, **more})


def test_a_check_is_drawn_as_what_it_found_at_each_rank():
    chart = Diagnosis((found_by_rank(),)).plot(EVIL).chart
    rows = rows_of(chart)
    assert [row["rank"] for row in rows] == [1, 4, 9]
    assert [row["off"] for row in rows] == pytest.approx(np.expm1([0, 0.1, -0.4]))
    assert [row["low"] for row in rows] == pytest.approx(np.expm1([0, 0.1 - 0.098, -0.4 - 0.196]))
    assert [row["high"] for row in rows] == pytest.approx(np.expm1([0, 0.1 + 0.098, -0.4 + 0.196]))


def test_a_band_much_wider_than_the_difference_runs_out_of_the_picture():
    chart = difference_chart(found_by_rank(error=[0.0, 3.0, 3.0])).to_dict()
    low, high = chart["layer"][2]["encoding"]["y"]["scale"]["domain"]
    assert low < np.expm1(-0.4) and high < 1


def test_what_is_infinitely_far_off_is_drawn_all_the_same():
    rows = rows_of(difference_chart(found_by_rank(difference=[0.0, 1e4, -1e4])))
    assert [row["off"] for row in rows] == pytest.approx([0, 99, -0.99])


def test_only_a_check_that_compared_curves_by_rank_is_drawn_so():
    found = Diagnosis((Check("period", "good", "No period."), found_by_rank()))
    with pytest.raises(BadOption, match="no curve to draw of the check 'period': No period"):
        found.plot("period")
    with pytest.raises(BadOption, match=r"No check 'perid' was made\. Did you mean 'period'"):
        found.plot("perid")
