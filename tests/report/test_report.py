"""The report: what it takes, what it tells, and code in it that really runs."""

import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import duckdb
import numpy as np
import pytest
from support.curve_example import by_device, hand, small_counts
from support.judgments_example import DOCS, QUERIES, by_hand
from support.results_example import EVIL, RANKS, every, made
from support.worlds import listed, power, simulate

from rankdrift.core.artefacts import ResultKind
from rankdrift.core.errors import BadCounts, BadOption, BadPropensities
from rankdrift.core.words import figure, printable
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.estimation import estimate
from rankdrift.pipeline import make_report
from rankdrift.ranking.backends import XGBOOST
from rankdrift.ranking.comparison import AtRank, Comparison
from rankdrift.ranking.gains import ideal_dcg
from rankdrift.ranking.ranker import Ranker
from rankdrift.report.page.axis import Axis
from rankdrift.report.page.curve_svg import BOTTOM, LEFT, RIGHT, TOP, curve_picture
from rankdrift.report.page.series import all_series
from rankdrift.report.page.snippets import snippets
from rankdrift.report.page.support import clicks_to_weigh, support_by_rank
from rankdrift.report.results import gather

FINE = {"name": "fit", "verdict": "good"}
SECTIONS = set(
    "curve rates checks support funnel methods click-models rankers use provenance".split()
)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self.skipping = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.texts.append("" if ("class", "one") in attrs else " ")
        self.attributes += [(tag, *pair) for pair in attrs]
        self.skipping = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.skipping = False
        self.texts.append("" if tag == "span" else " ")

    def handle_data(self, data):
        if not self.skipping:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    @property
    def ids(self):
        return {value for tag, name, value in self.attributes if tag == "section" and name == "id"}


def told_worth(curve, rank):
    """1 / p with its interval, as the page says it."""
    at = curve.ratio(rank, curve.reference)
    return f"{figure(1 / at.value)} ({figure(1 / at.high)}–{figure(1 / at.low)})"


@pytest.fixture(scope="module")
def whole():
    return make_report(every())


def test_everything_given_is_told(whole):
    page = Page(whole.html)
    assert page.ids == SECTIONS
    kinds = [kind for _, kind in whole.results.given]
    assert kinds == [
        ResultKind.COUNTS,
        ResultKind.PROPENSITIES,
        ResultKind.METHODS,
        ResultKind.RANKERS,
        ResultKind.CLICK_MODELS,
        ResultKind.TRUTH,
    ]
    p, counts = made().curve, made().counts
    checks = diagnose(counts)
    assert whole.verdict == checks.verdict
    for words in (
        f"A click at rank 10 is worth {told_worth(p, 10)} clicks at rank 1.",
        f"{counts.funnel.rows:,}", f"{counts.n_pairs:,}", "pair never got a click",
        *(told for check in checks.checks for told in (check.words, check.advice)),
        "loglog over direct", "It needs features.",
        made().click_models.words, f"{made().click_models.scores['dbn'].log_likelihood:.5f}",
        f"{100 * made().click_models.scores['dbn'].more:+.0f}%", "below rcm",
        "It would not end.", "Mind the step.",
        "unbiased is better than", "+5.0 ± 1.0%", "-2.0 ± 3.0%", "no click", "321",
        p.method, "log_likelihood", "segments=segment[click]", "WHEN 30 THEN",
    ):  # fmt: skip
        assert " ".join(words.split()) in page.text, words


def test_nothing_of_it_is_fetched_and_texts_are_not_markup(whole):
    page = Page(whole.html)
    names = {name for _, name, _ in page.attributes}
    assert not names & {"src", "srcset", "action", "style", "poster"}
    assert not any(name.startswith("on") for name in names)
    assert all(v.startswith("#") for _, name, v in page.attributes if name == "href")
    assert page.tags.count("script") == 2 and "img" not in page.tags
    assert EVIL in page.text and EVIL not in whole.html
    policy = next(v for _, name, v in page.attributes if name == "content" and "default-src" in v)
    assert "unsafe" not in policy and policy.startswith("default-src 'none'; style-src 'sha256-")


def test_queries_can_be_left_out():
    segments = {"secret a": power(0.3), "secret b": power(0.6)}
    counts = simulate(1500, 12, 2, segments=segments).counts
    counts = replace(counts, options={"where": "city = 'secret c'", "query": ["keywords"]})
    told, kept = make_report(counts), make_report(counts, queries=False)
    for words in ("secret a", "secret b", "secret c"):
        assert words in told.html and words not in kept.html
    assert "segment 1" in kept.html and "keywords" in kept.html


def test_judgments_have_a_section_and_their_texts_may_be_left_out(tmp_path):
    judgments = by_hand()
    judgments.save(tmp_path / "judgments.parquet")
    told = make_report([hand(), tmp_path / "judgments.parquet"])
    page = Page(told.html)
    assert "judged" in page.ids
    assert told.results.given[1] == ("judgments.parquet", ResultKind.JUDGMENTS)
    for words in (*QUERIES, *DOCS):
        assert printable(words) in page.text, words
    assert "0.500 0.354 to 0.646 50 200 90%" in page.text and "Mind the gap." in page.text
    assert QUERIES[0] not in told.html  # a text, not markup
    kept = Page(make_report(judgments, queries=False).html)
    assert "judged" in kept.ids and "pairs judged 10" in kept.text
    assert not any(words in kept.text for words in ("alert(1)", "quoted", "lamp", "d%2"))
    with pytest.raises(BadOption, match="2 results that are judgments"):
        make_report([judgments, judgments])


def test_files_are_told_apart_by_what_they_hold(tmp_path):
    all_of = made()
    all_of.counts.save(tmp_path / "counts.parquet")
    for ending in ("json", "csv", "parquet"):
        all_of.curve.save(tmp_path / f"curve.{ending}", full=True)
    plain = {
        "methods": all_of.methods.to_dict(), "truth": all_of.truth,
        "models": all_of.click_models.to_dict(),
        "diagnosis": {"verdict": "good", "unseen": [], "checks": [FINE]},
    }  # fmt: skip
    for name, document in plain.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    all_of.rankers.save(tmp_path / "rankers.json")
    found = gather(tmp_path)
    assert dict(found.given) == {
        "counts.parquet": ResultKind.COUNTS,
        "curve.csv": ResultKind.PROPENSITIES,
        "curve.json": ResultKind.PROPENSITIES,
        "curve.parquet": ResultKind.PROPENSITIES,
        "diagnosis.json": ResultKind.DIAGNOSIS,
        "methods.json": ResultKind.METHODS,
        "models.json": ResultKind.CLICK_MODELS,
        "rankers.json": ResultKind.RANKERS,
        "truth.json": ResultKind.TRUTH,
    }
    assert found.counts.equals(all_of.counts)
    assert list(found.curves) == ["curve", "curve (2)", "curve (3)"]
    assert found.curves["curve (2)"].equals(all_of.curve)
    page = make_report(sorted(tmp_path.iterdir()))
    assert Page(page.html).ids == SECTIONS and page.verdict == "good"


def test_a_ranker_judged_alone_has_its_numbers_on_the_page():
    at = (AtRank(1, 900, 90, None, {"mine": 0.6123}, {}), AtRank(2, 5, 0, "no click", {}, {}))
    alone = Comparison(("mine",), (), at, {}, (), 200, 0, 321)
    page = Page(make_report(alone).html)
    assert "0.6123" in page.text and "no click" in page.text and "second --model" in page.text
    assert "improvement" not in page.text


def test_a_folder_may_have_rankers_in_it(tmp_path):
    made().curve.save(tmp_path / "curve.json")
    ranker = Ranker("mine", "lightgbm", "tree", (), propensities=None)
    ranker.save(tmp_path / "mine.txt")
    assert gather(tmp_path).given == (("curve.json", ResultKind.PROPENSITIES),)
    for name in ("mine.txt", "mine.txt.meta.json"):
        with pytest.raises(BadOption, match=r"`rankdrift evaluate … -o comparison\.json`"):
            gather(tmp_path / name)


def test_counts_alone_are_estimated_from_and_added_up():
    one, two = (simulate(1500, 12, seed, drift=True).counts for seed in (1, 2))
    page = make_report({"a": one, "b": two})
    p = estimate(one + two)
    assert page.results.counts.equals(one + two)
    assert f"worth {told_worth(p, 10)} clicks" in page.html
    assert "estimated from the counts" in page.html


def test_counts_that_bear_no_estimate_say_why():
    page = Page(make_report(listed([([(1, 1), (2, 0)],)])).html)
    assert "These counts bear no estimate" in page.text and "could not be checked" in page.text
    assert page.ids == {"checks", "funnel", "provenance"}


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("", "this Parquet file was not written by rankdrift"),
        ('rankdrift: \'{"format": 99, "version": "9"}\'', "Upgrade rankdrift"),
        ("rankdrift_propensities: '{}'", "this is not a file of propensities"),
    ],
)
def test_one_reason_why_parquet_is_no_result(tmp_path, mark, why):
    path = tmp_path / "x.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS rank) TO '{path}' (FORMAT parquet, KV_METADATA {{{mark}}})")
    with pytest.raises(BadOption) as caught:
        gather(path)
    told = str(caught.value)
    assert told.startswith(
        f"{path} holds neither counts nor propensities that can be read. {path}: "
    )
    assert why in told and told.count(f"{path}: ") == 1


def test_bad_input_is_refused_kindly(tmp_path):
    def refused(content, name="x.json", error=BadOption):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(error) as caught:
            gather(path)
        return str(caught.value)

    assert "cut short" in refused('{"verdict": ')
    assert "no result to report on" in refused([1, 2])
    assert "-o writes" in refused({"table": {}, "summary": {}})
    assert "those end in" in refused("hello", "x.txt")
    assert "neither counts nor propensities" in refused("hello", "x.parquet")
    assert refused("hello", "x.parquet").count("cut short") == 1
    assert "column" in refused("a,b\n1,2\n", "x.csv", BadPropensities)
    damaged = {**made().methods.to_dict(), "table": {"rank": [1]}}
    assert "damaged or was written by another version" in refused(damaged)
    assert "not all above 0" in refused({"truth": [1, 0]})
    newer = {"kind": "rankdrift propensities", "format": 99, "version": "9"}
    assert "Upgrade rankdrift" in refused(newer, error=BadPropensities)
    with pytest.raises(BadOption, match="does not exist"):
        gather(tmp_path / "none.json")
    with pytest.raises(BadOption, match="nothing to report on"):
        gather([])
    with pytest.raises(BadOption, match="no file of results"):
        (tmp_path / "empty").mkdir()
        gather(tmp_path / "empty")
    with pytest.raises(BadOption, match="2 results that are a truth"):
        gather([{"truth": [1, 0.5]}] * 2)
    with pytest.raises(BadOption, match="no result to report on"):
        gather([object()])
    with pytest.raises(BadCounts, match="cannot be merged"):
        gather([made().counts, simulate(50, 9).counts])


def test_the_truth_goes_to_its_segment_and_not_to_the_pool():
    found = gather([made().curve, made().truth])
    by_name = {s.name: s for s in all_series(found, found.curves, True)}
    assert by_name["All"].truth == []
    expected = np.arange(1, RANKS + 1) ** -0.4
    assert by_name["web"].truth == pytest.approx(expected)
    alone = gather([hand().relative_to(2), {"truth": [0.8, 0.4, 0.2]}])
    [series] = all_series(alone, alone.curves, True)
    assert series.truth == [2, 1, 0.5, None]


def test_the_truth_is_that_of_the_sort_that_was_counted():
    provenance = {"counts": {"options": {"where": "sort = 'price'"}}}
    curve = hand(provenance=provenance)
    truth = {"propensities": {"web": {"best_match": [1, 0.5], "price": [1, 0.9]}}, "options": {}}
    for one, second in ((curve, 0.9), (hand(), 0.5)):
        found = gather([one, truth])
        assert all_series(found, found.curves, True)[0].truth[1] == second


def test_curves_of_other_references_get_the_first_ones():
    found = gather({"a": hand(), "b": hand().relative_to(2)})
    first, second = all_series(found, found.curves, True)
    assert first.p == pytest.approx(second.p)
    assert (first.name, second.name) == ("a", "b")
    sparse = hand(errors="pointwise", deviations=np.eye(4) * 0.1).relative_to(1)
    found = gather({"a": hand().relative_to(2), "b": sparse})
    assert all_series(found, found.curves, True)[1].name == "b, relative to rank 1"


def test_many_segments_are_not_all_drawn_at_first():
    names = [(f"s{i}",) for i in range(20)]
    curve = hand(segment_columns=("x",), by_segment=dict.fromkeys(names, hand()))
    found = gather(curve)
    series = all_series(found, found.curves, True)
    assert len(series) == 13 and [s.shown for s in series] == [True] + [False] * 12
    assert "8 segments with fewer clicks are not drawn" in make_report(curve).html
    assert len({s.css_classes for s in series}) == 13


def test_lines_stay_inside_the_axes():
    found = gather(made().curve)
    series = all_series(found, found.curves, True)
    for axes in ((False, False), (True, False), (True, True)):
        picture = curve_picture(series, *axes)
        for line in picture["lines"]:
            pairs = re.findall(r"[ML]([\d.]+) ([\d.]+)", line["line"] + line["band"])
            x, y = np.array(pairs, float).T
            assert x.min() >= LEFT and x.max() <= RIGHT and y.min() >= TOP and y.max() <= BOTTOM
            assert {x.min(), x.max()} == {LEFT, RIGHT}
        assert 3 <= len(picture["x"]) <= 9 and 2 <= len(picture["y"]) <= 9


@pytest.mark.parametrize("first, last", [(1, 2), (0.03, 0.4), (1, 500), (3, 4), (0, 1e6)])
def test_ticks_are_round_and_few(first, last):
    for log in (False, True) if first else (False,):
        ticks = Axis(first, last, 0, 100, log).ticks()
        assert len(ticks) <= 10 and all(first <= t <= last for t in ticks)
        assert all(float(f"{t:.1e}") == pytest.approx(t) for t in ticks)


def test_support_adds_up():
    counts = small_counts()
    curve = estimate(counts, curve="direct")
    for known in (counts, None):
        blocks = support_by_rank(curve, known)
        assert [b.first for b in blocks] == list(range(1, 13)) and blocks[0].error is None
        assert sum(b.clicks for b in blocks) == counts.n_clicks
        ratio = curve.ratio(2, 1)
        assert 1 + blocks[1].error == pytest.approx((ratio.high / ratio.low) ** 0.5)


def test_clicks_of_pairs_held_as_comparisons_count():
    counts = simulate(1500, 12, 4, shown=(2, 6), max_shown=3).counts
    assert len(counts.rank_pairs)
    curve = estimate(counts)
    for known in (counts, None):
        blocks = support_by_rank(curve, known)
        assert sum(b.clicks * (b.last - b.first + 1) for b in blocks) == counts.n_clicks
    assert clicks_to_weigh(curve, counts).sum() == counts.by_rank.clicks.sum()
    assert clicks_to_weigh(curve, None).sum() == counts.n_clicks
    assert f"{counts.n_clicks:,}" in make_report(curve).html


@pytest.mark.parametrize("library", ["LightGBM", "XGBoost"])
def test_the_code_on_the_page_runs_and_weighs_clicks(library, tmp_path):
    rng = np.random.default_rng(0)
    sizes = np.full(60, 4)
    rank = np.tile([1, 2, 3, 5], 60)
    x = rng.normal(size=(240, 2))
    click = rng.random(240) < 0.3
    hand().save(tmp_path / "p.json")
    by_name = {s.title: s for s in snippets(hand(), str(tmp_path / "p.json"), queries=True)}
    names = {"x": x, "rank": rank, "click": click, "sizes": sizes}
    exec(by_name[library].code.replace("num_boost_round=100", "num_boost_round=2"), names)
    gain = np.where(click, 1 / hand().at(rank), 0)
    assert names["gain"] == pytest.approx(gain)
    assert names["ideal"] == pytest.approx(ideal_dcg(gain, np.repeat(np.arange(60), 4), 60))
    if library == "LightGBM":
        assert np.asarray(names["table"])[names["rows"].get_label().astype(int)] == pytest.approx(
            gain
        )
        assert names["ranker"].num_trees() == 2
    else:
        assert names["rows"].get_label() == pytest.approx(gain)
        assert names["ranker"].num_boosted_rounds() == 2
        told = json.loads(names["ranker"].save_config())["learner"]["objective"]
        used = told["lambdarank_param"]
        params = XGBOOST.method_params(sizes, np.zeros(1))
        wanted = {k: str(int(v)) if isinstance(v, bool) else str(v)
                  for k, v in params.items() if k in used}  # fmt: skip
        assert len(wanted) == 5 and used | wanted == used


def test_the_command_on_the_page_reads_the_log_as_it_was_counted():
    options = {"query": ["keywords", "my shop"], "doc": "item", "rank": "rank", "click": "click",
               "search": None, "where": "city = 'secret'"}  # fmt: skip
    curve = hand(provenance={"counts": {"options": options}})
    code = snippets(curve, "my p.json", queries=False)[0].code
    words = [shlex.split(line) for line in code.splitlines()]
    read = ["--query", "keywords,my shop", "--doc", "item"]
    assert words[0] == ["rankdrift", "train", "train/*.parquet", *read, "-o", "biased.txt"]
    assert words[1][-4:] == ["--propensities", "my p.json", "-o", "unbiased.txt"]
    assert "--query" not in snippets(hand(), "p.json", queries=True)[0].code


def test_snippets_name_segments_only_if_asked():
    for queries in (True, False):
        code = "\n".join(s.code for s in snippets(by_device(), "p.json", queries=queries))
        assert ("'web'" in code) == queries and "--segment device" in code


@pytest.mark.parametrize("value, told", [
    (1, "1.000"), (0.5, "0.500"), (0.0312, "0.0312"), (0.00004, "0.000040"), (2.114, "2.11"),
    (1234.5, "1,234.5"), (None, ""),
])  # fmt: skip
def test_figures(value, told):
    assert figure(value) == told
