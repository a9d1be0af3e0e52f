"""Whether propensities changed of late: the evidence day by day, and where on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rankdrift.core.frames import Tabular
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Segment
from rankdrift.core.words import many, rank_words, segment_words
from rankdrift.propensities.periods import Period

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure


@dataclass(frozen=True)
class BlockChange:
    """How propensities of the ranks `first` to `last` changed, newest over reference, relative to
    the page: only ratios of propensities are known, so the changes are 1 in the (geometric) mean
    over the clicks of the reference. The interval holds for all blocks at once."""

    first: int
    last: int
    ratio: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return self.low > 1 or self.high < 1

    @property
    def words(self) -> str:
        """For people: "ranks 11–16 by +21% (+8% to +35%)"."""
        ranks = f"{'rank' if self.first == self.last else 'ranks'} "
        ranks += rank_words(self.first, self.last)
        return f"{ranks} by {_percent(self.ratio)} ({_percent(self.low)} to {_percent(self.high)})"


@dataclass(frozen=True, eq=False)
class SegmentDrift:
    """Of one segment the evidence of a change, and what it is.

    days: those with clicks, ISO; evidence, limits: on each, None before the reference is complete.
    alarm: on the newest. reference, newest: first and last day of what is compared in `changes`;
    size: how large the difference is at a typical click over and above noise, as a share, None
    where it cannot be told. why: there is no evidence. over_time: estimates `periods`.
    """

    segment: Segment
    days: tuple[str, ...] = ()
    evidence: tuple[float | None, ...] = ()
    limits: tuple[float | None, ...] = ()
    alarm: bool = False
    reference: tuple[str, str] | None = None
    newest: tuple[str, str] | None = None
    changes: tuple[BlockChange, ...] = ()
    size: float | None = None
    clicks: float = 0.0
    why: str = ""
    over_time: Callable[[], tuple[Period, ...]] = field(default=tuple, repr=False)

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """The curve over time: estimated when it is asked for, as only a chart shows it."""
        return self.over_time()

    @property
    def name(self) -> str:
        """Of the segment, for people; "all" where there are none."""
        return segment_words(self.segment) or "all"

    @property
    def words(self) -> str:
        """What was found, in a sentence or two."""
        if self.why or not self.evidence or self.newest is None:
            return f"Not tested: {self.why}"
        last, limit = self.evidence[-1] or 0.0, self.limits[-1] or 0.0
        told = f"evidence {_large(last)} of the {_large(limit)} that raise an alarm"
        if not self.alarm:
            beyond = last >= limit and self.size is not None
            small = f", but the change is small ({self.size:.0%})" if beyond else ""
            return f"No alarm: {told}{small}."
        sure = [change for change in self.changes if change.sure]
        largest = sorted(sure, key=lambda change: -abs(change.ratio - 1))[:2]
        where = " and ".join(change.words for change in largest)
        what = f" Most changed {where}, relative to the page." if where else ""
        return f"ALARM: {told}. The change seems to have begun on {self.newest[0]}.{what}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "segment": list(self.segment),
            "alarm": self.alarm,
            "words": self.words,
            "reference": _span(self.reference),
            "newest": _span(self.newest),
            "size": self.size,
            "clicks": round(self.clicks, 3),
            "why": self.why,
            "days": list(self.days),
            "evidence": list(self.evidence),
            "limits": list(self.limits),
            "changes": [vars(change) for change in self.changes],
        }


@dataclass(frozen=True, eq=False)
class Drift(Tabular):
    """Whether propensities of the newest days differ from those before.

    Made by `drift`. segments: what was found of each. false_alarms: how many a year at most, of all
    segments together, while nothing changes and whoever looks every day. smallest: a smaller change
    raises no alarm. options: as they were given.
    """

    segments: tuple[SegmentDrift, ...]
    false_alarms: float
    smallest: float
    segment_columns: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether any segment raises one on the newest day."""
        return any(one.alarm for one in self.segments)

    @property
    def tested(self) -> tuple[SegmentDrift, ...]:
        """The segments with evidence."""
        return tuple(one for one in self.segments if not one.why)

    @property
    def days(self) -> tuple[str, ...]:
        """Of all segments, ISO."""
        return tuple(sorted({day for one in self.segments for day in one.days}))

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        raised = [one.name for one in self.segments if one.alarm]
        if raised:
            of = f" of {', '.join(raised)}" if self.segment_columns else ""
            return f"Propensities{of} changed."
        if not self.tested:
            return "It cannot be told yet whether propensities change."
        return "No alarm: the newest days are as those before, as far as can be told."

    def table(self) -> dict[str, list[Any]]:
        """The change of each block of ranks, in each segment: columns of plain values."""
        rows = [(one.segment, change) for one in self.segments for change in one.changes]
        named = {
            column: [segment[place] for segment, _ in rows]
            for place, column in enumerate(self.segment_columns)
        }
        numbers = ("first", "last", "ratio", "low", "high")
        return {**named, **{name: [getattr(c, name) for _, c in rows] for name in numbers}}

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "alarm": self.alarm,
            "words": self.words,
            "false_alarms": self.false_alarms,
            "smallest": self.smallest,
            "segment_columns": list(self.segment_columns),
            "segments": [one.to_dict() for one in self.segments],
            "options": dict(self.options),
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        days = f"{many(len(self.days), 'day')}"
        return brief(self, "ALARM" if self.alarm else "no alarm", days, self.words)

    def _repr_html_(self) -> str:
        return html_table(
            ["segment", "found"], [(one.name, one.words) for one in self.segments], self.words
        )

    def plot(self, **options: Any) -> Figure:
        """The curve over time and the evidence against its limit; its `save` writes .png, .svg or
        .html."""
        from rankdrift.charts.drift import drift_chart
        from rankdrift.charts.style import Figure

        return Figure(drift_chart(self, **options))


def _span(days: tuple[str, str] | None) -> list[str] | None:
    return list(days) if days else None


def _percent(ratio: float) -> str:
    return f"{ratio - 1:+.0%}" if ratio < 10 else "over +900%"


def _large(value: float) -> str:
    """Evidence for people: two digits are enough, and none below 1."""
    if value >= 1e9:
        return "over 1,000,000,000"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
