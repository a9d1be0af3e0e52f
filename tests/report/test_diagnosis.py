"""A diagnosis as it is told: the whole first, then what objects, on a page and in the terminal."""

import io
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console
from support.results_example import EVIL, made

from rankdrift.core.errors import BadOption
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.diagnosing import Check, Diagnosis, diagnose
from rankdrift.pipeline import make_report
from rankdrift.report.diagnosis import HEADLINES, UNSEEN, sort_checks
from rankdrift.report.page.difference_svg import (
    APART,
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    common_reach,
    difference_picture,
)
from rankdrift.report.results import gather
from rankdrift.report.terminal.diagnosis import diagnosis_report

GOOD, CAUTION, SERIOUS, CANNOT_TELL = Verdict
CURVE = {"ranks": [1, 3, 9, 40], "difference": [0.0, 0.2, 0.5, 0.9], "error": [0, 0.1, 0.2, 0.3]}
CHECKS = {
    GOOD: [("score", GOOD), ("relevance", GOOD), ("queries", GOOD), ("fit", GOOD)],
    CAUTION: [("score", GOOD), ("relevance", GOOD), ("queries", CAUTION)],
    SERIOUS: [("score", SERIOUS), ("gaps", CAUTION), ("fit", GOOD)],
    CANNOT_TELL: [("score", CANNOT_TELL), ("relevance", GOOD), ("queries", GOOD)],
}


@pytest.fixture(scope="module")
def real():
    return diagnose(made().counts)


def found(named, **numbers):
    return Diagnosis(
        tuple(Check(name, v, f"About {name}.", f"Do {name}.", numbers) for name, v in named)
    )


def printed(diagnosis, width=80):
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)
    console.print(diagnosis_report(diagnosis))
    return out.getvalue()


def body(page):
    """The part of a page that people see, without its style."""
    return page.html[page.html.index("<body") :]


@pytest.mark.parametrize("verdict", CHECKS)
def test_the_whole_comes_first(verdict):
    diagnosis = found(CHECKS[verdict])
    assert diagnosis.verdict is verdict
    told = " ".join(printed(diagnosis).split())
    assert told.startswith(f"{verdict.capitalize()}: {HEADLINES[verdict]}")
    page = make_report(diagnosis)
    assert page.verdict is verdict
    pill = f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'
    sentence = HEADLINES[verdict][0].upper() + HEADLINES[verdict][1:]
    assert body(page).index(f"{pill} {sentence}") < body(page).index("<main>")


def test_what_objects_is_told_in_full_and_the_rest_in_short():
    named = [("fit", GOOD), ("gaps", CAUTION), ("users", CANNOT_TELL), ("score", SERIOUS)]
    told = printed(found([*named, ("trend", CAUTION), ("period", GOOD)]))
    order = ["score\nAbout score.\n> Do score.", "gaps\nAbout gaps.\n> Do gaps.",
             "  users  Do users.", "Good: fit, period\n", "  trend  About trend."]  # fmt: skip
    places = [told.index(part) for part in order]
    assert places == sorted(places)
    for hidden in ("About users", "About fit", "Do fit", "Do trend"):
        assert hidden not in told


def test_checks_for_information_are_apart_whatever_they_say():
    checks = found([("trend", CAUTION), ("click probabilities", GOOD), ("fit", GOOD)]).to_dict()
    told = sort_checks(checks["checks"])
    assert [check["name"] for check in told.information] == ["trend", "click probabilities"]
    assert [check["name"] for check in told.good] == ["fit"]
    assert not told.objections and not told.untold


def test_what_cannot_be_told_is_listed_with_what_to_do(real):
    assert len(real.unseen) == 3
    terminal = " ".join(printed(real).split())
    shown = re.sub(r"</?span[^>]*>", "", body(make_report(real)))
    assert terminal.count(UNSEEN) == shown.count(f"<h3>{UNSEEN}</h3>") == 1
    for sentence in real.unseen:
        assert sentence in terminal and f"<li>{sentence}</li>" in shown
    seen = found(CHECKS[GOOD])
    assert not seen.unseen and UNSEEN not in printed(seen) + body(make_report(seen))


def test_what_is_told_of_a_danger_follows_what_is_there():
    """Where the column is logged, days are lacking; where a check objected, it was told."""
    (told,) = found(CHECKS[CANNOT_TELL]).unseen
    assert "log the score" in told and "add days" not in told
    (thin,) = found(CHECKS[CANNOT_TELL], p_value=0.5).unseen
    assert "To know: do score; or" in thin and "log the score" not in thin
    for name, verdict in (("score", SERIOUS), ("moves", CAUTION), ("moves", GOOD)):
        moved = [text for text in found([(name, verdict)]).unseen if "docs moved" in text]
        assert bool(moved) == (verdict is GOOD), name


def test_too_few_clicks_behind_the_curve_come_first():
    thin = Check("support", CANNOT_TELL, "0 of 3 ranks are well supported; thin: 1.", "Add days.")
    assert Diagnosis((thin, *found(CHECKS[CANNOT_TELL]).checks)).unseen[0] == (
        "The curve itself cannot be told from this log: 0 of 3 ranks are well supported. "
        "To know: add days."
    )


@pytest.mark.parametrize("width", [80, 60, 40])
def test_no_line_is_broken_inside_a_word(width, real):
    told = printed(real, width)
    assert max(map(len, told.splitlines())) <= width
    assert sorted(told.split()) == sorted(printed(real, 2_000).split())


def test_the_page_shows_objections_first_and_folds_the_rest():
    html = body(make_report(found([("fit", GOOD), ("users", CANNOT_TELL), ("gaps", CAUTION)])))
    section = html[html.index('id="checks"') : html.index("</section>", html.index('id="checks"'))]
    open_part, folded = section.split("<details>", 1)
    assert "About gaps." in open_part and "Do gaps." in open_part
    assert "About users." in folded and "About fit." in folded
    assert "<summary>Could not tell (1): users</summary>" in folded
    assert "<summary>Good (1): fit</summary>" in folded


def test_a_check_with_a_curve_has_its_picture():
    html = body(make_report(found(CHECKS[SERIOUS], **CURVE)))
    assert html.count('<svg class="difference') == 3
    words = "the difference by rank, from 0% to +146%"
    assert f'aria-label="score, serious: {words}"' in html
    assert 'class="difference' not in body(make_report(found(CHECKS[SERIOUS])))


@pytest.mark.parametrize("scale", [0.01, 1, -1, 8, -1e6, 1e6])
@pytest.mark.parametrize("noise", [0.1, 1, 20])
def test_pictures_stay_inside_their_axes_and_ticks_apart(scale, noise):
    off = [scale * value for value in CURVE["difference"]]
    curve = {**CURVE, "difference": off, "error": [0, noise, noise, noise]}
    picture = difference_picture(curve, common_reach([curve]))
    for name in ("band", "line"):
        points = [tuple(map(float, at)) for at in re.findall(r"([\d.]+) ([\d.]+)", picture[name])]
        assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in points)
    heights = sorted(y for _, y in picture["y"])
    assert picture["zero"] in heights and len(heights) > 1
    assert all(b - a >= APART - 0.2 for a, b in pairwise(heights))
    assert [text for text, _ in picture["x"]] == ["1", "2", "5", "10", "20"]
    assert bool(picture["off"]) == (abs(scale) > 5)  # beyond a hundredfold


def test_checks_that_could_not_tell_do_not_stretch_the_axis_of_the_others():
    small = {**CURVE, "difference": [0.0, 0.02, -0.03, 0.01], "error": [0, 0.02, 0.02, 0.02]}
    wild = {**CURVE, "difference": [0.0, 3.0, -3.0, 2.0]}
    checks = [
        Check(name, verdict, "Words.", "", numbers)
        for name, verdict, numbers in (
            ("score", GOOD, small),
            ("gaps", GOOD, small),
            ("users", CANNOT_TELL, wild),
        )
    ]
    html = body(make_report(Diagnosis(tuple(checks))))
    ticks = [
        re.findall(r">([^<>]*%)</text>", svg)
        for svg in re.findall(r'<svg class="difference.*?</svg>', html, re.S)
    ]
    assert len(ticks) == 3 and ticks[0] == ticks[1] == ticks[2]
    assert max(abs(int(text.strip("+−%"))) for text in ticks[0]) <= 50
    # One outlier among many that could tell does not stretch it either.
    assert common_reach([small] * 5 + [wild]) == common_reach([small])


def test_ticks_are_percents_of_the_propensity():
    curve = {**CURVE, "difference": [0.0, -0.3, -0.7, -0.2]}
    picture = difference_picture(curve, common_reach([curve]))
    ticks = dict(picture["y"])
    assert "−50%" in ticks and "0%" in ticks
    assert picture["words"] == "from −50% to 0%"


def test_strangers_words_in_a_diagnosis_stay_text():
    nasty = {
        "verdict": "serious", "unseen": [EVIL],
        "checks": [{"name": EVIL, "verdict": v, "words": f"{EVIL} --x{EVIL}", "advice": EVIL,
                    "numbers": CURVE} for v in ("serious", "caution", "good", "unknown")],
    }  # fmt: skip
    html = make_report(nasty).html
    assert EVIL not in html and html.count("<script") == 2
    assert html.count("&lt;script&gt;alert(1)") >= 4 * 4


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "splendid"},
        {"checks": [{"name": "fit", "verdict": "x' onclick='y"}]},
        {"checks": [{"name": "fit", "verdict": "good", "numbers": {**CURVE, "error": [1.0]}}]},
        {"checks": [{"name": "fit", "verdict": "good", "numbers": {**CURVE, "error": ["<"] * 4}}]},
    ],
)
def test_a_damaged_diagnosis_is_refused(change):
    with pytest.raises(BadOption, match="damaged or was written by another version"):
        gather({"verdict": "good", "unseen": [], "checks": [], **change})


def test_what_older_files_call_good_was_not_looked_at_closely():
    old = {"verdict": "good", "checks": [{"name": "fit", "verdict": "unknown"}]}
    told = gather(old).diagnosis
    assert told["verdict"] is CANNOT_TELL and told["checks"][0]["verdict"] is CANNOT_TELL
    assert gather({**old, "unseen": []}).diagnosis["verdict"] is GOOD


def test_numbers_that_are_not_known_are_null_and_not_drawn():
    unknown = found(CHECKS[SERIOUS], **{**CURVE, "error": [0.0, *[float("nan")] * 3]}, noise=np.inf)
    plain = json.loads(json.dumps(unknown.to_dict(), allow_nan=False))
    assert plain["checks"][0]["numbers"]["error"] == [0.0, None, None, None]
    assert plain["checks"][0]["numbers"]["noise"] is None
    assert 'class="difference' not in body(make_report(unknown))
    with pytest.raises(BadOption, match="no curve to draw"):
        unknown.plot("score")
