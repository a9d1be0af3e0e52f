"""Values as notebooks and consoles show them: a line or two, and tables."""

from collections.abc import Iterable, Sequence
from html import escape

from rankdrift.core.words import printable

LONGEST = 300  # characters of a line
_LONGEST_PART = 90
# Some notebooks take all space out of tables.
_SPACED = "border-collapse: separate; border-spacing: 0.8em 0"


def brief(kind: object, *parts: str) -> str:
    """What a value is, on a line that is never long: <Kind: part; part>.

    Parameters
    ----------
    kind
        The value itself, or what to call it.
    parts
        What is in it; names in them come from strangers. Empty ones are left out.
    """
    name = kind if isinstance(kind, str) else type(kind).__name__
    short = (cut(printable(part), _LONGEST_PART) for part in parts if part)
    return cut(f"<{name}: {'; '.join(short)}", LONGEST - 1) + ">"


def cut(text: str, longest: int) -> str:
    """Of a text that is too long the beginning."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A table in HTML, escaped, with a note above it."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    above = f"<p>{escape(note)}</p>" if note else ""
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'{above}<table style="{_SPACED}">{table}</table>'


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
