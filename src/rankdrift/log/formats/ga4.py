"""Google Analytics 4, as it is exported to BigQuery: lists viewed and items selected."""

import re
from collections.abc import Iterable

from rankdrift.core.errors import BadLog
from rankdrift.log.formats.format import (
    Fields,
    Format,
    has,
    named,
    search_words,
    told_by,
    unfolded,
    view,
    visit,
)
from rankdrift.log.layouts import VISITS

_NOT_SET = "'(not set)'"
_OF_EVENT = (
    "e_event", "e_shown", "e_visit", "e_day", "e_at", "e_words", "e_user", "e_session",
    "e_platform", "e_device", "e_country",
)  # fmt: skip
_PARAMS = {
    "p_term": "search_term", "p_page": "page_location", "p_session": "ga_session_id",
    "p_list": "item_list_name", "p_list_id": "item_list_id",
}  # fmt: skip

_TABLE = re.compile(r"events_(intraday_)?(\d{8})")


class _Ga4(Format):
    def check_files(self, paths: Iterable[str]) -> None:
        days: dict[bool, dict[str, str]] = {False: {}, True: {}}
        for path in paths:
            if found := _TABLE.search(path):
                days[bool(found[1])][found[2]] = path
        for day in sorted(days[True].keys() & days[False]):
            raise BadLog(
                f"{days[True][day]!r} and {days[False][day]!r} have the same events: GA4 makes the "
                "table of a day from that of the day as it goes on. Leave the intraday one out."
            )

    def select(self, f: Fields, source: str) -> str:
        """A row per item of a list viewed or selected, and per other event."""
        d, item = f.dialect, f.inside("items")
        event, items = f.text("event_name"), f.listed("items")
        lists = has(event, (*self.shown_events, *self.click_events), d)

        f, source = f.with_entries(source, "event_params", "key", **_PARAMS)

        def param(name: str) -> str:  # a search for 2024 is a number
            return f.any_text(*((name, "value", kind) for kind in ("string_value", "int_value")))

        def known(*fields: str) -> str:
            return f"coalesce({', '.join(f'nullif({sql}, {_NOT_SET})' for sql in fields)})"

        date, session = f.text("event_date"), param("p_session")
        user = f.any_text(("user_pseudo_id",), ("user_id",))
        parts = (f"substr({date}, 1, 4)", f"substr({date}, 5, 2)", f"substr({date}, 7, 2)")
        iso = f"concat({parts[0]}, '-', {parts[1]}, '-', {parts[2]})"
        events = named(
            f,
            source,
            e_event=event,
            e_shown=has(event, self.shown_events, d),
            e_visit=visit((user, session), (date,), d),
            e_day=d.text_day.format(iso),
            e_at=d.epoch_instant.format(f"{f.whole('event_timestamp')} / 1000000.0"),
            e_words=f"coalesce({known(param('p_term'))}, {search_words(param('p_page'), d)})",
            e_user=user,
            e_session=session,
            e_list=known(param("p_list"), param("p_list_id")),
            e_platform=f.text("platform"),
            e_device=f.text("device", "category"),
            e_country=f.text("geo", "country"),
            e_items=f"CASE WHEN {lists} THEN {items} END" if items else d.text_list.format("NULL"),
        )
        each = named(
            f,
            unfolded(events, "e_items", d),
            **{name: name for name in _OF_EVENT},
            i_doc=known(item.text("item_id"), item.text("item_name")),
            i_list=known(item.text("item_list_name"), item.text("item_list_id"), "e_list"),
            i_index=item.whole("item_list_index"),
            i_place="rd_place",
            i_price=item.number("price"),
            i_brand=known(item.text("item_brand")),
            i_category=known(item.text("item_category")),
        )
        in_list = f"CASE WHEN e_visit IS NOT NULL THEN {told_by(('e_visit', 'i_list'), d)} END"
        return self.rows(
            f,
            each,
            event="e_event",
            query="e_words",
            search=view("e_shown", told_by(("e_visit", "i_list"), d), "e_at", d),
            visit=in_list,
            doc="i_doc",
            ordinal="i_index",
            place="i_place",
            day="e_day",
            timestamp="e_at",
            user="e_user",
            session="e_session",
            list="i_list",
            price="i_price",
            brand="i_brand",
            category="i_category",
            platform="e_platform",
            device="e_device",
            country="e_country",
        )


GA4 = _Ga4(
    name="ga4",
    title="Google Analytics 4, exported to BigQuery",
    schema="the BigQuery Export schema of events_YYYYMMDD and events_intraday_YYYYMMDD, as of 2026",
    needs="the events view_item_list and select_item, with the search term (search_term, or q in "
    "page_location)",
    shape={
        "event_date": "text",
        "event_timestamp": "int",
        "event_name": "text",
        "event_params": [
            {"key": "text", "value": {"string_value": "text", "int_value": "int"}},
        ],
        "user_id": "text",
        "user_pseudo_id": "text",
        "platform": "text",
        "device": {"category": "text"},
        "geo": {"country": "text"},
        "items": [
            {
                "item_id": "text",
                "item_name": "text",
                "item_brand": "text",
                "item_category": "text",
                "price": "float",
                "item_list_id": "text",
                "item_list_name": "text",
                "item_list_index": "text",
            }
        ],
    },
    marks=(
        ("event_name", "event_timestamp", "event_params", "items"),
        ("event_name", "event_timestamp", "event_params", "user_pseudo_id"),
    ),
    origins={
        "event": "event_name",
        "query": "search_term in event_params, or q, s, search, query or keyword in page_location",
        "search": "visit and event_timestamp, of a list viewed",
        "visit": "event_date, user, session and list, which a list and its clicks have in common",
        "doc": "items.item_id, or item_name",
        "rank": "items.item_list_index, or the place in items if no index was ever logged",
        "day": "event_date, in the property's own time zone",
        "timestamp": "event_timestamp",
        "user": "user_pseudo_id, or user_id",
        "session": "ga_session_id in event_params",
        "list": "items.item_list_name, or item_list_id",
        "price": "items.price",
        "brand": "items.item_brand",
        "category": "items.item_category",
        "platform": "platform",
        "device": "device.category",
        "country": "geo.country",
    },
    layout=VISITS,
    kept_on="day",  # as in its tables, so that only those that changed are counted again
    shown_events=("view_item_list",),
    click_events=("select_item",),
    counts_from=True,
    kinds={"search": "int"},
)
