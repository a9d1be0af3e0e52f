"""The chart of a diagnosis: a line for each check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from rankdrift.charts.style import Row, layered_chart
from rankdrift.core.errors import BadOption
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, printable

if TYPE_CHECKING:
    from rankdrift.diagnosis.diagnosing import Diagnosis

LINE = 26  # the height of a check
LEAST_P = 1e-6  # smaller p-values are drawn at the end of the axis
# Colour and shape of each verdict: told apart by both.
MARKS = {
    Verdict.GOOD: ("#009E73", "circle"),
    Verdict.CAUTION: ("#E69F00", "triangle-up"),
    Verdict.SERIOUS: ("#D55E00", "cross"),
    Verdict.CANNOT_TELL: ("#777777", "square"),
}


def checks_chart(found: Diagnosis) -> alt.LayerChart:
    """Draw each check with its verdict, at its p-value if it has one: the further right, the less
    the data look like the assumption."""
    rows: list[Row] = []
    for check in found.checks:
        p = check.numbers.get("p_value")
        rows.append(
            {
                "check": printable(check.name),
                "verdict": Verdict(check.verdict).value,
                "words": check.words,
                "advice": check.advice,
                "p": 1.0 if p is None else max(float(p), LEAST_P),
                "told": "" if p is None else chance_words(float(p)),
            }
        )
    if not rows:
        raise BadOption("There is nothing to draw: no check was made.")
    verdicts = [verdict.value for verdict in MARKS]
    colours, shapes = ([mark[i] for mark in MARKS.values()] for i in (0, 1))
    y = alt.Y(
        "check:N",
        sort=[row["check"] for row in rows],
        title=None,
        axis=alt.Axis(labelLimit=260, grid=True),
    )
    x = alt.X(
        "p:Q",
        title="p-value: how often noise alone would differ as much",
        scale=alt.Scale(type="log", domain=[LEAST_P, 1], reverse=True, nice=False),
        axis=alt.Axis(values=[1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6], format="~g"),
    )
    base = alt.Chart().encode(x=x, y=y)
    colour_of = alt.Scale(domain=verdicts, range=colours)
    shape_of = alt.Scale(domain=verdicts, range=shapes)
    key = alt.Legend(orient="bottom")  # at the right are the smallest p-values
    layers: list[alt.Chart] = [
        base.mark_point(filled=True, size=110, opacity=1).encode(
            color=alt.Color("verdict:N", scale=colour_of, title=None, legend=key),
            shape=alt.Shape("verdict:N", scale=shape_of, title=None, legend=key),
            tooltip=[alt.Tooltip("words:N", title="Found"), alt.Tooltip("advice:N", title="Do")],
        ),
        base.mark_text(align="left", dx=9, fontSize=10).encode(text="told:N"),
    ]
    return layered_chart(
        rows,
        layers,
        title="Do the assumptions hold?",
        subtitle=[f"all in all: {found.verdict}", "checks without a p-value are at the left end"],
        height=LINE * len(rows),
    )
