import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.curve_example import by_device, hand, small_counts

from rankdrift.charts.curve import curve_chart
from rankdrift.charts.style import BLACK, COLOURS, Figure
from rankdrift.core.errors import BadOption
from rankdrift.estimation import estimate


def spec(p, **options):
    return curve_chart(p, **options).to_dict()


def rows_of(found, part=None):
    """The data of the chart, or of one of its layers."""
    return found["datasets"][(part or found)["data"]["name"]]


def layer(found, **wanted):
    """The one layer whose mark has these properties."""
    [one] = [
        layer for layer in found["layer"]
        if all(layer["mark"].get(name) == value for name, value in wanted.items())
    ]  # fmt: skip
    return one


def test_the_axes_explain_themselves():
    for part in spec(hand().relative_to(3))["layer"]:
        assert part["encoding"]["x"]["title"] == "Rank"
        assert part["encoding"]["y"]["title"] == "Propensity relative to rank 3"


def test_rows_are_those_of_the_table_and_gaps_break_the_line():
    rows = rows_of(spec(hand(), level=0.9))
    table = hand().table(0.9)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    drawn = [row for row in rows if row["propensity"] is not None]
    for name in ("rank", "propensity", "low", "high", "pairs", "clicks", "supported"):
        assert [row[name] for row in drawn] == table[name]
    assert rows[3] == {"curve": "All", "rank": 4, "propensity": None}
    assert layer(spec(hand()), type="line")["mark"]["invalid"].startswith("break-paths")
    assert [row["alone"] for row in drawn] == [False, False, False, True]  # 5: a bar, not a band


def test_thin_ranks_are_hollow_and_tooltips_have_the_numbers():
    found = spec(hand())
    hollow = layer(found, type="point", filled=False)
    assert "!datum.supported" in hollow["transform"][0]["filter"]
    tips = {tip["field"]: tip["title"] for tip in hollow["encoding"]["tooltip"]}
    assert set(tips) == {
        "rank", "propensity", "low", "high", "weight", "pairs", "clicks", "data",
    }  # fmt: skip
    assert tips["low"] == "95% interval, from"
    assert "Hollow points: thin data" in found["title"]["subtitle"]
    assert "No estimate for rank 4" in found["title"]["subtitle"]


def test_the_reference_is_marked_at_1():
    found = spec(hand().relative_to(2))
    [row] = rows_of(found, layer(found, shape="diamond"))
    assert (row["rank"], row["propensity"]) == (2, 1.0)


def test_scales_are_logarithmic_when_asked():
    def scales(found):
        encoding = layer(found, type="line")["encoding"]
        return encoding["x"]["scale"].get("type"), encoding["y"]["scale"].get("type")

    assert scales(spec(hand())) == ("log", None)
    assert scales(spec(hand(), log_rank=False, log_p=True)) == (None, "log")


@pytest.mark.parametrize("error", [5.0, 900.0])  # the second is infinite as a number
def test_a_band_far_wider_than_the_curve_does_not_flatten_it(error):
    wide = hand(deviations=np.diag([0, 0.1, 0.1, error]))
    for log_p in (False, True):
        found = spec(wide, log_p=log_p)
        json.dumps(found, allow_nan=False)
        bottom, top = layer(found, type="line")["encoding"]["y"]["scale"]["domain"]
        assert 1 < top < 2
        assert 0.03 < bottom < 0.101 if log_p else bottom == 0


def test_segments_have_colours_that_all_can_tell_apart():
    found = spec(by_device())
    scale = layer(found, type="line")["encoding"]["color"]["scale"]
    assert scale["domain"] == ["All", "web", "(none)", "a\\/b\\\\"]
    assert scale["range"] == [BLACK, *COLOURS[:3]]
    assert layer(found, type="line")["encoding"]["color"]["legend"]["title"] == "device"
    leaning = [r["propensity"] for r in rows_of(found) if r["curve"] == "web"][1]
    assert leaning == by_device().segment("web").at(2)
    assert layer(spec(hand()), type="line")["encoding"]["color"]["legend"] is None


def test_of_many_segments_those_with_the_most_clicks_are_drawn():
    many = {(f"s{i}",): hand(clicks=np.array([40, 20, 10, i])) for i in range(len(COLOURS) + 2)}
    many["All",] = hand(clicks=np.array([99, 99, 99, 99]))
    found = spec(replace(by_device(), by_segment=many, shrunk={}))
    drawn = layer(found, type="line")["encoding"]["color"]["scale"]["domain"]
    assert drawn == ["(All)", *(f"s{i}" for i in range(3, 9)), "All"]
    assert "3 segments with fewer clicks are not drawn" in found["title"]["subtitle"]


def test_truth_is_drawn_relative_to_the_same_rank():
    for truth in ([0.8, 0.4, 0.2, 0.1, 0.05, 0.01], {1: 0.8, 2: 0.4, 3: 0.2, 4: 0.1, 5: 0.05}):
        found = spec(hand().relative_to(2), truth=truth)
        rows = rows_of(found, layer(found, strokeDash=[6, 4]))
        assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
        assert [row["propensity"] for row in rows] == pytest.approx([2, 1, 0.5, 0.25, 0.125])
    with pytest.raises(BadOption, match="no propensity for rank 1"):
        curve_chart(hand(), truth={2: 0.5})


def test_without_errors_there_is_no_band_to_speak_of():
    found = spec(hand(errors="none", deviations=np.zeros((4, 0))))
    assert all(row.get("low") is None for row in rows_of(found))
    assert not any("interval" in line for line in found["title"]["subtitle"])


def test_charts_are_written_without_a_browser(tmp_path):
    figure = estimate(small_counts(segments=3), by="device").plot(log_p=True)
    assert isinstance(figure, Figure)
    for ending, start in ((".png", b"\x89PNG"), (".SVG", b"<svg")):
        figure.save(tmp_path / f"c{ending}")
        assert (tmp_path / f"c{ending}").read_bytes().startswith(start)
    assert b"Propensity relative to rank 1" in (tmp_path / "c.SVG").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_the_page_needs_no_network_and_no_segment_can_end_its_script(tmp_path):
    bad = "</script><script>alert(1)</script><!--"
    p = replace(by_device(), shrunk={}, by_segment={(bad,): hand(method=bad)}, method=bad)
    p.plot().save(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    tags = re.findall(r"<script[^>]*>", page)
    assert tags
    assert not any("src" in tag for tag in tags)
    assert not re.search(r"<link|@import|<!--", page)
    spec_at = page.rindex("const spec = ")
    assert page[spec_at:].count("</script>") == 1
    text = page[spec_at + len("const spec = ") : page.index(";\n", spec_at)]
    told = json.loads(text)
    assert bad in told["title"]["subtitle"][0]
    assert {row["curve"] for row in rows_of(told)} >= {"All"}


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(BadOption, match=r"'\.pgn'. Did you mean '\.png'"):
        hand().plot().save(tmp_path / "c.pgn")
    assert not list(tmp_path.iterdir())
