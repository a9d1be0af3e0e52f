"""Comparisons of methods, click models and rankers as tables with a small picture in each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankdrift.core.words import figure
from rankdrift.propensities.summary import SHOWN_RANKS
from rankdrift.ranking.comparison import SIGNIFICANT
from rankdrift.report.results import Plain

WIDTH = 120  # of a picture, in units of its view box
FURTHEST = 50.0  # percent that pictures of click models reach to; what is further is at the edge


def method_table(comparison: Plain) -> dict[str, Any]:
    """Lay out propensities at a few ranks, a column a method."""
    table, names = comparison["table"], comparison["names"]
    ranks = [int(rank) for rank in table["rank"]]
    wanted = {*(r for r in SHOWN_RANKS if r < ranks[-1]), ranks[-1]}
    rows = [
        (rank, [_cell(table, name, i) for name in names])
        for i, rank in enumerate(ranks)
        if rank in wanted
    ]
    return {"names": names, "rows": [row for row in rows if any(p for p, _ in row[1])]}


def _cell(table: Plain, name: str, i: int) -> tuple[str, str]:
    p, low, high = (table[column][i] for column in (name, f"{name}_low", f"{name}_high"))
    interval = "" if low is None or high is None or low == high else f"{low:.2f}–{high:.2f}"
    return figure(p), interval


def distance_rows(comparison: Plain) -> list[dict[str, Any]]:
    """Lay out how far the methods are apart, two and two."""
    distances = comparison["distances"]
    scale = _scale(v for d in distances for v in (d["mean_percent"], d.get("low"), d.get("high")))
    return [
        {
            **d,
            "by": _percent(d["mean_percent"]),
            "interval": _interval(d.get("low"), d.get("high")),
            "picture": _picture(d["mean_percent"], d.get("low"), d.get("high"), scale),
        }
        for d in distances
    ]


def meanings(comparison: Plain) -> list[tuple[str, str, str]]:
    """List (methods, verdict, what that usually means), each meaning once."""
    said: dict[tuple[str, str], list[str]] = {}
    for d in comparison["distances"]:
        if d.get("meaning"):
            said.setdefault((d["verdict"], d["meaning"]), []).append(
                f"{d['first']} and {d['second']}"
            )
    return [("; ".join(pairs), verdict, meaning) for (verdict, meaning), pairs in said.items()]


def click_model_table(comparison: Plain) -> dict[str, Any]:
    """Lay out how much more than the model of reference each explains, a line a model."""
    reference = comparison["reference"]
    ends = ("more", "more_low", "more_high")
    told = [[100 * m[e] for e in ends if m[e] is not None] for m in comparison["models"]]
    scale = min(_scale(v for row in told for v in row), FURTHEST)
    return {
        "verdict": comparison["verdict"],
        "words": comparison["words"],
        "reference": reference,
        "best": comparison["best"],
        "level": f"{100 * comparison['level']:g}%",
        "searches": comparison["searches"],
        "left_out": comparison.get("left_out", {}),
        "remarks": comparison.get("remarks", ()),
        "furthest": f"{FURTHEST:g}%",
        "rows": [
            _click_model(m, row if m["name"] != reference else [], scale)
            for m, row in zip(comparison["models"], told, strict=True)
        ],
    }


def _click_model(model: Plain, more: list[float], scale: float) -> dict[str, Any]:
    """With how much more it explains, if that is told: (itself, low, high) in percent."""
    row = {
        **{name: model[name] for name in ("name", "title")},
        "log_likelihood": f"{model['log_likelihood']:.5f}",
        "perplexity": f"{model['conditional_perplexity']:.4f}",
    }
    if len(more) < 3:
        return row | {"more": "", "interval": "", "look": "unsure", "picture": None}
    at, low, high = more
    behind = at < -100  # of random clicks, too
    return row | {
        "more": "below rcm" if behind else _percent(at),
        "interval": "" if behind or low == high else _interval(low, high),
        "look": "better" if low > 0 else "worse" if high < 0 else "unsure",
        "picture": _picture(at, low, high, scale),
    }


def ranker_tables(comparison: Plain) -> dict[str, Any]:
    """Lay out a table for each model and its baseline: rank by rank, then over all, then other
    measures. A model that was judged alone has no baseline."""
    rows = comparison["table"]
    pairs = dict.fromkeys((r["model"], r["baseline"]) for r in rows if r.get("baseline"))
    pairs = pairs or dict.fromkeys((r["model"], None) for r in rows)
    auc = {(r["measure"], r["rank"], r["model"]): r["value"] for r in rows}
    return {
        "verdicts": list(comparison["verdicts"]),
        "remarks": list(comparison.get("remarks", ())),
        "bootstrap": comparison.get("bootstrap"),
        "queries": comparison.get("queries"),
        "pairs": [
            {"model": model, "baseline": base, "rows": _improvements(rows, auc, model, base)}
            for model, base in pairs
        ],
    }


def _improvements(
    rows: Iterable[Plain], auc: Mapping[Any, float | None], model: str, base: str | None
) -> list[dict[str, Any]]:
    here = [r for r in rows if r["model"] == model and r.get("baseline") == base]
    at_ranks = [r for r in here if r["rank"] is not None or r["measure"].startswith("AUC")]
    scale = _scale(
        100 * (r["improvement"] + k * r["sd"])
        for r in at_ranks
        if r["improvement"] is not None
        for k in (-2, 0, 2)
    )
    return [_line(r, auc, base, scale if r in at_ranks else None) for r in here]


def _line(
    r: Plain, auc: Mapping[Any, float | None], base: str | None, scale: float | None
) -> dict[str, Any]:
    values = {
        "name": r["measure"] if r["rank"] is None else f"rank {r['rank']}",
        "clicks": r.get("clicks"),
        "baseline": _value(auc.get((r["measure"], r["rank"], base))),
        "model": _value(r["value"]),
        "note": r.get("note") or "",
    }
    if r["improvement"] is None:
        return {**values, "improvement": "", "luck": False, "picture": None}
    mean, sd = 100 * r["improvement"], 100 * r["sd"]
    return {
        **values,
        "improvement": f"{mean:+.1f} ± {sd:.1f}%",
        "luck": r["p_value"] >= SIGNIFICANT,
        "picture": _picture(mean, mean - 2 * sd, mean + 2 * sd, scale) if scale else None,
    }


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_percent(low)} to {_percent(high)}"


def _percent(value: float) -> str:
    return f"{value:+.0f}%" if abs(value) >= 10 else f"{value:+.1f}%"


def _scale(values: Iterable[float | None]) -> float:
    """The furthest from zero; a picture reaches as far to either side."""
    return max((abs(v) for v in values if v is not None), default=0.0) or 1.0


def _picture(mean: float, low: float | None, high: float | None, scale: float) -> dict[str, float]:
    def x(value: float) -> float:
        return round(WIDTH / 2 + (WIDTH / 2 - 6) * min(max(value / scale, -1), 1), 1)

    return {
        "width": WIDTH,
        "zero": WIDTH / 2,
        "at": x(mean),
        "from": x(mean if low is None else low),
        "to": x(mean if high is None else high),
    }
