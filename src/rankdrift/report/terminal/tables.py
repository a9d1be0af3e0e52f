"""What everything in the terminal is made of: headings, lines and tables.

Nothing here prints: a console does. Whatever comes from a log goes through `printable` and into
`Text`, so that neither markup nor escape sequences in it are obeyed.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rankdrift.core.words import printable

_ANY_WIDTH = 10_000


def heading(text: str) -> Text:
    """A heading, with an empty line above it."""
    return Text(f"\n{text}", style="bold")


def line(text: str, style: str = "") -> Text:
    """A line of text that may come from a log."""
    return Text(printable(text), style=style)


def bullets(texts: Iterable[str], mark: str = "-") -> Padding:
    """One a line after its mark, wrapped under itself."""
    table = Table.grid(padding=(0, 1))
    for text in texts:
        table.add_row(mark, line(text))
    return indent(table)


def indent(part: RenderableType) -> Padding:
    """Two columns to the right."""
    return Padding(part, (0, 0, 0, 2))


class FirstThatFits:
    """Of several layouts of one table, the best first, the first that there is room for; the last
    if there is none."""

    def __init__(self, *tables: Table) -> None:
        self.tables = tables

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        anything = options.update_width(_ANY_WIDTH)
        for table in self.tables[:-1]:
            if console.measure(table, options=anything).maximum <= options.max_width:
                yield table
                return
        yield self.tables[-1]


def facts_table(rows: Iterable[tuple[str, str, str]]) -> Padding:
    """Facts without a header: a name, a number, and words on it."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for name, value, words in rows:
        table.add_row(name, value, line(words))
    return indent(table)


def empty_table(texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """Columns of text, then columns of numbers, by their headers."""
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim"
    )
    for name in texts:
        table.add_column(line(name), overflow="fold")
    for name in numbers:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table
