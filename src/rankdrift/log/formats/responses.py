"""Formats whose click events name a search; its results are in the response that was logged."""

from dataclasses import dataclass

from rankdrift.log.formats.format import Fields, Format, unfolded


@dataclass(frozen=True)
class Responses(Format):
    """Search responses and events in one log, a document each.

    Parameters
    ----------
    search_ids
        Where an event or a response has the id of its search.
    hit_ids
        Where a hit has its id.
    clicked
        Where an event has the docs: a list, or one.
    users
        Where an event or a response names its user.
    offset
        SQL of how many results come before a response's first, in terms of `page`, `size` and
        `offset`.
    """

    search_ids: tuple[tuple[str, ...], ...] = ()
    hit_ids: tuple[tuple[str, ...], ...] = ()
    clicked: str = ""
    users: tuple[tuple[str, ...], ...] = ()
    offset: str = "0"

    def select(self, f: Fields, source: str) -> str:
        """A row per hit of a response, per doc of an event and per other document."""
        documents = "rd_documents"  # read once, looked at three times
        d, hits, event = f.dialect, f.listed("hits"), f.text("eventType")
        common = {
            "search": f.any_text(*self.search_ids),
            "timestamp": f.instant(("timestamp",), ("@timestamp",)),
            "user": f.any_text(*self.users),
            "index": f.any_text(("index",), ("indexUid",), ("metadata", "indexUid")),
        }
        docs = f.listed(self.clicked)
        happened = f"{documents} WHERE {event} IS NOT NULL"
        listed = unfolded(f"(SELECT * FROM {happened}) AS rd_events", docs, d) if docs else happened
        events = self.rows(
            f,
            listed,
            event=event,
            doc=f"nullif({d.text.format('rd_doc')}, '')" if docs else f.text(self.clicked),
            **common,
        )
        read = f"WITH rd_documents AS (SELECT * FROM {source})\n"
        if not hits:
            return read + events
        hit = f.inside("hits")
        before = self.offset.format(
            page=f.whole("page"), size=f.whole("hitsPerPage"), offset=f.whole("offset")
        )
        responses = f"(SELECT * FROM {documents} WHERE {event} IS NULL AND {hits} IS NOT NULL)"
        doc = hit.any_text(*self.hit_ids)
        shown = self.rows(
            f,
            unfolded(f"{responses} AS rd_responses", hits, d),
            event=d.literal(self.shown_events[0]),
            query=f.text("query"),
            doc=doc,
            rank=f"CASE WHEN rd_doc IS NOT NULL THEN coalesce({before}, 0) + rd_place END",
            price=hit.number("price"),
            **common,
        )
        other = self.rows(
            f,
            f"{documents} WHERE {event} IS NULL AND {hits} IS NULL",
            event="'unknown'",
            **common,
        )
        return f"{read}{events}\nUNION ALL\n{shown}\nUNION ALL\n{other}"
