"""The page: one file, no network, and no text of strangers taken for markup."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from rankdrift import inspect, read_log
from rankdrift.counts.rank_blocks import rank_blocks
from rankdrift.report.page.inspection import inspection_page

VOID = {"meta"}
EVIL = "<script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(2)>"


class Page(HTMLParser):
    """Tags must nest; collects them, their attributes and the text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def found(log):
    return inspect(read_log(log, segment="platform"))


def check_alone(text):
    """Nothing in the page makes a browser fetch or run anything."""
    page = Page(text)
    names = {name for _, name, _ in page.attributes}
    assert not names & {"src", "href", "srcset", "action", "data", "poster", "background"}
    assert not any(name.startswith("on") for name in names)
    assert not {"script", "img", "link", "iframe", "object", "embed", "base"} & set(page.tags)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert "default-src 'none'" in text
    return page


def test_the_page_says_it_all(found):
    page = check_alone(inspection_page(found, next_commands=["rankdrift harvest 'a b' -o c"]))
    for words in (
        "This log will do.", "good", *found.reasons, "60,000", "pair never got a click",
        "at best", "can be compared with each other", "mobile", "max_rank", "0.1.0",
        "rankdrift harvest 'a b' -o c",
    ):  # fmt: skip
        assert " ".join(words.split()) in page.text
    assert page.tags.count("rect") == len(rank_blocks(found.counts, 60))
    assert page.tags.count("details") == 4
    assert ("meta", "name", "viewport") in page.attributes


def test_the_bars_stay_inside_the_chart(found):
    text = inspection_page(found)
    for x, y, width, height in re.findall(
        r'<rect class="bar" x="([\d.-]+)" y="([\d.-]+)" width="([\d.-]+)" height="([\d.-]+)"', text
    ):
        assert float(x) >= 36 and float(x) + float(width) <= 386
        assert float(y) >= 10 and abs(float(y) + float(height) - 182) < 0.1


def test_strangers_cannot_write_markup(write_log):
    rows = [
        {"query": EVIL, "doc": 1, "rank": rank, "click": click, EVIL: EVIL, "day": EVIL}
        for rank, click in ((1, 1), (2, 0), (2, 1), (1, 0))
    ]
    found = inspect(read_log(write_log(rows), segment=EVIL, day=""))
    page = check_alone(inspection_page(found, next_commands=[f"rankdrift --doc {EVIL}"]))
    assert page.text.count(EVIL) >= 4  # the column twice, its value, and the command


def test_control_characters_are_shown(write_log):
    rows = [
        {"query": "q", "doc": 1, "rank": r, "click": 1, "a\x1bb\x00\u202e": "x"} for r in (1, 2)
    ]
    text = inspection_page(inspect(read_log(write_log(rows))))
    assert r"a\x1bb" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)


@pytest.mark.parametrize("name", ["still_log", "moving_log"])
def test_a_page_for_an_unfit_log(request, name):
    page = check_alone(inspection_page(inspect(read_log(request.getfixturevalue(name)))))
    assert "This log will not do yet." in page.text


def test_a_page_for_a_log_without_clicks(write_log):
    rows = [{"query": "q", "doc": d, "rank": d, "click": 0} for d in (1, 2, 3)]
    page = check_alone(inspection_page(inspect(read_log(write_log(rows)))))
    assert "not a single click" in page.text


def test_inspect_writes_the_page(rankdrift, log, tmp_path):
    path = tmp_path / "pages" / "report.html"
    done = rankdrift("inspect", log, "--same", "price", "--html", path)
    assert done.code == 0
    assert f"The page is in {path}." in done.err
    page = check_alone(path.read_text("utf-8"))
    assert f"rankdrift harvest {log} --same price -o counts.parquet" in page.text
    assert rankdrift("inspect", log, "--html", path, "--json").json["html"] == str(path)


def test_blocks_hold_every_rank_once(log):
    counts = inspect(read_log(log)).counts
    for most in (1, 2, 5, 17, 59, 60, 200):
        blocks = rank_blocks(counts, most)
        assert len(blocks) <= most
        assert blocks[0].first == 1 and blocks[-1].last == 60
        assert all(a.last + 1 == b.first for a, b in pairwise(blocks))
        assert sum(b.impressions for b in blocks) == counts.by_rank.impressions.sum()
        assert sum(b.clicks for b in blocks) == counts.by_rank.clicks.sum()
