"""The bar of a harvest: on stderr, if it is a terminal, and only when there is time to read it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rankdrift.cli.screen import Screen
from rankdrift.core.words import many
from rankdrift.log.sql.plan import CANDIDATES, CELLS, KNOWN, PAIRS, RESULT, TALLY, TWICE, USED

if TYPE_CHECKING:
    from rich.progress import Progress

    from rankdrift.log.log import Log

PATIENCE = 1.0  # seconds without a bar
# The plan's steps that take time: their share of it, measured on 16 million rows, and words.
STEPS = {
    TALLY: (0.10, "counting rows"),
    KNOWN: (0.22, "finding clicked pairs"),
    CANDIDATES: (0.44, "gathering their appearances"),
    TWICE: (0.07, "keeping those that moved"),
    CELLS: (0.05, "keeping those that moved"),
    PAIRS: (0.03, "counting pairs"),
    USED: (0.02, "counting pairs"),
    RESULT: (0.07, "adding up"),
}
# The same of other plans.
OTHER_STEPS = {"sums": (0.9, "adding up pairs")}
PARSING = 0.6  # share of the time to parse text formats, which comes before the steps


class Bar:
    """A bar that is called with a step's name and its fraction done; appears after `PATIENCE`."""

    def __init__(self, bar: Progress | None, rows: int | None, by_day: bool) -> None:
        self._bar, self._rows, self._by_day = bar, rows, by_day
        self._began, self._parsed, self._days, self._done = time.monotonic(), 0.0, 0, 0
        self._piece, self._last = (0.0, 1.0), (0.0, "reading")
        if bar:
            self._task = bar.add_task(
                "reading", total=None if by_day and not rows else 1.0, rows=""
            )

    def __call__(self, step: str, fraction: float) -> None:
        if not self._bar:
            return
        share, words = self._place(step, fraction)
        first, last = self._piece
        share = first + (last - first) * share
        if self._by_day:
            words = f"{many(self._days, 'day')} done, {words}"
            share = self._done / self._rows if self._rows else 0.0
        rows = f"{int(share * self._rows):,} of {self._rows:,} rows" if self._rows else ""
        self._bar.update(self._task, completed=share, description=words, rows=rows)
        if time.monotonic() - self._began > PATIENCE:
            self._bar.start()

    def piece(self, first: float, last: float) -> None:
        """What follows is this stretch of the whole."""
        self._piece = (first, last)

    def day_done(self, rows: int) -> None:
        """A day of so many rows is done."""
        self._days, self._done = self._days + 1, self._done + rows

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Out of the way while something else is printed."""
        if self._bar:
            self._bar.stop()
        yield

    def _place(self, step: str, fraction: float) -> tuple[float, str]:
        """How much of the whole is done by now, and what is being done."""
        fraction = min(max(fraction, 0.0), 1.0)
        if step.startswith("parsing"):
            self._parsed = PARSING
            return PARSING * fraction, step
        if step.startswith("trying"):
            return fraction, step
        if step in OTHER_STEPS:
            share, words = OTHER_STEPS[step]
            return self._parsed + (1 - self._parsed) * share * fraction, words
        if step not in STEPS:  # a small one between these: it stays where it is
            return self._last
        names = list(STEPS)
        done = sum(STEPS[name][0] for name in names[: names.index(step)])
        share, words = STEPS[step]
        self._last = self._parsed + (1 - self._parsed) * (done + share * fraction), words
        return self._last


@contextmanager
def bar(screen: Screen, log: Log, *, by_day: bool = False) -> Iterator[Bar]:
    """Show a bar for one harvest; a silent one where nobody watches.

    Parameters
    ----------
    screen
        Where it appears.
    log
        What is harvested.
    by_day
        Whether that goes day by day.
    """
    if not screen.lively:
        yield Bar(None, None, by_day)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[rows]}", markup=False),
        TimeRemainingColumn(),
        "left",
        console=screen.err,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    try:
        yield Bar(shown, log.engine.rows(), by_day)
    finally:
        shown.stop()
