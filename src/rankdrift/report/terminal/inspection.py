"""An inspection in the terminal: tables, a small chart, and the verdict."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rankdrift.core.verdicts import Fitness
from rankdrift.core.words import figure, many, margin, percent, ranges, rank_words, segment_words
from rankdrift.counts.connection import Connection
from rankdrift.counts.counts import Counts
from rankdrift.counts.rank_blocks import Block, rank_blocks, segment_sizes
from rankdrift.diagnosis.inspection import Inspection, at_best, column_roles
from rankdrift.diagnosis.ways import Ways, flags
from rankdrift.log.layouts import LAYOUTS
from rankdrift.report.terminal.counts import funnel_report
from rankdrift.report.terminal.tables import (
    bullets,
    empty_table,
    facts_table,
    heading,
    indent,
    line,
)

COLOURS = {Fitness.GOOD: "bold green", Fitness.WEAK: "bold yellow", Fitness.UNFIT: "bold red"}
HEIGHT = 8  # rows of a chart
MOST_COLUMNS = 8  # of those that are not used, the names that are listed
MOST_SEGMENTS = 20
LONGEST = 30  # a name of a column that is not broken
AT_BEST = (
    "A comparison is a click on a pair that moved. With so many, no method can know the ratio of "
    "two ranks better than the margin at best, at 95%."
)
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII_EIGHTHS = "   ..::##"  # what a terminal without block characters shows instead


def inspection_report(found: Inspection) -> Group:
    """Lay out all that `inspect` has to say, verdict last."""
    blocks: list[RenderableType] = [
        heading("Columns"),
        columns_table(found),
        heading("Size"),
        sizes_table(found),
        heading("Clicks per impression, by rank"),
        CtrChart(found.counts),
    ]
    if found.counts.segment_columns:
        blocks += [heading("Segments"), segments_table(found.counts)]
    blocks += [
        *funnel_report(found.counts.funnel),
        heading("What compares the ranks"),
        support_table(found),
        indent(Text(AT_BEST, style="dim")),
        indent(line(connection_words(found.connection))),
    ]
    if len(found.ways.tried) > 1:
        blocks += [heading("Other ways to read this log"), *ways_lines(found.ways)]
    if found.worth_logging:
        blocks += [heading("Worth logging"), *worth_logging_lines(found)]
    if found.worth_segmenting:
        blocks += [heading("Worth counting apart"), *worth_segmenting_lines(found)]
    blocks += [heading("Verdict"), *verdict_lines(found)]
    return Group(*blocks)


def columns_table(found: Inspection) -> Group:
    """Columns in use first; of the others just the number when there are many."""
    used, others = column_roles(found)
    table = empty_table(["column", "kind", "role", "from" if found.origins else ""])
    for name, kind, roles, how in used:
        table.add_row(line(name), kind, roles, line(how))
    layout = str(found.roles["layout"])
    words = f"Layout: {layout}, {LAYOUTS.get(layout).row}. A day: {found.days_meaning}."
    unused = [name for name, _ in others]
    listed = ", ".join(unused[:MOST_COLUMNS]) + (", …" if len(unused) > MOST_COLUMNS else "")
    more = [indent(line(f"{many(len(unused), 'more column')}: {listed}", "dim"))] if unused else []
    return Group(indent(table), *more, indent(line(words)))


def sizes_table(found: Inspection) -> Padding:
    """How much there is of everything."""
    sizes, rows = found.sizes, []
    for name in ("rows", "clicks", "searches", "queries", "docs", "days"):
        value = sizes.get(name)
        if value is None:
            continue
        about = "about " if name in ("searches", "queries", "docs") else ""
        span = ""
        if name == "days":
            span = " to ".join(
                dict.fromkeys(str(sizes.get(end)) for end in ("first_day", "last_day"))
            )
        elif name == "clicks":
            shown = sizes.get("rows")
            span = f"{percent(float(value) / float(shown) if shown else None)} of rows"
        rows.append((name, f"{about}{value:,}", span))
    return facts_table(rows)


class CtrChart:
    """Clicks per impression by rank, in blocks of ranks that widen like the logarithm."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        room = max(10, min(options.max_width, 100) - 12)
        blocks = rank_blocks(self.counts, room)
        rates = [block.ctr or 0.0 for block in blocks]
        top = max(rates, default=0.0)
        if top == 0:
            yield line("  no clicks" if blocks else "  nothing was shown")
            return
        wide = max(1, min(4, room // len(blocks)))
        eighths = _ASCII_EIGHTHS if options.ascii_only else _EIGHTHS
        for row in reversed(range(HEIGHT)):
            level = [min(8, max(0, round(8 * (HEIGHT * rate / top - row)))) for rate in rates]
            label = {HEIGHT - 1: percent(top), HEIGHT // 2 - 1: percent(top / 2)}.get(row, "")
            bars = "".join(eighths[n] * wide for n in level)
            yield Text(f"  {label:>7} ") + Text(bars.rstrip(), style="cyan")
        rule = "-" if options.ascii_only else "─"
        yield Text(f"  {'0%':>7} {rule * (wide * len(blocks))}")
        yield Text(f"  {'rank':>7} {_axis(blocks, wide)}")


def _axis(blocks: Sequence[Block], wide: int) -> str:
    """1, 2, 5, 10, 20, 50 ... under the blocks that hold them, as far as there is room."""
    ticks = [m * 10**p for p in range(6) for m in (1, 2, 5)]
    text = ""
    for i, block in enumerate(blocks):
        inside = [t for t in ticks if block.first <= t <= block.last]
        last = i == len(blocks) - 1
        if not inside and not last:
            continue
        label, at = str(block.last if last else inside[0]), i * wide
        if not text or at > len(text):
            text = text.ljust(at) + label
    return text


def segments_table(counts: Counts) -> Padding:
    """The most shown segments, and how many more there are."""
    table = empty_table([", ".join(counts.segment_columns)], ["impressions", "ctr", "comparisons"])
    sizes = segment_sizes(counts)
    for size in sizes[:MOST_SEGMENTS]:
        table.add_row(
            Text(segment_words(size.segment)),
            f"{size.impressions:,}",
            percent(size.ctr),
            f"{size.comparisons:,.0f}",
        )
    if len(sizes) > MOST_SEGMENTS:
        table.add_row(Text(f"and {len(sizes) - MOST_SEGMENTS:,} more", style="dim"), "", "", "")
    return indent(table)


def support_table(found: Inspection) -> Padding:
    """How many clicks compare the ranks, and how well they can do it."""
    table = empty_table(["ranks"], ["impressions", "clicks", "ctr", "comparisons", "at best"])
    for s in found.support:
        table.add_row(
            rank_words(s.first, s.last),
            f"{s.impressions:,}",
            f"{s.clicks:,}",
            percent(s.ctr),
            f"{s.compared:,.0f}",
            margin(at_best(s.compared)) if s.compared > 0 else "",
        )
    return indent(table)


def ways_lines(ways: Ways) -> list[RenderableType]:
    """What each way that was tried would give, and what it assumes."""
    deepest = max((way.rank for way in ways.tried if way.rank), default=None)
    table = empty_table(["way"], ["pairs", "clicks", "propensity, 95%"])
    words = [word for way in ways.tried for word in flags(way.options).split()]
    table.columns[0].min_width = min(LONGEST, max(map(len, [*words, ways.tried[0].words])))
    table.add_column(line("if …"), overflow="fold")
    for way in ways.tried:
        known = "no curve"
        if way.rank:
            known = f"{_figure(way.propensity)} ({_figure(way.low)}–{_figure(way.high)})"
            known = known if way.rank == deepest else f"rank {way.rank}: {known}"
        table.add_row(
            line(flags(way.options) or way.words),
            f"{way.pairs:,}",
            f"{way.clicks:,}",
            known,
            line(way.assumes),
            style="bold" if way is ways.best else "",
        )
    told = "Each was tried on this log"
    if ways.sample > 1:
        told = (
            f"Each but the first was tried on one in {ways.sample:,} queries; numbers are scaled "
            "up to the whole log"
        )
    if deepest:
        told += f". The propensity is that of rank {deepest} beside rank 1"
    return [indent(table), indent(line(f"{told}.", "dim"))]


def _figure(value: float | None) -> str:
    """With two digits behind the point, more where these would be 0."""
    return figure(value) if value is None or value < 0.1 or value > 1000 else f"{value:.2f}"


def connection_words(linked: Connection) -> str:
    """Which ranks can be compared with each other."""
    if not linked.blocks:
        return "No two ranks can be compared."
    main, *others = linked.blocks
    words = [f"Ranks {ranges(main)} can be compared with each other."]
    if others:
        words.append(
            "1 other group compares only among itself."
            if len(others) == 1
            else f"{len(others)} other groups compare only among themselves."
        )
    if linked.alone:
        alone = many(len(linked.alone), "rank")
        words.append(f"{alone} ({ranges(linked.alone)}) can be compared with none of them.")
    return " ".join(words)


def worth_logging_lines(found: Inspection) -> list[RenderableType]:
    """The columns that would make more checks possible, and how to name one that is there."""
    table = Table.grid(padding=(0, 2))
    for role, why in found.worth_logging.items():
        table.add_row(role, line(why))
    flag = f"--{next(iter(found.worth_logging))}"
    return [indent(table), indent(line(f"If one is there under another name: {flag} NAME.", "dim"))]


def worth_segmenting_lines(found: Inspection) -> list[RenderableType]:
    """The columns by which curves may differ, and how to count by one."""
    table = Table.grid(padding=(0, 2))
    for name, values in found.worth_segmenting.items():
        table.add_row(line(name), line(values))
    flag = f"--segment {next(iter(found.worth_segmenting))}"
    words = f"Users may look through other pages otherwise: {flag} counts them apart."
    return [indent(table), indent(line(words, "dim"))]


def verdict_lines(found: Inspection) -> list[RenderableType]:
    """The verdict, its reasons and what to do."""
    word = Text("  ") + Text(found.verdict, style=COLOURS[Fitness(found.verdict)])
    return [word, bullets(found.reasons), *([bullets(found.advice, ">")] if found.advice else [])]
