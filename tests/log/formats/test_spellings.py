"""The same small log as people really have it: other names, flattened, in lists, as CSV."""

import csv
import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdrift import harvest, inspect, read_log
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.harvesting.by_day import harvest_by_day

pytestmark = pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
ACTION = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
PRODUCT = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"
PLACES = [(s, p, f"d{(s + p) % 4}") for s in range(12) for p in range(4)]
# What every way of writing it must come to: 4 results in each of 12 searches, 16 clicks.
WANTED = {"rows": 48, "clicks": 16, "pairs": 8}


@pytest.fixture
def write(tmp_path):
    def lines(documents, name="log.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return path

    return lines


def used(log):
    funnel = harvest(log).funnel
    funnel.check()
    return {"rows": funnel.used.rows, "clicks": funnel.used.clicks, "pairs": funnel.used.pairs}


def clicked(search, place):
    return (search + place) % 3 == 0


def ubi(shown="impression", click="click"):
    said = {"timestamp": "2024-05-01T10:00:00Z"}
    for s in range(12):
        yield {"query_id": f"s{s}", "user_query": f"tea {s % 2}", "client_id": "c", **said}
    for s, p, doc in PLACES:
        where = {"object": {"object_id": doc}, "position": {"ordinal": p}}
        event = {"query_id": f"s{s}", "event_attributes": where, **said}
        yield {"action_name": shown, **event}
        if clicked(s, p):
            yield {"action_name": click, **event}


def flat(document, before=""):
    found = {}
    for name, value in document.items():
        inner = flat(value, f"{before}{name}.") if isinstance(value, dict) else None
        found |= inner or {before + name: value}
    return found


def elastic():
    for s in range(12):
        common = {"session": {"id": f"x{s}"}, "user": {"id": "u"}}
        items = [{"document": {"id": doc}} for each, _, doc in PLACES if each == s]
        yield {
            "@timestamp": f"2024-05-01T10:{s:02}:00Z", "event": {"action": "search"},
            "search": {"query": f"tea {s % 2}", "results": {"items": items}}, **common,
        }  # fmt: skip
        for p in range(4):
            if clicked(s, p):
                yield {
                    "@timestamp": f"2024-05-01T10:{s:02}:0{p + 1}Z",
                    "event": {"action": "search_click"}, "search": {"query": f"tea {s % 2}"},
                    **items[p], **common,
                }  # fmt: skip


def snowplow(action=ACTION, product=PRODUCT):
    for s in range(12):
        common = {"domain_sessionid": f"x{s}", "page_urlquery": f"q=tea+{s % 2}"}
        items = [{"id": doc, "position": p} for each, p, doc in PLACES if each == s]
        viewed, clicks = ({"type": f"list_{word}", "name": "found"} for word in ("view", "click"))
        at = f"2024-05-01 10:{s:02}"
        yield {"collector_tstamp": f"{at}:00", action: viewed, product: items, **common}
        for p in range(4):
            if clicked(s, p):
                told = {action: clicks, product: [items[p]], **common}
                yield {"collector_tstamp": f"{at}:0{p + 1}", **told}


def algolia():
    for s in range(12):
        at, hits = 1714557600000 + s * 10**6, [d for each, _, d in PLACES if each == s]
        response = {"queryID": f"s{s}", "query": f"tea {s % 2}", "timestamp": at}
        yield "results", {**response, "hits": [{"objectID": doc} for doc in hits]}
        for p in range(4):
            if clicked(s, p):
                about = {"queryID": f"s{s}", "objectIDs": [hits[p]], "timestamp": at + 9}
                yield "events", {"eventType": "click", "userToken": "u", **about}


@pytest.mark.parametrize(
    ("shown", "click"),
    [
        ("Impression", "ITEM_CLICK"),
        ("product impression", "product click"),
        ("itemImpression", "itemClick"),
        ("search_result_impression", "search-result-click"),
    ],
)
def test_ubi_events_have_many_names(write, shown, click):
    assert used(read_log(write(ubi(shown, click)))) == WANTED


def as_texts(document):
    return {n: json.dumps(v) if isinstance(v, dict) else v for n, v in document.items()}


@pytest.mark.parametrize(
    "documents",
    [
        [flat(document) for document in ubi()],
        [{"_source": flat(document)} for document in ubi()],
        [as_texts(document) for document in ubi()],
        [as_texts(document) if n % 2 else document for n, document in enumerate(ubi())],
        [{"hits": {"hits": [{"_id": "1", "_source": document} for document in ubi()]}}],
        [line for document in ubi() for line in ({"create": {"_id": "1"}}, document)],
        [line for document in ubi() for line in ({"index": {}}, document)],
        [flat(document) for document in elastic()],
        [{"_source": flat(document)} for document in elastic()],
        [*snowplow(f"{ACTION}_0_2", f"{PRODUCT}_0_0")],
        [{name.upper(): value for name, value in event.items()} for event in snowplow()],
        [{name: [document]} for name, document in algolia()],
        [{name: [doc]} if name == "events" else doc for name, doc in algolia()],
    ],
    ids=[
        "flat UBI", "flat UBI in a dump", "JSON in texts", "JSON in some texts",
        "response to a search", "create", "header without an index", "flat Elastic",
        "flat Elastic in a dump", "versions in full", "capitals", "what was sent",
        "what was sent beside what was not",
    ],
)  # fmt: skip
def test_documents_are_written_in_many_ways(write, documents):
    log = read_log(write(documents))
    assert used(log) == WANTED
    assert not harvest(log).funnel.dropped["other_event"].rows


def test_columns_are_read_as_fields_are(write, tmp_path):
    """An export of a dashboard, and a table of a warehouse that keeps JSON as text."""
    words = {f"s{s}": f"tea {s % 2}" for s in range(12)}
    events = [e | {"user_query": words[e["query_id"]]} for e in ubi() if "action_name" in e]
    with open(tmp_path / "export.csv", "w") as file:
        table = csv.DictWriter(file, list(flat(events[0])))
        table.writeheader()
        table.writerows(map(flat, events))
    assert used(read_log(tmp_path / "export.csv")) == WANTED
    path = write(map(as_texts, snowplow()))
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({PRODUCT}::JSON::VARCHAR AS {PRODUCT}) FROM read_json('{path}'))"
        f" TO '{tmp_path / 'table.parquet'}'"
    )
    assert used(read_log(tmp_path / "table.parquet")) == WANTED


def test_solr_logs_docs_with_commas_between(write):
    """Its component writes queries, and lets others write events."""
    docs = {s: [d for each, _, d in PLACES if each == s] for s in range(12)}
    said = {"timestamp": "2024-05-01T10:00:00Z", "application": "shop", "query_attributes": "{}"}
    queries = [
        {"query_id": f"s{s}", "user_query": f"tea {s % 2}", "doc_ids": ",".join(docs[s]), **said}
        for s in docs
    ]
    clicks = [event for event in ubi() if event.get("action_name") == "click"]
    assert used(read_log(write(queries + clicks))) == WANTED
    for query in queries:
        query["doc_ids"] = query["doc_ids"].split(",")
    queries.append({**queries[0], "query_id": "none found", "doc_ids": ""})
    assert used(read_log(write(queries + clicks))) == WANTED


def ga4():
    for s in range(12):
        items = [{"item_id": d, "item_list_index": str(p)} for each, p, d in PLACES if each == s]
        common = {"event_date": "20240501", "user_pseudo_id": f"u{s}"}
        words = [{"key": "search_term", "value": {"string_value": f"tea {s % 2}"}}]
        at = 1714557600000000 + s * 10**8
        yield {
            "event_name": "view_item_list", "event_timestamp": at, "event_params": words,
            "items": items, **common,
        }  # fmt: skip
        for p in range(4):
            if clicked(s, p):
                yield {
                    "event_name": "select_item", "event_timestamp": at + 9, "event_params": [],
                    "items": [items[p]], **common,
                }  # fmt: skip


def in_lists(documents):
    """Tables that were made from Parquet by its letter have a struct around every element."""
    for event in documents:
        lists = {
            name: {"list": [{"element": each} for each in event[name]]}
            for name in ("event_params", "items")
        }
        yield event | lists


def test_lists_of_bigquery_may_be_structs(tmp_path):
    pq.write_table(pa.Table.from_pylist(list(ga4())), tmp_path / "plain.parquet")
    assert used(read_log(tmp_path / "plain.parquet")) == WANTED
    pq.write_table(pa.Table.from_pylist(list(in_lists(ga4()))), tmp_path / "structs.parquet")
    assert used(read_log(tmp_path / "structs.parquet")) == WANTED


def test_settings_may_lie_in_the_folder_of_the_log(tmp_path):
    """Where `init` puts them who stands there; they say the format, and all files are looked at."""
    pq.write_table(pa.Table.from_pylist(list(ga4())), tmp_path / "events_20240501.parquet")
    (tmp_path / "rankdrift.toml").write_text('format = "ga4"\n')
    assert used(read_log(tmp_path, format="ga4")) == WANTED
    (tmp_path / "notes.txt").write_text("?")
    assert used(read_log(tmp_path, format="ga4")) == WANTED
    (tmp_path / "more.csv").write_text("?")
    with pytest.raises(BadLog, match=r"such as '.*\*\.parquet', or choose"):
        read_log(tmp_path, format="ga4")


def test_what_is_not_read_of_a_known_format_says_what_to_do(tmp_path):
    line = ["shop", "web"] + [""] * 129
    line[58] = '{"schema": "iglu:com.snowplowanalytics.snowplow/unstruct_event/jsonschema/1-0-0"}'
    (tmp_path / "run.tsv").write_text("\t".join(line) + "\n" + "\t".join(line) + "\n")
    for options in ({}, {"format": "snowplow"}):
        with pytest.raises(BadLog, match=r"columns have no names.*Analytics SDK"):
            read_log(tmp_path / "run.tsv", **options)


def test_versions_that_differ_are_refused(tmp_path):
    duckdb.sql(
        f"COPY (SELECT {{'type': 'list_view'}} AS {ACTION}, {{'name': 'x'}} AS {ACTION}_0_1,"
        f" [{{'id': 'd'}}] AS {PRODUCT}) TO '{tmp_path / 'log.parquet'}'"
    )
    with pytest.raises(BadLog, match="versions of the same"):
        read_log(tmp_path / "log.parquet")


def test_a_day_of_ga4_is_not_read_twice(write):
    event = {
        "event_name": "view_item_list", "event_timestamp": 1714557600000000, "event_params": [],
        "items": [{"item_id": "d", "item_list_index": "0"}], "event_date": "20240501",
    }  # fmt: skip
    names = (
        "events_20240501.json",
        "events_intraday_20240501.json",
        "events_intraday_20240502.json",
    )
    day, same, next_day = (write([event], name) for name in names)
    assert read_log([day, next_day]).format.name == "ga4"
    with pytest.raises(
        BadLog, match=r"events_20240501.json' have the same events: .* intraday one"
    ):
        read_log([day, same, next_day])


def test_what_is_missing_is_said_in_the_words_of_the_format(write):
    def advice(documents, **options):
        return " ".join(inspect(read_log(write(documents), **options)).advice)

    queries = [document for document in ubi() if "action_name" not in document]
    with pytest.raises(BadLog, match=r"shows no result.*: it has no events. It needs ubi_events"):
        harvest(read_log(write(queries)))
    with pytest.raises(BadLog, match=r"'display' \(48\).*name them with --shown-events"):
        harvest(read_log(write(ubi("display"))))
    assert "Of 'hover' (16), name those that are: --click-events" in advice(ubi(click="hover"))
    words = advice([document for document in ubi() if "action_name" in document])
    assert "it comes from user_query of the query with the same query_id" in words
    assert "Add days" not in words
    elsewhere = [
        event
        | {"items": [item | {"item_list_name": event["event_name"]} for item in event["items"]]}
        for event in ga4()
    ]
    words = advice(elsewhere)
    assert "clicks are joined to results by event_date, user, session and list" in words
    hits = [{"sku": "a"}, {"sku": "b"}]
    told = {"metadata": {"queryUid": "s"}, "query": "tea", "timestamp": "2024-05-01T10:00:00Z"}
    click = {"eventType": "click", "queryUid": "s", "objectId": "a"}
    words = advice([{**told, "hits": hits}, click])
    assert "'doc missing': it comes from hits.id (or _id, objectId)" in words


def test_formats_without_days_or_queries_ask_for_none(tmp_path):
    (tmp_path / "log.txt").write_text("1\t0\tQ\t5\t3\t10\t11\n1\t3\tC\t11\n")
    log = read_log(tmp_path / "log.txt")
    with pytest.raises(BadOption, match=r"have no days.*Leave out --by day"):
        harvest_by_day(log, tmp_path / "days")
    assert "--day" not in " ".join(inspect(log).advice)
    rows = "".join(f"2024-05-01,{(s + p) % 40},{p + 1},{(s + p) % 3 // 2},1\n"
                   for s in range(300) for p in range(9))  # fmt: skip
    header = "timestamp,item_id,position,click,propensity_score\n"
    (tmp_path / "men.csv").write_text(header + rows)
    found = inspect(read_log(tmp_path / "men.csv"))
    assert "queries" not in " ".join([*found.reasons, *found.advice])
    assert not found.ways.tried[0].refused  # errors go by docs


def test_columns_that_users_see_other_pages_by_are_suggested(tmp_path):
    where = "s % 3 = 0"
    duckdb.sql(
        "COPY (SELECT 'tea ' || s % 7 AS query, (r * 3 + s) % 20 AS doc, r AS rank,"
        " (r + s) % 4 // 3 AS click, DATE '2024-05-01' AS day,"
        f" CASE WHEN {where} THEN 'app' ELSE 'web' END AS platform, 'de' AS locale, s AS market,"
        f" CASE WHEN {where} THEN NULL ELSE 'x' END AS device"
        f" FROM range(300) a(s), range(1, 11) b(r)) TO '{tmp_path / 'log.parquet'}'"
    )
    log = tmp_path / "log.parquet"
    assert inspect(log).worth_segmenting == {"platform": "web 66.7%, app 33.3%"}
    assert not inspect(read_log(log, segment="platform")).worth_segmenting
