"""Drift on a terminal: the verdict, and where on the page propensities changed."""

from __future__ import annotations

from rich.console import Group, RenderableType

from rankdrift.core.words import many, rank_words
from rankdrift.propensities.drift import Drift, SegmentDrift
from rankdrift.report.terminal.tables import empty_table, facts_table, heading, indent, line


def drift_report(drift: Drift) -> Group:
    """Lay out what was found of each segment, and its blocks of ranks."""
    days = drift.days
    facts = [
        ("days", f"{len(days):,}", f"{days[0]} to {days[-1]}"),
        ("false alarms", f"{drift.false_alarms:g}", "a year at most, while nothing changes"),
        ("smallest", f"{drift.smallest:.0%}", "change that raises an alarm"),
    ]
    blocks: list[RenderableType] = [
        line(drift.words, "bold red" if drift.alarm else ""),
        heading("What was looked at"),
        facts_table(facts),
    ]
    for one in drift.segments:
        blocks += _segment(one, bool(drift.segment_columns))
    return Group(*blocks)


def _segment(one: SegmentDrift, named: bool) -> list[RenderableType]:
    blocks: list[RenderableType] = [heading(one.name if named else "Evidence")]
    blocks.append(indent(line(one.words, "bold" if one.alarm else "")))
    if not one.changes or not one.newest or not one.reference:
        return blocks
    table = empty_table(["ranks"], ["change", "low", "high"])
    for change in one.changes:
        numbers = [f"{value - 1:+.0%}" for value in (change.ratio, change.low, change.high)]
        style = "bold" if change.sure else ""
        ranks = line(rank_words(change.first, change.last), style)
        table.add_row(ranks, *(line(text, style) for text in numbers))
    compared = (
        f"{one.newest[0]} to {one.newest[1]} ({many(round(one.clicks), 'click')}) against "
        f"{one.reference[0]} to {one.reference[1]}, relative to the page:"
    )
    return [*blocks, indent(line(compared, "dim")), indent(table)]
