"""Snowplow's ecommerce events, enriched: lists of products viewed and clicked."""

import re

from rankdrift.log.formats.format import (
    Fields,
    Format,
    Sight,
    has,
    named,
    search_words,
    unfolded,
    view,
    visit,
)
from rankdrift.log.layouts import VISITS

_ACTION = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
_PRODUCT = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"

_SCHEMA, _COLUMNS = "iglu:com.snowplowanalytics", 120  # of a line of enriched events, at least
_VERSION = re.compile(r"_1_\d+_\d+$")


class _Snowplow(Format):
    def usual_name(self, name: str) -> str:
        """Loaders write versions in full (…_1_0_2), and Snowflake's columns are in capitals."""
        return _VERSION.sub("_1", name.lower())

    def unread(self, sight: Sight) -> str:
        """Enriched events as the pipeline writes them: columns without names."""
        if not any(_SCHEMA in line and line.count("\t") >= _COLUMNS for line in sight.lines):
            return ""
        return (
            "These are enriched events of Snowplow as tab-separated text, whose columns have no "
            "names. Turn them into JSON with Snowplow's Analytics SDK (in Python: "
            "snowplow_analytics_sdk.event_transformer.transform, line by line), or read the events "
            "from the warehouse that they are loaded into."
        )

    def select(self, f: Fields, source: str) -> str:
        """A row per product of a list viewed or clicked, and per other event."""
        d, product = f.dialect, f.inside(_PRODUCT)
        action = f.any_text((_ACTION, "type"), ("event_name",), ("event",))
        lists = has(action, (*self.shown_events, *self.click_events), d)
        products = f.listed(_PRODUCT)
        events = named(
            f,
            source,
            e_event=action,
            e_words=search_words(f.any_text(("page_urlquery",), ("page_url",)), d),
            e_list=f.text(_ACTION, "name"),
            e_at=f.instant(("derived_tstamp",), ("collector_tstamp",), ("dvce_created_tstamp",)),
            e_user=f.any_text(("domain_userid",), ("user_id",)),
            e_session=f.text("domain_sessionid"),
            e_visit=visit((f.text("domain_sessionid"),), (f.text(_ACTION, "name"),), d),
            e_platform=f.text("platform"),
            e_products=f"CASE WHEN {lists} THEN {products} END"
            if products
            else d.text_list.format("NULL"),
        )
        doc = product.any_text(("id",), ("name",))
        shown = has("e_event", self.shown_events, d)
        return self.rows(
            f,
            unfolded(events, "e_products", d),
            event="e_event",
            query="e_words",
            search=view(shown, "e_visit", "e_at", d),
            visit="e_visit",
            doc=doc,
            ordinal=product.whole("position"),
            place="rd_place",
            timestamp="e_at",
            user="e_user",
            session="e_session",
            list="e_list",
            price=product.number("price"),
            category=product.text("category"),
            brand=product.text("brand"),
            currency=product.text("currency"),
            platform="e_platform",
        )


SNOWPLOW = _Snowplow(
    name="snowplow",
    title="Snowplow ecommerce",
    schema="snowplow_ecommerce_action 1-0-2 and product 1-0-0",
    needs="enriched events list_view and list_click with product entities, and the search in "
    "page_urlquery",
    shape={
        "event_name": "text",
        "event": "text",
        "derived_tstamp": "text",
        "collector_tstamp": "text",
        "dvce_created_tstamp": "text",
        "domain_userid": "text",
        "user_id": "text",
        "domain_sessionid": "text",
        "page_urlquery": "text",
        "page_url": "text",
        "platform": "text",
        _ACTION: {"type": "text", "name": "text"},
        _PRODUCT: [
            {
                "id": "text",
                "name": "text",
                "category": "text",
                "brand": "text",
                "price": "float",
                "currency": "text",
                "position": "int",
            }
        ],
    },
    marks=((_ACTION, _PRODUCT),),
    origins={
        "event": "type of the ecommerce action, or event_name",
        "query": "q, s, search, query or keyword in page_urlquery or page_url",
        "search": "visit and timestamp, of a list viewed",
        "visit": "domain_sessionid and the list, which a list and its clicks have in common",
        "doc": "product.id",
        "rank": "product.position, or the place among the products if none was ever logged",
        "timestamp": "derived_tstamp, collector_tstamp or dvce_created_tstamp",
        "user": "domain_userid, or user_id",
        "session": "domain_sessionid",
        "list": "name of the ecommerce action",
        "price": "product.price",
        "category": "product.category",
        "brand": "product.brand",
        "currency": "product.currency",
        "platform": "platform",
    },
    shown_events=("list_view",),
    click_events=("list_click",),
    counts_from=True,
    layout=VISITS,
    kinds={"search": "int"},
)
