"""Every public value is shown in a line or two, and in a notebook as a table; names in them come
from strangers."""

import sys
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from support.judgments_example import by_hand as judgments_by_hand
from support.results_example import EVIL, made

import rankdrift
from rankdrift.charts.style import Figure
from rankdrift.core.errors import MissingExtra
from rankdrift.core.notebook import LONGEST
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.choices import Choices
from rankdrift.counts.connection import Connection
from rankdrift.counts.tables import ByRank, Overflow, Pairs, RankPairs, Splits
from rankdrift.diagnosis import Check, Diagnosis, diagnose
from rankdrift.experiments import (
    Analysis,
    Interleaved,
    Preferences,
    count_wins,
    plan,
    policy_value,
    run_bandit,
)
from rankdrift.experiments.analysing import Balance
from rankdrift.methods.comparing import MethodComparison
from rankdrift.methods.distance import Distance
from rankdrift.pipeline import PipelineResult
from rankdrift.propensities import Interval
from rankdrift.propensities.drift import Drift, SegmentDrift
from rankdrift.propensities.propensities import Difference
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.ranker import Ranker
from rankdrift.ranking.training import train
from rankdrift.report.page.report import Page
from rankdrift.reproduce import Figures
from rankdrift.simulate import LabWorld, Market, Replay, Searches, World, searches, world

LONGEST_HTML = 20_000  # characters: a table that fits on a screen


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """One of each public type, with a hostile name wherever a name can be."""
    folder = tmp_path_factory.mktemp("shown")
    log = {
        EVIL: [f"{EVIL}{i // 8 % 5}" for i in range(800)],
        "doc": [f"{EVIL}{(i + i // 8) % 9}" for i in range(800)],
        "rank": [1 + i % 8 for i in range(800)],
        "click": [i % 3 == 0 for i in range(800)],
        "day": ["2024-01-01"] * 800,
        "search": [i // 8 for i in range(800)],
        "segment": [(EVIL, "web")[i // 8 % 2] for i in range(800)],
        f"f_{EVIL}": np.linspace(0, 1, 800).tolist(),
    }
    given = rankdrift.read_log(
        pandas_of(log), query=EVIL, segment="segment", same="", where=f"rank < 99 OR doc = '{EVIL}'"
    )
    rows = rankdrift.read_matrix(given)
    found = diagnose(made().counts, curve="loglog")
    ranker = train(rows, trees=2, fixed=True, name=EVIL)
    valid = world("valid", pairs=300)
    planned = plan([0.2, 0.1, 0.05], ratio=(3, 1))
    checked = Balance(EVIL, EVIL, Verdict.SERIOUS, EVIL)
    names = np.array([EVIL] * 500, object)
    return [
        given,
        rankdrift.inspect(given),
        made().counts,
        *made().counts.tables.values(),
        made().counts.choices(),
        made().counts.funnel,
        rankdrift.inspect(given).connection,
        made().curve,
        replace(made().curve, method=EVIL * 100),
        made().curve.difference,
        Drift((SegmentDrift((EVIL,), ("2024-01-01",) * 500, why=EVIL),), 0.1, 0.05, (EVIL,)),
        made().curve.ratio(10, 1),
        found,
        replace(found, checks=(Check(EVIL, "serious", EVIL, EVIL),)),
        found.checks[0],
        made().methods,
        made().methods.distances[0],
        rows,
        ranker,
        made().rankers,
        judgments_by_hand(),
        PipelineResult(made().counts, made().curve, found, ranker, ranker, made().rankers),
        rankdrift.make_report([made().counts, made().curve, found]),
        made().curve.plot(),
        rankdrift.RankdriftError("wrong"),
        searches(folder / "log", rows=500, queries=20, depth=10),
        World(made().counts, np.ones(500)),
        Market((folder / "x",) * 500, 1, 1, {EVIL: np.ones(500)}, folder / "truth.json"),
        Figures((folder / "a.svg",) * 4, {EVIL: {"direct": 0.1}}),
        valid,
        Replay(made().curve, (), 20, 0.95),
        planned,
        planned.experiment(EVIL),
        Analysis(planned.experiment(EVIL), made().curve, (checked,), None, np.ones((3, 3)), None),
        count_wins(np.ones((3, 2)), names=(EVIL, "B")),
        Interleaved((EVIL,) * 500, (0,) * 500, ((EVIL,), (EVIL,))),
        run_bandit("fixed", [1.0], [0.5], searches=2, runs=2),
        policy_value([1, 0], [0.5, 0.5], [0.5, 0.5]),
        Preferences((EVIL,), names[:, None], names, names, *np.ones((4, 500), int), np.ones(500)),
    ]


def pandas_of(columns):
    return import_module("pandas").DataFrame(columns)


def public_types():
    """Those of `rankdrift` and of its packages, and those that their functions give."""
    modules = [rankdrift, *(import_module(f"rankdrift.{m.name}") for m in packages())]
    named = {getattr(m, name) for m in modules for name in getattr(m, "__all__", ())
             if isinstance(getattr(m, name), type)}  # fmt: skip
    given = {Figure, MethodComparison, Distance, Page, PipelineResult, Difference, Connection,
             Choices, Pairs, RankPairs, Overflow, ByRank, Splits}  # fmt: skip
    return named | given


def packages():
    return [module for module in iter_modules(rankdrift.__path__) if module.ispkg]


def test_there_is_a_value_of_every_public_type(values):
    assert public_types() - {type(value) for value in values} == set()
    assert {Interval, Matrix, Ranker, Diagnosis, LabWorld, Replay, Searches} <= public_types()


def test_every_value_is_shown_in_a_line_or_two(values):
    for value in values:
        assert len(repr(value)) <= LONGEST, type(value)
        assert len(str(value)) <= 3 * LONGEST, type(value)
        assert repr(value).count("\n") <= 2
        assert "\x1b" not in repr(value)


def test_every_result_is_a_table_in_a_notebook_and_escaped(values):
    shown = {type(value).__name__ for value in values if hasattr(value, "_repr_html_")}
    wanted = {
        "Log", "Inspection", "Counts", "Funnel", "Propensities", "Interval", "Diagnosis",
        "MethodComparison", "Matrix", "Ranker", "Comparison", "Judgments",
    }  # fmt: skip
    assert shown >= wanted
    named = 0
    for value in values:
        for show in ("_repr_html_", "_repr_svg_"):
            html = getattr(value, show)() if hasattr(value, show) else ""
            named += "&lt;script" in html
            assert "<script" not in html, type(value)
            assert len(html) < LONGEST_HTML or show == "_repr_svg_", type(value)
    assert named >= 9  # the name was shown


def test_a_ratio_is_printed_as_people_write_it():
    assert str(Interval(0.538, 0.4911, 0.5849, 0.95)) == "0.54 (95%: 0.49 to 0.58)"
    assert str(Interval(0.0123, 0.00912, 0.1, 0.9)) == "0.012 (90%: 0.0091 to 0.10)"
    assert str(Interval(12.5, 1, np.inf, 0.95)) == "12.50 (95%: 1.00 to inf)"
    assert str(Interval(0.0, 1e-12, 1e9, 0.95)) == "0.00 (95%: 0.000000000 to 1e+09)"
    curve = made().curve
    low, high = (bound[9] for bound in curve.interval())
    assert str(curve.ratio(10, 1)) == f"{curve[10]:.2f} (95%: {low:.2f} to {high:.2f})"


def test_a_rank_is_looked_up_with_brackets():
    curve = made().curve
    assert isinstance(curve[10], float)
    assert curve[10] == curve.at(10) == curve.at([1, 10])[1]
    with pytest.raises(rankdrift.RankdriftError, match="no propensity for rank 99"):
        curve[99]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_had_as_data_frames(library, monkeypatch):
    make = {"pandas": "to_pandas", "polars": "to_polars", "pyarrow": "to_arrow"}[library]
    for value in (made().curve, made().counts, made().methods, made().rankers):
        frame, table = getattr(value, make)(), value.table()
        names = frame.column_names if library == "pyarrow" else list(frame.columns)
        assert names == list(table)
        assert len(frame) == len(next(iter(table.values())))
    wide = getattr(made().curve, make)(level=0.5, full=True)
    assert len(wide) == len(made().curve.table(full=True)["rank"])
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=f"pip install {library}"):
        getattr(made().curve, make)()


def test_the_frame_of_a_curve_has_a_row_a_segment_and_rank():
    frame = made().curve.to_pandas()
    assert not frame.duplicated(["segment", "rank"]).any()
    assert set(frame["segment"]) == {"", "web", "<script>alert(1)<\\/script>"}
    shown = made().counts.to_pandas()
    assert set(shown["device"]) == {EVIL, "web"}
    assert shown["impressions"].sum() == made().counts.by_rank.impressions.sum()
