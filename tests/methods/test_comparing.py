"""Curves side by side: distances with errors that know of the clicks both rest on."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from support.method_world import made

import rankdrift
from rankdrift.cli import run
from rankdrift.core.errors import BadOption, MissingColumns, NoUsablePairs
from rankdrift.core.verdicts import Agreement
from rankdrift.harvesting.counting import harvest
from rankdrift.methods.comparing import compare
from rankdrift.methods.distance import meaning, measure
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.method import Estimate, Kind
from rankdrift.report.terminal.methods import methods_report

AGREE, DIFFER, UNSURE = Agreement
METHODS_HERE = ["loglog", "direct", "ratio", "all-pairs", "ctr", "experiment", "em-pairs"]


@pytest.fixture(scope="module")
def world():
    return made(35, queries=150, searches=40, randomised=0.1)


@pytest.fixture(scope="module")
def found(world):
    return compare(world.log(), methods=METHODS_HERE, randomised="is_random")


def distance(found, first, second):
    return next(d for d in found.distances if (d.first, d.second) == (first, second))


def test_every_method_and_every_two(found):
    assert list(found.curves) == METHODS_HERE
    assert len(found.distances) == 21
    assert not found.left_out
    table = found.table()
    assert table["rank"] == list(range(1, 11))
    assert table["ctr"][0] == 1
    assert table["direct_low"][4] < table["direct"][4] < table["direct_high"][4]
    assert len(table) == 1 + 4 * len(METHODS_HERE)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["level"] == 0.95


def test_curves_of_the_same_assumption_agree_and_click_rates_do_not(found):
    assert distance(found, "direct", "all-pairs").verdict == AGREE
    assert distance(found, "direct", "ratio").verdict != DIFFER
    assert distance(found, "ratio", "ctr").verdict == DIFFER
    steep = distance(found, "direct", "ctr")
    assert (steep.verdict, steep.mean_percent > 0) == (DIFFER, True)
    assert "better results are shown higher" in steep.meaning
    assert ("direct", "all-pairs") in found.agreeing()
    assert "assumes least" in distance(found, "ctr", "experiment").meaning or (
        distance(found, "ctr", "experiment").verdict == UNSURE
    )


def test_the_error_of_a_difference_knows_of_the_clicks_both_have(found):
    """loglog and direct come from the same clicks: their difference is far surer than either."""
    near = distance(found, "loglog", "direct")
    alone = found.curves["direct"].std_error[1:].mean()
    reach = np.log1p(near.high / 100) - np.log1p(near.low / 100)
    assert reach / 4 < 0.5 * alone


def test_differences_by_hand(found):
    d, a, b = distance(found, "direct", "ctr"), found.curves["direct"], found.curves["ctr"]
    apart = a.log_p - b.log_p
    weight = (a.clicks + b.clicks) * (a.ranks > 1)
    assert d.mean_percent == pytest.approx(100 * np.expm1(weight @ apart / weight.sum()))
    assert d.max_percent == pytest.approx(100 * np.expm1(apart[np.abs(apart).argmax()]))
    assert d.max_rank == a.ranks[np.abs(apart).argmax()]
    assert d.low < d.mean_percent < d.high


def test_ranks_with_few_clicks_are_marked():
    """Rank 10 has five clicks, and rank 9 none."""
    thin = made(36, queries=60, searches=10)
    clicks = thin.rows["click"].mask(thin.rows["rank"] == 9, 0)
    tenth = clicks[(thin.rows["rank"] == 10) & (clicks > 0)].index
    clicks[tenth[5:]] = 0
    few = type(thin)(thin.rows.assign(click=clicks), thin.log_p)
    table = compare(few.log(), methods="ctr").to_dict()["table"]
    assert table["rank"] == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert table["ctr_supported"] == [True] * 8 + [False]
    both = compare(few.log(), methods=["ctr", "loglog"]).table()
    assert (both["ctr_supported"][8], both["ctr"][8]) == (None, None)  # a curve goes on there


def test_em_goes_with_the_others():
    """The same queries are weighted up and down for both."""
    small = made(33, queries=80, searches=10)
    both = compare(small.log(), methods=["direct", "em"], features="f_good", bootstrap=5, seed=1)
    d = distance(both, "direct", "em")
    assert d.low < d.mean_percent < d.high
    assert both.curves["em"].errors == "bootstrap"
    if d.verdict == DIFFER and d.mean_percent > 0:
        assert "features" in d.meaning


def test_dual_learning_goes_with_the_others():
    small = made(33, queries=40, searches=10, drift=3.0)
    both = compare(small.log(), methods=["ctr", "dual"], features="f_*", bootstrap=5)
    assert both.curves["dual"].errors == "bootstrap"
    assert distance(both, "ctr", "dual").low is not None
    told = made(33, queries=40, searches=5, drift=0.0)
    found = compare(told.log(), methods=["ctr", "dual"], features="f_*", bootstrap=0)
    assert "Features tell" in found.left_out["dual"]


def test_without_refits_nobody_can_say_whether_em_agrees():
    """That is no matter of clicks, and more days would not help."""
    small = made(33, queries=80, searches=10)
    found = compare(small.log(), methods=["ctr", "em"], features="f_good", bootstrap=0)
    d = distance(found, "ctr", "em")
    assert (d.verdict, d.low) == (UNSURE, None)
    assert d.meaning.startswith("How sure em can be is not known")
    assert "--bootstrap" in d.meaning


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("direct", "all-pairs", "one witness heard twice"),
        ("em-pairs", "pivot-one", "one witness heard twice"),
        ("direct", "em", "agreement speaks for both"),
        ("em-pairs", "em", "agreement speaks for both"),
        ("em", "dual", "one witness heard twice"),
        ("experiment", "adjacent-chain", "agreement speaks for both"),
        ("auto", "combined", "combined rests on the clicks of auto and on others"),
        ("experiment", "combined", "combined rests on the clicks of experiment and on others"),
        ("combined", "all-pairs", "one witness heard twice"),
    ],
)
def test_agreement_says_more_where_the_assumptions_differ(found, first, second, said):
    curve, methods = found.curves["direct"], (METHODS.get(first), METHODS.get(second))
    a, b = (method.made(curve) for method in methods)
    assert said in meaning(a, b, 0.0, AGREE)


def test_curves_that_are_thin_everywhere_are_not_left_out_without_a_word(found):
    direct, ctr = found.curves["direct"], found.curves["ctr"]
    thin = replace(direct, supported=np.zeros(len(direct.ranks), bool))
    told = measure(
        Estimate("direct", Kind.DRIFT, thin), Estimate("ctr", Kind.CLICK_RATES, ctr), 0.95
    )
    assert (told.verdict, told.low, told.ranks) == (UNSURE, None, "1–10")
    assert "no rank but the reference" in told.meaning
    assert told.mean_percent == pytest.approx(distance(found, "direct", "ctr").mean_percent)


def test_what_is_wrong_with_an_option_is_said_before_the_work(world):
    said = []
    with pytest.raises(MissingColumns, match="g_"):
        compare(world.log(), methods=["loglog", "em"], features="g_*", say=said.append)
    assert not any(line.startswith("loglog") for line in said)


def test_what_the_log_does_not_allow_is_left_out(world):
    still = made(32, queries=100, searches=20, drift=0.0)
    found = compare(still.log(), methods=["all-pairs", "ctr"])
    assert list(found.curves) == ["ctr"]
    assert "one ranker" in found.left_out["all-pairs"]
    with pytest.raises(NoUsablePairs, match="No method gave a curve"):
        compare(still.log(), methods="all-pairs")
    none = compare(still.log(), methods=["ctr", "experiment"], randomised="is_random")
    assert "No row is randomised" in none.left_out["experiment"]


def test_an_experiment_needs_its_column(world):
    named = rankdrift.read_log(world.rows.drop(columns="is_random"))
    with pytest.raises(BadOption, match="needs --randomised"):
        compare(named, methods="experiment")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"methods": ["em"]}, BadOption, "'em' needs --features.*em-pairs"),
        ({"methods": ["swaps"]}, BadOption, "needs --original"),
        ({"methods": ["loglo"]}, BadOption, "Did you mean 'loglog'"),
        ({"methods": []}, BadOption, "No methods"),
        ({"methods": ["ctr"], "randomised": "is_rand"}, MissingColumns, "Did you mean 'is_random'"),
        ({"methods": ["em"], "features": "g_*"}, MissingColumns, "g_"),
    ],
)
def test_requests_that_cannot_be_met(world, options, error, said):
    with pytest.raises(error, match=said):
        compare(world.log(), **options)


def shown(found, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(methods_report(found))
    return console.export_text()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_text_of_many_methods_is_cut_nowhere(found, width):
    names = [*METHODS_HERE, "adjacent-chain", "loglog + periodic(40)"]
    curves = {**found.curves, **dict.fromkeys(names[-2:], found.curves["direct"])}
    estimates = [Estimate(name, Kind.DRIFT, curve) for name, curve in curves.items()]
    distances = tuple(measure(a, b, 0.95) for a in estimates for b in estimates[:3] if a is not b)
    text = shown(replace(found, curves=curves, distances=distances), width)
    tables = text.split("How far apart")[0]
    assert "…" not in text and all(len(line.rstrip()) <= width for line in text.splitlines())
    headers = [line for line in tables.splitlines() if line.startswith("rank ")]
    assert re.split(r" {2,}", "   ".join(h.removeprefix("rank").strip() for h in headers)) == names
    assert len(headers) == {60: 4, 80: 3, 200: 1}[width]
    low, high = (bound[4] for bound in found.curves["direct"].interval(0.95))
    value = f"{found.curves['direct'].values[4]:.3f} {low:.2f}–{high:.2f}"
    assert tables.count(value) == 3  # of direct, and of those that stand for it


def test_the_text_names_ranks_without_an_estimate_and_why(found):
    direct = found.curves["direct"]
    short = replace(
        direct, ranks=direct.ranks[:6], log_p=direct.log_p[:6], deviations=direct.deviations[:6],
        pairs=direct.pairs[:6], clicks=direct.clicks[:6], supported=direct.supported[:6],
        gaps={7: "never clicked", 8: "never clicked"},
    )  # fmt: skip
    text = shown(replace(found, curves={"direct": direct, "ctr": short}, distances=()), 100)
    assert "ctr: No estimate for ranks 7–8: never clicked." in text
    assert "ctr: No estimate for ranks 9–10: it counts nothing that was shown there." in text
    assert "direct: No estimate" not in text


def test_a_chart(found, world, tmp_path):
    figure = found.plot(truth=np.exp(world.log_p))
    figure.save(tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    assert all(name in drawn for name in METHODS_HERE)
    assert "dashed: truth" in drawn


def test_the_command_line(world, tmp_path, capsys):
    path = tmp_path / "log.parquet"
    world.rows.to_parquet(path)
    common = ["compare", str(path), "--day", "", "--search", "search"]
    chart = str(tmp_path / "c.svg")
    assert run([*common, "--methods", "loglog(1,2,5),ctr", "--chart", chart, "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "loglog(1,2,5)" in said
    assert "differ" in said
    assert run([*common, "--methods", "ctr,experiment", "--randomised", "is_random", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["distances"][0]["first"] == "ctr"
    assert told["table"]["ctr_supported"] == [True] * 10
    assert run([*common, "--methods", "em"]) == 2
    assert "needs --features" in capsys.readouterr().err


def test_counts_are_enough_for_some_methods(world, found, tmp_path, capsys):
    counts, path = harvest(world.log()), str(tmp_path / "counts.parquet")
    counts.save(path)
    some = ["loglog", "direct", "ratio", "ctr"]
    of_counts = compare(counts, methods=some)
    for name in some:
        assert np.allclose(of_counts.curves[name].log_p, found.curves[name].log_p, atol=1e-12)
    assert distance(of_counts, "direct", "ctr").verdict == DIFFER
    assert list(compare(path).curves) == ["auto", "direct", "ctr"]
    with pytest.raises(BadOption, match="all-pairs, experiment: these need the rows of the log"):
        compare(counts, methods=["auto", "all-pairs", "experiment"])
    assert run(["compare", path, "--methods", "direct,ratio", "--max-rank", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"]["rank"] == [1, 2, 3, 4, 5]
    assert run(["compare", path, "--query", "query"]) == 2
    assert "these are counts already" in capsys.readouterr().err


def test_ranks_that_are_known_because_they_got_clicks_are_not_compared(found):
    """Half of the ranks from 101 on have clicks enough: those that happened to get more."""
    ranks = np.arange(1, 201, dtype=np.int32)
    chance = np.random.default_rng(0)
    drawn = 0.3 * chance.standard_normal(200) * (ranks > 100)
    known = (ranks <= 100) | (drawn > 0)
    deviations = 0.02 * chance.standard_normal((200, 64))
    deviations[0] = 0
    smooth, rough = (
        Estimate(
            name,
            Kind.DRIFT,
            replace(
                found.curves["direct"],
                ranks=ranks,
                log_p=-0.5 * np.log(ranks) + off,
                deviations=deviations,
                pairs=np.full(200, 100),
                clicks=np.full(200, 100),
                supported=known,
                gaps={},
            ),
            by_bucket=by_bucket,
        )
        for name, off, by_bucket in (
            ("auto", 0.0, np.zeros((200, 64))),
            ("direct", drawn, deviations),
        )
    )
    apart = measure(smooth, rough, 0.95)
    assert (apart.ranks, apart.verdict) == ("1–100", AGREE)


def test_the_old_name_of_what_compare_gives_still_works(found):
    with pytest.warns(DeprecationWarning, match="MethodComparison"):
        from rankdrift.methods.comparing import CurveComparison
    assert isinstance(found, CurveComparison)


def test_methods_are_public():
    assert rankdrift.compare is compare
    assert {"loglog", "direct", "em", "all-pairs", "ctr", "experiment"} <= set(METHODS.names)
