"""User Behavior Insights, of OpenSearch and Solr: queries and events, joined on the query's id."""

from rankdrift.log.formats.format import FILE_NAME, Fields, Format, has, named, unfolded

_DOCUMENT = {
    "action_name": "text", "query_id": "text", "user_query": "text", "timestamp": "text",
    "client_id": "text", "session_id": "text", "application": "text",
    "query_response_hit_ids": ["text"], "query_response_object_ids": ["text"],
    "doc_ids": ["text"],
    "event_attributes": {
        "object": {
            "object_id": "text", "internal_id": "text", "search_config": "text", "ranker": "text",
        },
        "position": {"ordinal": "text"}, "search_config": "text", "ranker": "text",
    },
}  # fmt: skip
_HEADERS = (
    "index",
    "create",
    "update",
    "delete",
)  # what lines between documents of a bulk file say
_HITS = ("query_response_hit_ids", "query_response_object_ids", "doc_ids")  # the last is Solr's
_OF_QUERIES = (
    "application", "query_attributes", "query_response_id", "object_id_field", "client_id", *_HITS,
)  # fmt: skip
# As they are written; itemClick, in lower case, is without the underscore.
_SHOWN = (
    "impression", "impressions", "item_impression", "product_impression", "result_impression",
    "search_result_impression", "itemimpression", "productimpression", "resultimpression",
    "searchresultimpression",
)  # fmt: skip
_CLICKS = (
    "click", "click_through", "item_click", "product_click", "result_click", "search_result_click",
    "clickthrough", "itemclick", "productclick", "resultclick", "searchresultclick",
)  # fmt: skip
_RANKERS = (
    ("event_attributes", "object", "search_config"), ("event_attributes", "search_config"),
    ("event_attributes", "object", "ranker"), ("event_attributes", "ranker"),
)  # where the ranker that brought a result may be said: UBI has no field of its own  # fmt: skip
_VIEWS = ("view", "item_view")  # what older demonstrations call an impression; others a page


class _Ubi(Format):
    def event_name(self, name: str) -> str:
        return name.strip().lower().replace("-", "_").replace(" ", "_")

    def select(self, f: Fields, source: str) -> str:
        """Events, with the words of their query; and the lists of searches without impressions."""
        d = f.dialect

        def field(*path: str) -> str:  # a dump of an index has documents inside `_source`
            return f.any_text(path, ("_source", *path))

        action = d.trim.format(field("action_name"))
        ordinal = d.integer.format(field("event_attributes", "position", "ordinal"))
        hits = [
            d.text_list.format(found)
            for name in _HITS
            for path in ((name,), ("_source", name))
            if (found := f.listed(*path))
        ]
        headers = [f"{f.sql(name)} IS NOT NULL" for name in _HEADERS if f.find(name)]
        header = " OR ".join(headers) or "FALSE"
        listed = f"coalesce({', '.join(hits)})" if hits else d.text_list.format("NULL")
        documents = named(
            f,
            source,
            d_action=f"replace(replace(lower({action}), '-', '_'), ' ', '_')",
            d_search=field("query_id"),
            d_words=field("user_query"),
            d_at=f.instant(("timestamp",), ("_source", "timestamp")),
            d_client=field("client_id"),
            d_session=field("session_id"),
            d_application=field("application"),
            d_doc=f.any_text(
                ("event_attributes", "object", "object_id"),
                ("_source", "event_attributes", "object", "object_id"),
                ("event_attributes", "object", "internal_id"),
                ("_source", "event_attributes", "object", "internal_id"),
            ),
            d_ordinal=ordinal,
            d_ranker=f.any_text(*_RANKERS, *(("_source", *path) for path in _RANKERS)),
            d_hits=f"CASE WHEN {action} IS NULL THEN {listed} END",
            d_unknown=f"{field('query_id')} IS NULL AND NOT ({header})",
        )
        shown = has("d_action", self.shown_events, d)
        viewed = f"({has('d_action', _VIEWS, d)} AND d_ordinal IS NOT NULL)"
        of_search = {
            "rd_query_id": "d_search",
            "rd_words": "max(d_words)",
            "rd_at": "min(d_at)",
            "rd_client": "max(d_client)",
            "rd_app": "max(d_application)",
            "rd_impressions": f"max(CASE WHEN {shown} THEN 1 ELSE 0 END)",
            "rd_views": f"max(CASE WHEN {viewed} THEN 1 ELSE 0 END)",
            "rd_hits": "max(d_hits)",
        }
        if FILE_NAME in f.shape:
            of_search["rd_from"] = f"max({FILE_NAME})"
        selected = ", ".join(f"{sql} AS {name}" for name, sql in of_search.items())
        happened = self.rows(
            f,
            "rd_documents LEFT JOIN rd_searches ON rd_query_id = d_search\n"
            "WHERE d_action IS NOT NULL OR d_unknown",
            event=f"CASE WHEN {viewed} AND coalesce(rd_impressions, 0) = 0"
            f" THEN {d.literal(self.shown_events[0])} ELSE coalesce(d_action, 'unknown') END",
            query=d.trim.format("coalesce(rd_words, d_words)"),
            search="d_search",
            doc="d_doc",
            ordinal="d_ordinal",
            place=f"CASE WHEN {shown} OR {viewed} THEN"
            f" nullif({d.first_in.format('rd_hits', 'd_doc')}, 0) END",
            timestamp="d_at",
            user="coalesce(d_client, rd_client)",
            session="d_session",
            application="d_application",
            search_config="d_ranker",
        )
        alone = (
            "(SELECT * FROM rd_searches"
            f" WHERE rd_impressions = 0 AND rd_views = 0 AND {d.size.format('rd_hits')} > 0)"
            " AS rd_lists"
        )
        listed_only = self.rows(
            f,
            unfolded(alone, "rd_hits", d),
            file="rd_from",
            event=d.literal(self.shown_events[0]),
            query=d.trim.format("rd_words"),
            search="rd_query_id",
            doc="rd_doc",
            place="rd_place",
            timestamp="rd_at",
            user="rd_client",
            application="rd_app",
        )
        return (
            f"WITH rd_documents AS (SELECT * FROM {documents}),\n"
            f"rd_searches AS (SELECT {selected} FROM rd_documents WHERE d_search IS NOT NULL"
            " GROUP BY d_search)\n"
            f"{happened}\nUNION ALL\n{listed_only}"
        )


UBI = _Ubi(
    name="ubi",
    title="User Behavior Insights (OpenSearch, Solr)",
    schema="UBI 1.0.0 to 1.3.0 (February 2025)",
    needs="ubi_events with impressions and clicks, or ubi_queries with query_response_hit_ids",
    shape={
        **_DOCUMENT,
        "_source": _DOCUMENT,
        **{name: {"_index": "text"} for name in _HEADERS},
    },
    marks=(
        ("action_name", "query_id"),
        ("_source.action_name", "_source.query_id"),
        *(("user_query", "query_id", name) for name in _OF_QUERIES),
        *(("_source.user_query", "_source.query_id", f"_source.{name}") for name in _OF_QUERIES),
    ),
    origins={
        "event": "action_name",
        "query": "user_query of the query with the same query_id, or of the event",
        "search": "query_id",
        "doc": "event_attributes.object.object_id, or internal_id; query_response_hit_ids",
        "rank": "event_attributes.position.ordinal, or the place in query_response_hit_ids",
        "timestamp": "timestamp",
        "user": "client_id",
        "session": "session_id",
        "application": "application",
        "search_config": "event_attributes.object.search_config or ranker; event_attributes' own",
    },
    shown_events=_SHOWN,
    click_events=_CLICKS,
    counts_from=True,
    place_fills_in=True,
)
