"""Counts in the terminal: what became of the log's rows, and how much is left."""

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from rankdrift.core.words import many, share
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import INPUT, USED, Funnel
from rankdrift.report.terminal.tables import empty_table, facts_table, heading, indent, line


def counts_report(counts: Counts) -> list[RenderableType]:
    """All that is shown of a file of counts."""
    return [*funnel_report(counts.funnel), heading("Counts"), counts_table(counts)]


def funnel_report(funnel: Funnel) -> list[RenderableType]:
    """What became of the log's rows, with what else was noticed in them."""
    return [heading("From the log to usable pairs"), funnel_table(funnel), *_notes(funnel)]


def funnel_table(funnel: Funnel) -> Padding:
    """A line for each reason, with shares of the log."""
    table = empty_table([""], ["rows", "%", "clicks", "%", "pairs"])
    for name, words, rows, clicks, pairs in funnel.lines():
        table.add_row(
            Text(words),
            f"{rows:,}",
            share(rows, funnel.rows),
            f"{clicks:,}",
            share(clicks, funnel.clicks),
            "" if pairs is None else f"{pairs:,}",
            style="bold" if name in (INPUT, USED) else "",
        )
    return indent(table)


def _notes(funnel: Funnel) -> list[Padding]:
    return [indent(line(words)) for words in funnel.note_words()]


def counts_table(counts: Counts) -> Padding:
    """The size of a counts file."""
    size = counts.summary()
    deepest = f"deepest {size['deepest_rank']:,}, counted to {counts.max_rank:,}"
    rows = [
        ("pairs", f"{size['pairs']:,}", "shown at two ranks or more, and clicked"),
        ("clicks", f"{size['clicks']:,}", "on them"),
        ("ranks", f"{size['ranks']:,}", deepest),
    ]
    if counts.segment_columns:
        by = ", ".join(map(repr, counts.segment_columns))
        rows.append(("segments", f"{size['segments']:,}", f"by {by}"))
    if size["days"]:
        span = f"{size['first_day']} to {size['last_day']}" if size["days"] > 1 else counts.days[0]
        words = f"of {counts.window} days each, from {span}" if counts.window else span
        rows.append(("windows" if counts.window else "days", f"{size['days']:,}", words))
    rows.append(
        ("table", f"{size['rows']:,}", f"rows, in {many(counts.buckets, 'bucket')} of queries")
    )
    return facts_table(rows)
