"""Elastic's Behavioral Analytics, deprecated and still in people's indices."""

from rankdrift.log.formats.format import Fields, Format, has, named, unfolded, view, visit
from rankdrift.log.layouts import VISITS

_DOCUMENT = {
    "@timestamp": "text",
    "event": {"action": "text"},
    "session": {"id": "text"},
    "user": {"id": "text"},
    "document": {"id": "text"},
    "search": {
        "query": "text",
        "search_application": "text",
        "sort": {"name": "text"},
        "page": {"current": "int", "size": "int"},
        "results": {"items": [{"document": {"id": "text"}}]},
    },
}


class _Elastic(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per result of a search, per click and per other event."""
        d = f.dialect
        items = ("search", "results", "items")
        of_items = [path for path in (items, ("_source", *items)) if f.listed(*path)]
        lists = [f.sql(*path) for path in of_items]

        def field(*path: str) -> str:  # a dump of an index has documents inside `_source`
            return f.any_text(path, ("_source", *path))

        action = field("event", "action")
        page, size = (
            d.integer.format(field("search", "page", name)) for name in ("current", "size")
        )
        events = named(
            f,
            source,
            e_event=action,
            e_shown=has(action, self.shown_events, d),
            e_words=field("search", "query"),
            e_doc=field("document", "id"),
            e_before=f"coalesce(({page} - 1) * {size}, 0)",
            e_at=f.instant(("@timestamp",), ("_source", "@timestamp")),
            e_user=field("user", "id"),
            e_session=field("session", "id"),
            e_visit=visit((field("session", "id"),), (), d),
            e_sort=field("search", "sort", "name"),
            e_application=field("search", "search_application"),
            e_items=f"CASE WHEN {has(action, self.shown_events, d)} THEN"
            f" coalesce({', '.join(lists)}) END"
            if lists
            else d.text_list.format("NULL"),
        )
        item = f.inside(*of_items[0]) if lists else Fields({}, d)
        doc = f"CASE WHEN e_shown THEN {item.text('document', 'id')} ELSE e_doc END"
        return self.rows(
            f,
            unfolded(events, "e_items", d),
            event="e_event",
            query="e_words",
            search=view("e_shown", "e_visit", "e_at", d),
            visit="e_visit",
            doc=doc,
            rank="CASE WHEN e_shown AND rd_doc IS NOT NULL THEN e_before + rd_place END",
            timestamp="e_at",
            user="e_user",
            session="e_session",
            sort="e_sort",
            application="e_application",
        )


ELASTIC = _Elastic(
    name="elastic",
    title="Elastic Behavioral Analytics",
    schema="the events reference of Elasticsearch 8.8 to 8.19 (deprecated in 9.0)",
    needs="search events with search.results.items, and search_click events of the same session",
    shape={**_DOCUMENT, "_source": _DOCUMENT},
    marks=(
        ("event.action", "session.id", "search.query"),
        ("_source.event.action", "_source.session.id", "_source.search.query"),
    ),
    origins={
        "event": "event.action",
        "query": "search.query",
        "search": "visit and @timestamp, of a search",
        "visit": "session.id, which a search and its clicks have in common",
        "doc": "search.results.items.document.id of a search; document.id of a click",
        "rank": "the place in search.results.items, after (search.page.current - 1) * size",
        "timestamp": "@timestamp",
        "user": "user.id",
        "session": "session.id",
        "sort": "search.sort.name",
        "application": "search.search_application",
    },
    shown_events=("search",),
    click_events=("search_click", "click"),
    layout=VISITS,
    kinds={"search": "int"},
)
