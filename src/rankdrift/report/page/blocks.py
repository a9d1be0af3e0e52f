"""Blocks that every page has: what became of the rows, and where the numbers come from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rankdrift.core.words import printable, share
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import Funnel


def funnel_lines(funnel: Funnel) -> list[dict[str, Any]]:
    """What became of the rows: a line for each reason, with shares of the log."""
    return [
        {
            "name": name,
            "words": words,
            "rows": rows,
            "clicks": clicks,
            "pairs": pairs,
            "rows_share": share(rows, funnel.rows),
            "clicks_share": share(clicks, funnel.clicks),
            "rows_wide": round(100 * rows / max(funnel.rows, 1), 2),
            "clicks_wide": round(100 * clicks / max(funnel.clicks, 1), 2),
        }
        for name, words, rows, clicks, pairs in funnel.lines()
    ]


def made_now() -> str:
    """When this page is made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def listed(value: Any) -> str:
    """A value, or several with commas between, as one line."""
    several = value if isinstance(value, list | tuple) else [value]
    return printable(", ".join(map(str, several)))


def pair_words(counts: Counts) -> str:
    """What a pair is in these counts."""
    window = str(counts.options.get("window") or "").removesuffix("d")
    within = f"within {window} days" if window else "on one day" if counts.days else ""
    return f"one query and one doc {within}".rstrip()
