"""Yandex's relevance prediction challenge: sessions, a line per query or click."""

import re

from rankdrift.log.formats.format import LINES, Fields, Format, Sight, latest, unfolded

_LINE = re.compile(r"\d+\t\d+\t(Q\t\d+\t\d+(\t\d+)+|C\t\d+)\s*")


class _Yandex(Format):
    def recognises(self, sight: Sight) -> bool:
        return bool(sight.lines) and all(_LINE.fullmatch(line) for line in sight.lines)

    def select(self, f: Fields, source: str) -> str:
        """A row per URL of a query, and per click."""
        d = f.dialect
        words = d.split.format("line")
        part = {n: d.part.format("line", d.literal("\t"), n) for n in range(1, 6)}
        asked = f"{part[3]} = 'Q' AND {d.size.format(words)} > 5"
        opened = unfolded(source, f"CASE WHEN {asked} THEN {words} END", d)
        at, doc = d.integer.format(part[2]), f"CASE WHEN {asked} THEN rd_doc ELSE {part[4]} END"
        return self.rows(
            f,
            f"{opened}\nWHERE line IS NOT NULL AND (NOT ({asked}) OR rd_place > 5)",
            event=part[3],
            query=f"CASE WHEN {asked} THEN {part[4]} END",
            search=latest((part[1],), doc, asked, at, d),
            doc=f"nullif({doc}, '')",
            rank=f"CASE WHEN {asked} THEN rd_place - 5 END",
            session=part[1],
            region=f"CASE WHEN {asked} THEN {part[5]} END",
        )


YANDEX = _Yandex(
    name="yandex",
    title="Yandex's relevance prediction challenge",
    schema="the sessions of the challenge (2011), as PyClick reads them",
    needs="lines of a session: a query with its URLs, or a click",
    shape=LINES,
    reads="lines",
    origins={
        "event": "TypeOfAction, Q or C",
        "query": "QueryID",
        "search": "SessionID, and TimePassed of the query that showed the URL last",
        "doc": "the URLs of a query; URLID of a click",
        "rank": "the place among the URLs",
        "session": "SessionID",
        "region": "RegionID",
    },
    shown_events=("Q",),
    click_events=("C",),
)
