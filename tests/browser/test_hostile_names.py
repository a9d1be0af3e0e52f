"""Names that strangers chose, under the mouse in a browser: shown to the letter, never obeyed.

Segments, models, methods and features are named by logs and by files. Each of these names tries to
get out of what it stands in: markup, a script, an attribute, a template.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.curve_example import hand
from support.judgments_example import by_hand
from support.results_example import made

from rankdrift.charts.importance import importance_chart
from rankdrift.charts.style import Figure
from rankdrift.core.frames import objects
from rankdrift.pipeline import make_report
from rankdrift.ranking.comparison import AtRank, Comparison, Improvement

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
SOON = 10_000  # milliseconds; all is there at once, but the machine may be busy
MARK = "window.hostile = true"
NAMES = (
    f'<img src=x onerror="{MARK}">',
    f"</script><script>{MARK}</script>",
    f"\"'><svg onload='{MARK}'>",
    f"${{{MARK}}} {{{{{MARK}}}}} `{MARK}`",
    f"javascript:{MARK}",
    f"-->]]></style></title><iframe srcdoc='<script>parent.{MARK}</script>'>",
)


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open a page; in the end nothing of it may have run or been fetched but itself."""
    pages, requests = [], []

    def start(html):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page = chromium.new_page(viewport={"width": 1000, "height": 900})
        page.set_default_timeout(SOON)
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: requests.append(dialog.message))
        page.goto(path.as_uri())
        pages.append((page, path.as_uri()))
        return page

    yield start
    for page, _ in pages:
        assert page.evaluate("window.hostile ?? false") is False
        assert page.locator("img, iframe, svg[onload]").count() == 0
        page.close()
    assert requests == [address for _, address in pages]


def hostile_report():
    """A curve with a segment of each name, methods and rankers of these names."""
    curve = hand(segment_columns=("s",), by_segment={(name,): hand() for name in NAMES})
    pair = (NAMES[0], NAMES[1])
    better = Improvement(0.05, 0.01, 0.001, 200)
    rankers = Comparison(
        models=pair[::-1], baselines=(pair[1],),
        at_rank=(AtRank(1, 900, 90, NAMES[2], dict.fromkeys(pair, 0.6), {pair: better}),),
        overall={pair: better}, measures=(), bootstrap=200, seed=0, queries=321,
    )  # fmt: skip
    plain = made().methods.to_dict()
    table = {"rank": plain["table"]["rank"]}
    for name, old in zip(NAMES[:2], ("loglog", "direct"), strict=True):
        for end in ("", "_low", "_high"):
            table[name + end] = plain["table"][old + end]
    methods = {
        **plain, "table": table, "summaries": {}, "left_out": {NAMES[3]: NAMES[4]},
        "distances": [
            {**plain["distances"][0], "first": NAMES[0], "second": NAMES[1], "meaning": NAMES[5]}
        ],
    }  # fmt: skip
    judged = by_hand(
        queries=objects([(name,) for name in NAMES[:3]], 1), docs=np.array(NAMES[:4], object)
    )
    return make_report([curve, rankers, methods, judged], title=NAMES[5]).html


def test_the_report_shows_them_to_the_letter_under_the_mouse(open_page):
    page = open_page(hostile_report())
    assert page.locator("h1").text_content() == NAMES[5]
    for box in page.locator("#lines input").all():
        box.check()
    box = page.locator("#chart").bounding_box()
    for share in (0.2, 0.5, 0.9):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        said = page.locator("#numbers tbody td:first-child").all_text_contents()
        assert set(NAMES) <= set(said)
    assert all(name in page.locator("#chart").get_attribute("aria-valuetext") for name in NAMES)
    for summary in page.locator("summary").all():
        summary.click()
    captions = page.locator("#methods figcaption").all_text_contents()
    assert {text.strip() for text in captions} >= set(NAMES[:2])
    headings = page.locator("#rankers h3").all_text_contents()
    assert headings == [f"{NAMES[0]} over {NAMES[1]}"]
    methods = page.locator("#methods").text_content()
    assert all(name in methods for name in NAMES[3:])
    judged = page.locator("#judged tbody th").all_text_contents()
    assert set(judged) == set(NAMES[:3])
    docs = page.locator("#judged tbody td:first-child").all_text_contents()
    assert set(docs) == set(NAMES[:4])
    for bar in page.locator("#support rect").all()[:3]:
        bar.hover()


def test_values_off_the_chart_are_named_to_the_letter(open_page):
    values = np.arange(1, 31) ** -0.5
    values[16] = 90.0
    wild = hand(
        ranks=np.arange(1, 31, dtype=np.int32), log_p=np.log(values),
        deviations=np.diag(np.r_[0, np.full(29, 0.1)]), pairs=np.full(30, 90),
        clicks=np.full(30, 50), supported=np.full(30, True),
    )  # fmt: skip
    curves = replace(wild, segment_columns=("s",), by_segment={(NAMES[0],): wild})
    page = open_page(make_report(curves).html)
    first = page.locator("#off b").text_content()
    assert first == f"All, rank 17 (90.0); {NAMES[0]}, rank 17 (90.0)"
    page.locator("#lines input").first.uncheck()
    assert page.locator("#off b").text_content() == f"{NAMES[0]}, rank 17 (90.0)"
    page.get_by_label("linear", exact=True).check()
    assert page.locator("#off").is_visible()
    ticks = page.locator("#chart .grids text").all_text_contents()
    assert "90" not in ticks and "1" in ticks


@pytest.mark.parametrize("name", NAMES)
def test_a_charts_tooltip_shows_a_feature_to_the_letter(open_page, name):
    page = open_page(Figure(importance_chart({name: 0.75, "plain": 0.25}, name)).to_html())
    page.locator("svg, canvas").first.wait_for()
    box = page.locator("svg, canvas").first.bounding_box()
    tooltip = page.locator("#vg-tooltip-element.visible")
    for y in range(int(box["y"]) + 40, int(box["y"] + box["height"]), 8):
        page.mouse.move(box["x"] + box["width"] * 0.55, y)
        if tooltip.count():
            break
    assert name in tooltip.text_content()
