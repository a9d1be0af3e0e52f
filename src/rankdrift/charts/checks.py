"""Diagnoses and importances: short lists, drawn as one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import altair as alt

from rankdrift.charts.curve import COLOURS, WIDTH, _data
from rankdrift.core.errors import BadOption
from rankdrift.core.words import printable

if TYPE_CHECKING:
    from rankdrift.diagnosis.diagnosing import Diagnosis

LINE = 26  # the height of a line
MOST_FEATURES = 25
LEAST_P = 1e-6  # smaller p-values are drawn at the end of the axis
# Told apart by shape as well as by colour.
LOOKS = {
    "good": ("#009E73", "circle"),
    "caution": ("#E69F00", "triangle-up"),
    "serious": ("#D55E00", "cross"),
    "unknown": ("#777777", "square"),
}


def checks_chart(found: Diagnosis) -> alt.LayerChart:
    """Each check with its verdict, at its p-value if it has one: the further right, the less the
    data look like the assumption."""
    rows: list[dict[str, Any]] = []
    for check in found.checks:
        p = check.numbers.get("p_value")
        rows.append({
            "check": printable(check.name), "verdict": check.verdict, "words": check.words,
            "advice": check.advice, "p": 1.0 if p is None else max(float(p), LEAST_P),
            "told": "" if p is None else f"p = {float(p):.2g}",
        })  # fmt: skip
    if not rows:
        raise BadOption("There is nothing to draw: no check was made.")
    colours, shapes = ([LOOKS[name][i] for name in LOOKS] for i in (0, 1))
    y = alt.Y("check:N", sort=[row["check"] for row in rows], title=None,
              axis=alt.Axis(labelLimit=260, grid=True))  # fmt: skip
    x = alt.X(
        "p:Q", title="p-value: how often noise alone would differ as much",
        scale=alt.Scale(type="log", domain=[LEAST_P, 1], reverse=True, nice=False),
        axis=alt.Axis(values=[1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6], format="~g"),
    )  # fmt: skip
    names = list(LOOKS)
    base = alt.Chart().encode(x=x, y=y)
    layers: list[alt.Chart] = [
        base.mark_point(filled=True, size=110, opacity=1).encode(
            color=alt.Color("verdict:N", scale=alt.Scale(domain=names, range=colours), title=None),
            shape=alt.Shape("verdict:N", scale=alt.Scale(domain=names, range=shapes), title=None),
            tooltip=[alt.Tooltip("words:N", title="Found"), alt.Tooltip("advice:N", title="Do")],
        ),
        base.mark_text(align="left", dx=9, fontSize=10).encode(text="told:N"),
    ]
    title = alt.TitleParams(
        "Do the assumptions hold?",
        subtitle=[f"all in all: {found.verdict}", "checks without a p-value are at the left end"],
        anchor="start",
    )
    chart = alt.LayerChart(data=_data(rows), layer=layers)
    return chart.properties(width=WIDTH, height=LINE * len(rows), title=title)


def importance_chart(importance: Mapping[str, float], name: str) -> alt.LayerChart:
    """How much each feature lowered the loss, as shares of the whole; the first ones."""
    rows: list[dict[str, Any]] = [
        {"feature": printable(feature), "share": share}
        for feature, share in list(importance.items())[:MOST_FEATURES]
    ]
    y = alt.Y("feature:N", sort=[row["feature"] for row in rows], title=None,
              axis=alt.Axis(labelLimit=260))  # fmt: skip
    x = alt.X("share:Q", title="Share of the gain", axis=alt.Axis(format="%"))
    bars: alt.Chart = alt.Chart().mark_bar(color=COLOURS[0]).encode(
        x=x, y=y, tooltip=[alt.Tooltip("feature:N", title="Feature"),
                           alt.Tooltip("share:Q", title="Share of the gain", format=".1%")],
    )  # fmt: skip
    left = len(importance) - len(rows)
    title = alt.TitleParams(
        f"What {printable(name)} goes by",
        subtitle=[f"{left} features with less are not drawn" if left else "all features"],
        anchor="start",
    )
    chart = alt.LayerChart(data=_data(rows), layer=[bars])
    return chart.properties(width=WIDTH, height=LINE * len(rows), title=title)
