"""Algolia: click events of Insights, and the search responses that an application logged."""

from rankdrift.log.formats.responses import Responses

ALGOLIA = Responses(
    name="algolia",
    title="Algolia Insights events and logged search responses",
    schema="Insights API 1 and the response of Search API 1, as of March 2026",
    needs="click events with queryID, and search responses (clickAnalytics=true) with a timestamp",
    shape={
        "eventType": "text",
        "queryID": "text",
        "objectIDs": ["text"],
        "index": "text",
        "userToken": "text",
        "authenticatedUserToken": "text",
        "timestamp": "text",
        "@timestamp": "text",
        "query": "text",
        "page": "int",
        "hitsPerPage": "int",
        "offset": "int",
        "hits": [{"objectID": "text", "price": "float"}],
    },
    marks=(("queryID", "hits", "hits.objectID"), ("eventType", "queryID", "objectIDs")),
    origins={
        "event": "eventType; 'search' of a response",
        "query": "query of the response",
        "search": "queryID",
        "doc": "hits.objectID of the response; objectIDs of the event",
        "rank": "page * hitsPerPage (or offset) + the place in hits",
        "timestamp": "timestamp",
        "user": "userToken, or authenticatedUserToken",
        "index": "index",
        "price": "hits.price",
    },
    shown_events=("search",),
    search_ids=(("queryID",),),
    hit_ids=(("objectID",),),
    clicked="objectIDs",
    users=(("userToken",), ("authenticatedUserToken",)),
    offset="coalesce({offset}, {page} * {size})",
)
