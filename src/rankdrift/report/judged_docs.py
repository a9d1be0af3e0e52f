"""The best and the worst docs of some queries, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankdrift.core.types import Ints
from rankdrift.core.words import figure
from rankdrift.judging.judgments import Judgments

BEST, WORST = 3, 2  # docs of each query


def judged_docs(judgments: Judgments, queries: int) -> Iterator[tuple[str, Ints]]:
    """(query, places of its best and its worst pairs) of the queries with the most clicks.

    Parameters
    ----------
    judgments
        From `judge`.
    queries
        How many.
    """
    j = judgments
    clicks = np.bincount(j.query, j.clicks, minlength=len(j.queries))
    order, starts, texts = j.best_first, j.starts, j.texts
    for q in np.argsort(-clicks, kind="stable")[:queries]:
        rows = order[starts[q] : starts[q + 1]]
        yield texts[q], np.concatenate([rows[:BEST], rows[max(BEST, len(rows) - WORST) :]])


def judged_cells(judgments: Judgments, row: int) -> list[str]:
    """Relevance, interval, clicks, appearances and how much of it is settled, of one pair.

    Parameters
    ----------
    judgments
        From `judge`.
    row
        The place of the pair.
    """
    j = judgments
    return [
        figure(float(j.relevance[row])),
        between(j.low[row], j.high[row]),
        f"{j.clicks[row]:,.0f}",
        f"{j.appearances[row]:,.0f}",
        f"{j.known[row]:.0%}",
    ]


def between(low: float, high: float) -> str:
    """An interval in words."""
    return f"{figure(float(low)) if low else '0'} to {figure(float(high))}"
