"""Baidu-ULTR: a line per query, then a line per result of it."""

import re

from rankdrift.log.formats.format import FILE_NAME, LINES, Fields, Format, Sight
from rankdrift.log.layouts import LONG

_RESULT = re.compile(r"\d+\t[^\t]+\t")
_FEW = 5  # tabs from which on a line is a result, not a query


class _Baidu(Format):
    def recognises(self, sight: Sight) -> bool:
        lines = sight.lines
        results = [line for line in lines if line.count("\t") >= 25 and _RESULT.match(line)]
        queries = [line for line in lines if 1 <= line.count("\t") <= 2]
        return bool(results and queries) and len(results) + len(queries) == len(lines)

    def select(self, f: Fields, source: str) -> str:
        """A row per result, with the query of the last line before it that is one."""
        d = f.dialect
        tab = d.literal("\t")
        part = {n: d.part.format("line", tab, n) for n in (1, 2, 5, 6, 17)}
        query = f"length(line) - length(replace(line, {tab}, '')) < {_FEW}"
        begun = (
            f"(SELECT *, max(CASE WHEN {query} THEN rd_line END) OVER"
            f" (PARTITION BY {FILE_NAME} ORDER BY rd_line"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS rd_search"
            f" FROM {source} WHERE line IS NOT NULL) AS rd_begun"
        )
        words = (
            f"(SELECT *, max(CASE WHEN {query} THEN {part[2]} END) OVER"
            f" (PARTITION BY {FILE_NAME}, rd_search) AS rd_words FROM {begun}) AS rd_said"
        )
        return self.rows(
            f,
            f"{words}\nWHERE NOT ({query})",
            query="rd_words",
            search=f"concat({FILE_NAME}, ' ', {d.text.format('rd_search')})",
            doc=f"nullif({part[2]}, '')",
            rank=d.integer.format(part[1]),
            click=d.integer.format(part[6]),
            media=part[5],
            dwell=d.number.format(part[17]),
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
