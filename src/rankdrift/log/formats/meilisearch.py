"""Meilisearch: click events, and the search responses that an application logged."""

from rankdrift.log.formats.responses import Responses

MEILISEARCH = Responses(
    name="meilisearch",
    title="Meilisearch events and logged search responses",
    schema="the events endpoint and search metadata, as of 2026",
    needs="click events with queryUid, and search responses with metadata.queryUid, a timestamp "
    "and hits that have an id",
    shape={
        "eventType": "text",
        "queryUid": "text",
        "objectId": "text",
        "indexUid": "text",
        "userId": "text",
        "timestamp": "text",
        "@timestamp": "text",
        "query": "text",
        "page": "int",
        "hitsPerPage": "int",
        "offset": "int",
        "metadata": {"queryUid": "text", "indexUid": "text"},
        "hits": [{"id": "text", "_id": "text", "objectId": "text", "price": "float"}],
    },
    marks=(("metadata.queryUid", "hits"), ("eventType", "queryUid", "objectId")),
    origins={
        "event": "eventType; 'search' of a response",
        "query": "query of the response",
        "search": "queryUid of the event, metadata.queryUid of the response",
        "doc": "hits.id (or _id, objectId) of the response; objectId of the event",
        "rank": "offset, or (page - 1) * hitsPerPage, + the place in hits",
        "timestamp": "timestamp",
        "user": "userId",
        "index": "indexUid",
        "price": "hits.price",
    },
    shown_events=("search",),
    search_ids=(("queryUid",), ("metadata", "queryUid")),
    hit_ids=(("id",), ("_id",), ("objectId",)),
    clicked="objectId",
    users=(("userId",),),
    offset="coalesce({offset}, ({page} - 1) * {size})",
)
