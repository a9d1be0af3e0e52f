"""Baidu-ULTR: a line per query, then a line per result of it."""

import re

from rankdrift.log.formats.format import FILE_NAME, LINES, Fields, Format, Sight, cut_lines, named
from rankdrift.log.layouts import LONG

_RESULT = re.compile(r"\d+\t[^\t]+\t")
_FEW = 5  # fields up to which a line is a query, not a result


class _Baidu(Format):
    def recognises(self, sight: Sight) -> bool:
        lines = sight.lines
        results = [line for line in lines if line.count("\t") >= 25 and _RESULT.match(line)]
        queries = [line for line in lines if 1 <= line.count("\t") <= 2]
        return bool(results and queries) and len(results) + len(queries) == len(lines)

    def select(self, f: Fields, source: str) -> str:
        """A row per result, with the query of the last line before it that is one."""
        d = f.dialect
        part = {n: d.element.format("e_parts", n) for n in (1, 2, 5, 6, 17)}
        lines = named(
            f,
            cut_lines(f, source, e_line="rd_line"),
            e_line="e_line",
            e_asked=f"CASE WHEN {d.size.format('e_parts')} <= {_FEW} THEN e_line END",
            **{f"e_{n}": f"coalesce({sql}, '')" if n == 2 else sql for n, sql in part.items()},
        )

        def last(value: str) -> str:
            said = f"CASE WHEN e_asked IS NOT NULL THEN {value} END"
            return d.last_so_far.format(said, FILE_NAME, "e_line")

        said = (
            f"(SELECT *, {last('e_asked')} AS rd_search, {last('e_2')} AS rd_words,"
            f" {last(FILE_NAME)} AS rd_of FROM {lines}) AS rd_said"
        )
        return self.rows(
            f,
            f"{said}\nWHERE e_asked IS NULL",
            query=f"CASE WHEN rd_of = {FILE_NAME} THEN nullif(rd_words, '') END",
            search=f"concat({FILE_NAME}, ' ', {d.text.format('rd_search')})",
            doc="nullif(e_2, '')",
            rank=d.integer.format("e_1"),
            click=d.integer.format("e_6"),
            media="e_5",
            dwell=d.number.format("e_17"),
        )


BAIDU = _Baidu(
    name="baidu-ultr",
    title="Baidu-ULTR",
    schema="the web search session data of 2022",
    needs="part-*.gz as they are published",
    shape=LINES,
    reads="lines",
    origins={
        "query": "Query of the line before the results",
        "search": "the file, and which of its queries it is",
        "doc": "URL MD5",
        "rank": "Pos",
        "click": "Click",
        "media": "Multimedia Type",
        "dwell": "Dwelling Time",
    },
    layout=LONG,
    keeps_order=True,
)
