"""The report in a browser: it asks for nothing, tells the right numbers, and obeys."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.curve_example import hand
from support.results_example import EVIL, RANKS, every, made

from rankdrift.core.words import figure
from rankdrift.pipeline import make_report
from rankdrift.report.page.headline import worth
from rankdrift.report.page.series import all_series
from rankdrift.report.results import gather

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
WIDE, PHONE = 1280, 390
SOON = 10_000  # milliseconds; all is there at once, but the machine may be busy
# Of a coordinate, in units of the picture: Python and JavaScript may round a half differently.
ROUNDING = 0.11


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    make_report(every()).save(path)
    return path.as_uri()


@pytest.fixture
def open_page(chromium, address):
    """Open the report; in the end it must have asked for nothing but itself, and not complained."""
    opened = []

    def start(where=address, width=WIDE, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(SOON)
        seen = SimpleNamespace(context=context, requests=[], complaints=[])
        context.on("request", lambda request: seen.requests.append(request.url))
        context.on("console", lambda message: seen.complaints.append(message.text))
        context.on("weberror", lambda error: seen.complaints.append(str(error.error)))
        page = context.new_page()
        page.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
        page.goto(where)
        opened.append((seen, where))
        return page

    yield start
    for seen, where in opened:
        seen.context.close()
        assert seen.requests == [where]
        assert seen.complaints == []


def numbers(page):
    """Rows of the table of numbers: name -> the other cells."""
    rows = page.locator("#numbers tbody tr")
    cells = [row.locator("td").all_text_contents() for row in rows.all()]
    return {name: rest for name, *rest in cells}


def told(curve, rank):
    """What the page should say of a rank."""
    i = curve.ranks.tolist().index(rank)
    low, high = (bound[i] for bound in curve.interval())
    p = curve.values[i]
    return [figure(p), f"{figure(low)}–{figure(high)}", figure(1 / p)]


def pool():
    """The first line of the report."""
    found = gather(made().curve)
    return all_series(found, found.curves, True)[0]


def point_at(page, rank, log=True):
    """Move the mouse over a rank of the chart."""
    page.locator("#chart").scroll_into_view_if_needed()
    at = page.evaluate(
        """([rank, last, log]) => {
            const box = document.querySelector("#chart").getBoundingClientRect();
            const share = log ? Math.log(rank) / Math.log(last) : (rank - 1) / (last - 1);
            return [box.left + (54 + 560 * share) / 640 * box.width, box.top + box.height / 2];
        }""",
        [rank, RANKS, log],
    )
    page.mouse.move(*at)


def paths(page):
    drawn = "nodes => nodes.map(n => [n.getAttribute('class'), n.getAttribute('d')])"
    return page.locator("#chart .lines path").evaluate_all(drawn)


def test_pointing_tells_the_numbers_of_the_propensities(open_page):
    page, p = open_page(), made().curve
    for rank in (2, 7, RANKS):
        point_at(page, rank)
        found = numbers(page)
        assert page.locator("#at").text_content() == str(rank)
        assert found["All"] == [*told(p, rank), ""]
        truth = made().truth["propensities"]["web"]["best_match"]
        assert found["web"] == [*told(p.segment("web"), rank), figure(truth[rank - 1])]
        assert page.locator("#said").text_content() == worth(pool(), rank)
    assert page.locator("#chart .marks circle").count() == 3


def test_touching_tells_them_too(open_page):
    page = open_page(width=PHONE, has_touch=True)
    chart = page.locator("#chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 614 / 640 - 1, box["y"] + box["height"] / 2)
    assert page.locator("#at").text_content() == str(RANKS)


def check_alike(page, first):
    """What JavaScript draws now is what Python drew at first."""
    again = paths(page)
    assert [name for name, _ in again] == [name for name, _ in first]
    for (_, one), (_, other) in zip(first, again, strict=True):
        a, b = ([float(n) for n in re.findall(r"[\d.]+", d)] for d in (one, other))
        assert a == pytest.approx(b, abs=ROUNDING)
        assert re.sub(r"[\d.]+", "", one) == re.sub(r"[\d.]+", "", other)


def test_switching_axes_redraws_by_the_same_rules(open_page):
    page = open_page()
    first = paths(page)
    ticks = page.locator("#chart .grids text").all_text_contents()
    assert len(first) == 3 * 5
    page.get_by_label("linear", exact=True).check()
    linear = paths(page)
    point_at(page, 20, log=False)
    assert numbers(page)["All"][0] == figure(made().curve.at(20))
    page.get_by_label("log–log").check()
    assert paths(page) != linear
    assert "0.2" in page.locator("#chart .grids text").all_text_contents()
    page.get_by_label("log rank").check()
    assert page.locator("#chart .grids text").all_text_contents() == ticks
    check_alike(page, first)


def test_gaps_and_thin_data_are_drawn_alike(open_page, tmp_path):
    ranks = [1, 2, 3, 4, 5, 7, 8, 10]  # 6 and 9 are missing; 3, 4 and 10 are thin
    errors = np.array([0, 0.1, 0.1, np.nan, 0.1, 0.1, 0.1, 0.2])
    curve = hand(
        ranks=np.array(ranks, dtype=np.int32), log_p=-0.5 * np.log(ranks),
        deviations=errors[:, None], pairs=np.full(8, 9), clicks=np.full(8, 5),
        supported=~np.isin(ranks, (3, 4, 10)), gaps={6: "nothing moved"},
    )  # fmt: skip
    make_report(curve).save(tmp_path / "gaps.html")
    page = open_page((tmp_path / "gaps.html").as_uri())
    first = dict(paths(page))
    assert {name: d.count("M") for name, d in first.items()} == {
        "band": 4, "truth": 0, "thin c0 d0": 2, "line c0 d0": 2, "off": 0,
    }  # fmt: skip
    page.get_by_label("log–log").check()
    page.get_by_label("log rank").check()
    check_alike(page, list(first.items()))


def test_what_is_off_the_chart_is_drawn_alike(open_page, tmp_path):
    p = np.arange(1, 41) ** -0.5
    p[20], p[30] = 70, 1e-5
    curve = hand(
        ranks=np.arange(1, 41, dtype=np.int32), log_p=np.log(p),
        deviations=np.full((40, 1), 0.1), pairs=np.full(40, 9), clicks=np.full(40, 5),
        supported=np.full(40, True),
    )  # fmt: skip
    make_report(curve).save(tmp_path / "off.html")
    page = open_page((tmp_path / "off.html").as_uri())
    first, told = paths(page), page.locator("#off b").text_content()
    assert told == "All, rank 21 (70.0)" and dict(first)["off"].count("M") == 1
    page.get_by_label("log–log").check()
    assert page.locator("#off b").text_content() == f"{told}; All, rank 31 (0.000010)"
    assert dict(paths(page))["off"].count("M") == 2
    page.get_by_label("log rank").check()
    check_alike(page, first)


def test_switching_segments_and_methods(open_page):
    page = open_page()
    assert set(numbers(page)) == {"All", "web", EVIL}
    page.locator("#lines").get_by_label("All").uncheck()
    page.locator("#lines").get_by_label("direct").check()
    point_at(page, 5)
    direct = made().methods.curves["direct"]
    found = numbers(page)
    assert set(found) == {EVIL, "web", "direct (methods compared)"}
    assert found["direct (methods compared)"] == [*told(direct, 5), ""]
    assert page.locator("#chart .lines g").count() == 3
    for name in (EVIL, "web", "direct"):
        page.locator("#lines").get_by_label(name, exact=True).uncheck()
    assert page.locator("#chart .lines g").count() == 0
    page.locator("#lines").get_by_label("web").check()
    assert numbers(page)["web"][:3] == told(made().curve.segment("web"), 5)


def test_the_keyboard_reaches_everything(open_page):
    page = open_page()
    names = []
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate("[document.activeElement.tagName, document.activeElement.id]")
        if focused[0] == "BODY":
            break
        names.append(focused[1] or focused[0])
    assert {"A", "INPUT", "chart", "SUMMARY", "PRE", "BUTTON"} <= set(names)
    assert names.index("chart") < names.index("SUMMARY")
    chart = page.locator("#chart")
    chart.focus()
    assert chart.get_attribute("role") == "slider"
    for key, rank in (
        ("Home", 1), ("ArrowRight", 2), ("PageUp", 12), ("ArrowLeft", 11), ("End", RANKS),
        ("ArrowRight", RANKS),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert chart.get_attribute("aria-valuenow") == str(rank)
    assert figure(made().curve.at(RANKS)) in chart.get_attribute("aria-valuetext")
    page.get_by_label("log rank").focus()
    before = paths(page)
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("log–log").is_checked() and paths(page) != before
    page.locator("#lines input").first.focus()
    page.keyboard.press("Space")
    assert "All" not in numbers(page)


def test_what_strangers_wrote_stays_text(open_page):
    page = open_page()
    point_at(page, 3)
    page.locator("#lines input").first.uncheck()
    assert page.locator("script").count() == 2  # the page's own: data and code
    assert page.locator("#numbers").get_by_text(EVIL, exact=True).count() == 1
    assert page.locator("#lines").get_by_text(EVIL, exact=True).count() == 1
    assert page.locator("#rankers").get_by_text(f"unbiased over {EVIL}").count() == 1


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_a_hostile_diagnosis_stays_text_and_in_its_place(open_page, tmp_path, width):
    numbers = {"ranks": [1, 4, 30], "difference": [0, 2.0, -1.0], "error": [0, 0.1, 9.0]}
    words = f"{EVIL} --{'x' * 200} (p = 1e-05) \"onclick='alert(2)'"
    checks = [
        {"name": f"{EVIL}{verdict}", "verdict": verdict, "words": words, "advice": words,
         "numbers": numbers}
        for verdict in ("serious", "caution", "good", "cannot tell")
    ]  # fmt: skip
    make_report({"verdict": "serious", "unseen": [words] * 2, "checks": checks}).save(
        tmp_path / "nasty.html"
    )
    page = open_page((tmp_path / "nasty.html").as_uri(), width=width)
    section = page.locator("#checks")
    assert page.locator("header .verdict").text_content() == "serious"
    assert section.locator("h3").all_text_contents()[:2] == [
        "What this log cannot tell",
        f"{EVIL}serious",
    ]
    assert section.locator(".box li").all_text_contents() == [words] * 2
    assert section.locator("svg.difference:visible").count() == 4
    assert [one.is_visible() for one in section.locator(".check").all()] == [
        True, True, False, False,
    ]  # fmt: skip
    for summary in section.locator("summary").all():
        summary.click()
    assert section.locator(".check:visible").count() == 4
    assert page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_other_script_may_run(chromium, address):
    page = chromium.new_page()
    page.goto(address)
    run = """() => {
        const code = document.createElement("script");
        code.textContent = "window.ran = true";
        document.body.append(code);
        return window.ran ?? false;
    }"""
    assert page.evaluate(run) is False
    assert page.evaluate("fetch('https://example.org').then(() => 'got', () => 'no')") == "no"
    page.close()


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_nothing_sticks_out(open_page, width):
    page = open_page(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(node => { node.open = true })")
    for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
        page.emulate_media(media=media, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper, ink = (
            sum(int(n) for n in re.findall(r"\d+", text))
            for text in page.evaluate(
                "(({ backgroundColor, color }) => [backgroundColor, color])"
                "(getComputedStyle(document.body))"
            )
        )
        assert (paper < ink) == (media == "screen" and scheme == "dark")
        assert page.locator("nav").is_visible() == (media == "screen")


def test_code_is_copied(open_page, chromium):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator("#use .copy").first
    button.click()
    page.wait_for_function("document.querySelector('#use .copy').textContent == 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#use code").first.text_content()
    assert copied.startswith("rankdrift train")


def test_without_scripts_all_can_be_read(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("#axes").is_hidden() and page.locator("#lines input").first.is_hidden()
    assert page.locator("#lines").get_by_text("web").is_visible()
    assert page.locator("#lines").get_by_text("direct").is_hidden()
    assert len(paths(page)) == 3 * 5
    tables = page.locator("figure + details table")
    assert tables.count() == 2  # behind the curve and the bars; the funnel has its own
    first = page.locator("#curve details")
    first.locator("summary").click()
    row = first.locator("tbody tr").nth(9).locator("td").all_text_contents()
    assert row[:2] == ["10", figure(made().curve.at(10))]


def test_every_picture_is_described(open_page):
    page = open_page()
    bare = """nodes => nodes.filter(n => n.getAttribute("aria-hidden") != "true"
        && !(n.getAttribute("role") && n.getAttribute("aria-label"))).length"""
    assert page.locator("svg").evaluate_all(bare) == 0
    unnamed = """nodes => nodes.filter(n => !n.labels.length).length"""
    assert page.locator("input").evaluate_all(unnamed) == 0
    levels = page.locator("h1, h2, h3").evaluate_all("nodes => nodes.map(n => n.tagName)")
    assert levels[0] == "H1" and levels.count("H1") == 1
    assert json.loads(page.locator("#data").text_content())["rank"] == 10
