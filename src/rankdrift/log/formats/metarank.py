"""Metarank: rankings, and interactions that name the ranking they belong to."""

from rankdrift.log.formats.format import Fields, Format, named, unfolded


class _Metarank(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per item of a ranking, per interaction and per other event."""
        f, source = f.with_entries(source, "fields", "name", rd_words="query")
        d, item, event = f.dialect, f.inside("items"), f.text("event")
        ranking, items = f"{event} = 'ranking'", f.listed("items")
        events = named(
            f,
            source,
            e_event=f"CASE WHEN {event} = 'interaction' THEN coalesce({f.text('type')}, {event})"
            f" ELSE {event} END",
            e_ranking=f"coalesce({ranking}, FALSE)",
            e_words=f.text("rd_words", "value"),
            e_search=f"CASE WHEN {ranking} THEN {f.text('id')} ELSE {f.text('ranking')} END",
            e_item=f.text("item"),
            e_at=f.instant(("timestamp",)),
            e_user=f.text("user"),
            e_session=f.text("session"),
            e_items=f"CASE WHEN {ranking} THEN {items} END"
            if items
            else d.text_list.format("NULL"),
        )
        return self.rows(
            f,
            unfolded(events, "e_items", d),
            event="e_event",
            query="e_words",
            search="e_search",
            doc=f"CASE WHEN e_ranking THEN {item.text('id')} ELSE e_item END",
            rank="CASE WHEN e_ranking AND rd_doc IS NOT NULL THEN rd_place END",
            timestamp="e_at",
            user="e_user",
            session="e_session",
            score=item.any_number("relevancy", "score"),
        )


METARANK = _Metarank(
    name="metarank",
    title="Metarank",
    schema="the event schema of Metarank 0.7",
    needs="ranking events with a field named query, and interactions of type click with ranking",
    shape={
        "event": "text",
        "id": "text",
        "ranking": "text",
        "timestamp": "text",
        "user": "text",
        "session": "text",
        "type": "text",
        "item": "text",
        "fields": [{"name": "text", "value": "text"}],
        "items": [{"id": "text", "relevancy": "float", "score": "float"}],
    },
    marks=(
        ("event", "id", "timestamp", "items", "items.id"),
        ("event", "id", "timestamp", "ranking", "item"),
    ),
    origins={
        "event": "event; of an interaction, its type",
        "query": "the field named query of the ranking",
        "search": "id of the ranking; ranking of the interaction",
        "doc": "items.id of the ranking; item of the interaction",
        "rank": "the place in items",
        "timestamp": "timestamp",
        "user": "user",
        "session": "session",
        "score": "items.relevancy",
    },
    shown_events=("ranking",),
    roles={"score": "score"},
)
