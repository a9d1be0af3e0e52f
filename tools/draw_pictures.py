"""Draws the pictures of the first page, from a run: make picture, and a hook of mkdocs.

A marketplace is made up whose truth is known, and all steps are gone through: the curve beside raw
click rates, what the checks say, and what weighted clicks do for a ranker. `make picture` writes
the pictures into docs/figures, where the README finds them; the site has them drawn anew whenever
it is built, and a test compares the numbers of the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

import numpy as np

from rankdrift import (
    Counts,
    Propensities,
    diagnose,
    estimate,
    evaluate,
    harvest,
    read_log,
    read_matrix,
    train,
)
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import figure
from rankdrift.diagnosis.diagnosing import Diagnosis
from rankdrift.methods.click_rates import split_click_rates
from rankdrift.ranking.comparison import Comparison
from rankdrift.report.diagnosis import HEADLINES, sort_checks
from rankdrift.report.page.axis import Axis, path_of, without_needless
from rankdrift.simulate import market

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
ROWS, QUERIES, CLICK_RATE, SEED = 700_000, 200, 0.3, 1
DEEPEST, RANK = 40, 10
# Small trees: with 31 leaves, a log as small as this is learnt by heart.
TREES: dict[str, Any] = {
    "fixed": True,
    "trees": 40,
    "leaves": 8,
    "min_rows": 200,
    "norm": True,
    "threads": 1,
}
RAW, WEIGHTED = "raw clicks", "weighted clicks"

WIDTH = 640
INK, SOFT, LINE = "#1d2327", "#5c666d", "#dfe2e0"
BLUE, GREEN, ORANGE = "#0072b2", "#008561", "#b3541e"
COLOURS = {
    Verdict.GOOD: "#2b7a3e",
    Verdict.CAUTION: "#8a6008",
    Verdict.SERIOUS: "#b3362b",
    Verdict.CANNOT_TELL: "#5c666d",
}


@dataclass(frozen=True, eq=False)
class Run:
    """What the steps found, and the truth (ranks 1, 2, 3 …)."""

    counts: Counts
    curve: Propensities
    truth: Sequence[float]
    checks: Diagnosis
    rankers: Comparison


@cache
def run() -> Run:
    """Go through all the steps, on a log that is made up and thrown away."""

    def looked_at(rank: Any) -> Any:
        return np.asarray(rank, float) ** -1.0

    made: dict[str, Any] = {
        "queries": QUERIES,
        "click_rate": CLICK_RATE,
        "curves": {"web": looked_at, "mobile": looked_at},
        "labels": True,
        "seed": SEED,
    }
    columns: dict[str, Any] = {
        "query": ["keywords", "category", "aspects"],
        "where": "sort = 'best_match' AND NOT auction",
        "max_rank": DEEPEST,
    }
    with TemporaryDirectory() as folder:
        before = market(f"{folder}/before", rows=ROWS, days=3, **made)
        after = market(f"{folder}/after", rows=ROWS // 3, days=1, start="2024-01-04", **made)
        counts = harvest(read_log(before.paths, same="price", time="time", **columns))
        curve = estimate(counts)
        rows = read_matrix(read_log(before.paths, **columns), features="f_*", searches="clicked")
        rankers = [
            train(rows, name=RAW, **TREES),
            train(rows, name=WEIGHTED, propensities=curve, **TREES),
        ]
        later = read_log(after.paths, **columns)
        judged = evaluate(rankers, later, baseline=RAW, relevance="relevance", bootstrap=500)
    return Run(counts, curve, before.propensities["web"].tolist(), diagnose(counts), judged)


def curve_picture(found: Run) -> str:
    """The curve with its band, the truth, and raw click rates."""
    split = split_click_rates(found.counts, found.curve)
    assert split is not None
    at, ranks = found.curve.ratio(RANK, 1), found.curve.ranks.tolist()
    low, high = (bound.tolist() for bound in found.curve.interval())
    x, y = Axis(1, DEEPEST, 48, 470, True), Axis(0.01, 1.0, 268, 52, True)

    def line(over: Sequence[float], values: Sequence[float]) -> str:
        return path_of(without_needless([(x(r), y(v)) for r, v in zip(over, values, strict=True)]))

    band = [(x(r), y(v)) for r, v in zip(ranks, low, strict=True)]
    band += [(x(r), y(v)) for r, v in zip(ranks[::-1], high[::-1], strict=True)]
    rates = split.rate.tolist()
    parts = [
        _text(0, 16, _worth(1 / at.value, 1 / at.high, 1 / at.low), size=17, bold=True),
        _text(0, 38, "How often a rank is looked at, and clicked, relative to rank 1", colour=SOFT),
        *(
            f'<path d="M48 {y(t):.1f}H470" stroke="{LINE}"/>'
            + _text(42, y(t) + 4, f"{t:g}", colour=SOFT, anchor="end")
            for t in y.ticks()
        ),
        *(_text(x(t), 288, f"{t:g}", colour=SOFT, anchor="middle") for t in x.ticks()),
        _text(470, 306, "rank", colour=SOFT, anchor="end"),
        f'<path d="{path_of(without_needless(band))}Z" fill="{BLUE}" opacity=".2"/>',
        _stroke(line(range(1, DEEPEST + 1), found.truth[:DEEPEST]), INK, dashes="2 4"),
        _stroke(line(split.rank.tolist(), rates), ORANGE),
        _stroke(line(ranks, found.curve.values.tolist()), BLUE),
        *_key(484, 120, BLUE, "the curve", "with its 95% band"),
        *_key(484, 168, INK, "the truth", "known in this log", dashes="2 4"),
        *_key(484, 216, ORANGE, "raw click rates", "position and relevance"),
    ]
    return _picture(312, parts)


def verdict_picture(found: Run) -> str:
    """What the checks say: the whole, then each of them."""
    verdict = found.checks.verdict
    words = HEADLINES[verdict]
    sorted_checks = sort_checks(found.checks.to_dict()["checks"])
    groups = [
        ("objects", Verdict.SERIOUS, sorted_checks.objections),
        ("good", Verdict.GOOD, sorted_checks.good),
        ("cannot tell", Verdict.CANNOT_TELL, sorted_checks.untold),
    ]
    pill = 24 + 9 * len(verdict)
    parts = [
        f'<rect width="{pill}" height="26" rx="13" fill="{COLOURS[verdict]}"/>',
        _text(pill / 2, 18, verdict, colour="#fff", anchor="middle", bold=True),
        _text(pill + 12, 18, words[0].upper() + words[1:]),
    ]
    height = 44
    for name, colour, checks in groups:
        if checks:
            parts.append(_text(0, height + 14, name, colour=COLOURS[colour], bold=True))
            for row in wrap(", ".join(check["name"] for check in checks), 66):
                parts.append(_text(110, height + 14, row))
                height += 22
            height += 4
    return _picture(height + 4, parts)


def ranker_picture(found: Run) -> str:
    """How much better the ranker from weighted clicks is, by the truth and by clicks."""
    table = found.rankers.table()
    wanted = {
        "true NDCG": "true relevance of the order (NDCG)",
        "AUC, all ranks": "clicks at fixed ranks (AUC)",
    }
    rows = [
        (wanted[measure], 100 * better, 100 * sd)
        for measure, better, sd in zip(
            table["measure"], table["improvement"], table["sd"], strict=True
        )
        if measure in wanted and better is not None
    ]
    values = {
        model: value
        for measure, model, value in zip(
            table["measure"], table["model"], table["value"], strict=True
        )
        if measure == "true NDCG"
    }
    rows.sort(key=lambda row: row[0] != wanted["true NDCG"])
    reach = math.ceil(max(abs(mean) + 2 * sd for _, mean, sd in rows))
    x = Axis(-reach, reach, 280, 540, False)
    parts = [
        _text(
            0,
            16,
            f"True NDCG on a later day: {values[RAW]:.3f} from raw clicks, "
            f"{values[WEIGHTED]:.3f} from weighted ones",
            size=14,
            bold=True,
        ),
        f'<path d="M{x(0):.1f} 32V{44 + 34 * len(rows)}" stroke="{SOFT}" stroke-dasharray="3 3"/>',
    ]
    for i, (name, mean, sd) in enumerate(rows):
        at, sure = 54 + 34 * i, abs(mean) > 2 * sd
        colour = SOFT if not sure else GREEN if mean > 0 else ORANGE
        parts += [
            _text(0, at + 5, name),
            _stroke(f"M{x(mean - 2 * sd):.1f} {at}H{x(mean + 2 * sd):.1f}", colour),
            f'<circle cx="{x(mean):.1f}" cy="{at}" r="5" fill="{colour}"/>',
            _text(WIDTH, at + 5, f"{mean:+.1f} ± {sd:.1f}%", anchor="end", bold=sure),
        ]
    foot = 60 + 34 * len(rows)
    told = "Improvement ± standard deviation; lines: two of them; grey: may be luck."
    return _picture(foot + 16, [*parts, _text(0, foot + 6, told, colour=SOFT)])


PICTURES = {"curve": curve_picture, "verdict": verdict_picture, "ranker": ranker_picture}


def drawn() -> dict[str, str]:
    """The pictures by the name of their file."""
    found = run()
    return {f"first-{name}.svg": draw(found) for name, draw in PICTURES.items()}


def on_files(files: Any, config: Any) -> Any:
    """Put fresh pictures into the site: called by mkdocs."""
    from mkdocs.structure.files import File

    for name, svg in drawn().items():
        uri = f"figures/{name}"
        if old := files.get_file_from_path(uri):
            files.remove(old)
        files.append(File.generated(config, uri, content=svg))
    return files


# -- SVG -------------------------------------------------------------------------------------------


def _worth(value: float, low: float, high: float) -> str:
    return (
        f"A click at rank {RANK} is worth {figure(value)} ({figure(low)}–{figure(high)}) "
        "clicks at rank 1."
    )


def _picture(height: float, parts: Sequence[str]) -> str:
    """A picture on white, so that it can be read on any page."""
    margin = 14
    box = f"{-margin} {-margin} {WIDTH + 2 * margin} {height + 2 * margin:.0f}"
    paper = (
        f'<rect x="{-margin}" y="{-margin}" width="{WIDTH + 2 * margin}" '
        f'height="{height + 2 * margin:.0f}" rx="8" fill="#fcfcfa"/>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 2 * margin}" '
        f'height="{height + 2 * margin:.0f}" viewBox="{box}" font-family="sans-serif">'
    )
    return "\n".join([head, paper, *parts, "</svg>", ""])


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 13,
    colour: str = INK,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
    )


def _stroke(path: str, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.4" '
        f'stroke-linejoin="round"{dashed}/>'
    )


def _key(x: int, y: int, colour: str, name: str, words: str, dashes: str = "") -> list[str]:
    return [
        _stroke(f"M{x} {y - 4}h22", colour, dashes),
        _text(x + 28, y, name, bold=True),
        _text(x + 28, y + 17, words, size=11, colour=SOFT),
    ]


if __name__ == "__main__":
    for file, picture in drawn().items():
        (FIGURES / file).write_text(picture, encoding="utf-8")
        print(f"Drew docs/figures/{file}")
