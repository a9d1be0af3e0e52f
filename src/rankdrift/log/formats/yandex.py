"""Yandex's relevance prediction challenge: sessions, a line per query or click."""

from dataclasses import replace

from rankdrift.log.formats.format import (
    LINES,
    Fields,
    Format,
    cut_lines,
    named,
    unfolded,
    view,
    visit,
)
from rankdrift.log.layouts import VISITS


class _Yandex(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per URL of a query, and per click."""
        d = f.dialect
        part = {n: d.element.format("e_parts", n) for n in range(1, 6)}
        asked = f"{part[3]} = 'Q' AND {d.size.format('e_parts')} > 5"
        acts = named(
            f,
            cut_lines(f, source),
            e_session=part[1],
            e_visit=visit((part[1],), (), d),
            e_at=d.integer.format(part[2]),
            e_event=part[3],
            e_fourth=part[4],
            e_region=part[5],
            e_asked=f"coalesce({asked}, FALSE)",
            e_urls=f"CASE WHEN {asked} THEN e_parts END",
        )
        doc = "CASE WHEN e_asked THEN rd_doc ELSE e_fourth END"
        return self.rows(
            f,
            f"{unfolded(acts, 'e_urls', d)}\nWHERE NOT e_asked OR rd_place > 5",
            event="e_event",
            query=f"CASE WHEN e_asked THEN {d.integer.format('e_fourth')} END",
            search=view("e_asked", "e_visit", "e_at", d),
            visit="e_visit",
            seconds_passed="e_at",
            doc=d.integer.format(doc),
            rank="CASE WHEN e_asked THEN rd_place - 5 END",
            session="e_session",
            region="CASE WHEN e_asked THEN e_region END",
        )


YANDEX = _Yandex(
    name="yandex",
    title="Yandex's relevance prediction challenge",
    schema="the sessions of the challenge (2011), as PyClick reads them",
    needs="lines of a session: a query with its URLs, or a click",
    shape=LINES,
    reads="lines",
    line=r"\d+\t\d+\t(Q\t\d+\t\d+(\t\d+)+|C\t\d+)\s*",
    origins={
        "event": "TypeOfAction, Q or C",
        "query": "QueryID",
        "search": "visit and TimePassed, of a query",
        "visit": "SessionID, which a query and its clicks have in common",
        "doc": "the URLs of a query; URLID of a click",
        "rank": "the place among the URLs",
        "session": "SessionID",
        "seconds_passed": "TimePassed",
        "region": "RegionID",
    },
    shown_events=("Q",),
    click_events=("C",),
    layout=replace(VISITS, moment="seconds_passed"),
    kinds={"search": "int", "query": "int", "doc": "int"},
)
