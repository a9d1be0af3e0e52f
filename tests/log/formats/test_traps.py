"""What bites people in each format, against counts worked out by hand."""

import gzip
import json
import warnings

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdrift import Counts, harvest, harvest_by_day, inspect, read_log
from rankdrift.core.errors import BadLog, BadOption, Remark
from rankdrift.log.probing import probe

pytestmark = pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")


@pytest.fixture
def write(tmp_path):
    def lines(documents, name="log.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(document) for document in documents) + "\n")
        return path

    return lines


def rows(log, *columns):
    """The rows of a log, sorted; NULL as None."""
    named = ", ".join(f'"{column}"' for column in columns)
    return sorted(log.engine.query(f"SELECT {named} FROM {log.engine.source}"), key=str)


# -- User Behavior Insights ------------------------------------------------------------------------


def event(action, search, doc=None, ordinal=None, **more):
    attributes = {"object": {"object_id": doc}, "position": {"ordinal": ordinal}}
    return {
        "action_name": action, "query_id": search, "timestamp": "2024-05-01T10:00:00Z",
        "event_attributes": attributes, **more,
    }  # fmt: skip


def query(search, words, hits=None):
    return {
        "query_id": search, "user_query": words, "client_id": "c", "query_response_hit_ids": hits,
        "timestamp": "2024-05-01T10:00:00Z",
    }  # fmt: skip


def test_ubi_takes_ranks_from_ordinals_and_from_lists(write):
    log = read_log(
        write(
            [
                {"index": {"_index": "ubi_queries"}},  # a header of a bulk file
                query("s1", "tea"),
                query("s2", "tea", ["x", "y"]),
                query("s3", "tea", ["a", "b"]),
                query("s4", "tea", []),
                event("impression", "s1", "a", 0),
                event("impression", "s1", "b", 1),
                event("impression", "s3", "b"),  # without an ordinal, but the list has it
                event("impression", "s3", "c"),  # nothing tells its rank
                event("click", "s1", "b", 1),
                event("item_click", "s2", "y"),
                event("click", "s9", "b"),  # its search was never shown
                event("add_to_cart", "s1", "b"),
                event("on_search", None),
            ]
        )
    )
    assert rows(log, "event", "query", "search", "doc", "rank") == sorted(
        [
            ("impression", "tea", "s1", "a", 1),
            ("impression", "tea", "s1", "b", 2),
            ("impression", "tea", "s2", "x", 1),
            ("impression", "tea", "s2", "y", 2),
            ("impression", "tea", "s3", "b", 2),
            ("impression", "tea", "s3", "c", None),
            ("click", "tea", "s1", "b", 2),
            ("item_click", "tea", "s2", "y", None),
            ("click", None, "s9", "b", None),
            ("add_to_cart", "tea", "s1", "b", None),
            ("on_search", None, None, None, None),
        ],
        key=str,
    )
    with pytest.warns(Remark, match="Ranks are logged from 0, so 1 is added"):
        funnel = harvest(log).funnel
    funnel.check()
    dropped = {name: (d.rows, d.clicks) for name, d in funnel.dropped.items() if d.rows or d.clicks}
    assert (funnel.rows, funnel.clicks) == (11, 3)
    assert dropped == {
        "other_event": (2, 0), "click_event": (3, 0), "no_rank": (1, 0), "stray_click": (0, 1),
        "never_clicked": (2, 0), "one_rank": (3, 2),
    }  # fmt: skip
    assert any("1 of 3 clicks is on a result" in remark for remark in inspect(log).remarks)


@pytest.mark.parametrize(
    ("ordinals", "said", "ranks"),
    [
        ([0, 1], None, [1, 2]),
        ([1, 2], None, [1, 2]),
        (["1", "3"], None, [1, 3]),
        ([2, 3], None, [2, 3]),
        ([1, 2], 0, [2, 3]),  # what is said wins
        ([0, 1], 1, [0, 1]),
        ([None, "first"], None, [None, None]),
    ],
)
def test_ordinals_from_0_are_told_from_those_from_1(write, ordinals, said, ranks):
    shown = [event("impression", "s", f"d{i}", o) for i, o in enumerate(ordinals)]
    log = read_log(write([*shown, event("click", "s", "d0", 0)]), first_rank=said)
    found = rows(log, "doc", "rank", "event")
    assert [rank for _, rank, kind in found if kind == "impression"] == ranks


def test_views_are_impressions_where_nothing_else_is(write):
    log = read_log(
        write(
            [
                event("view", "old", "a", 1), event("click", "old", "a"),
                event("Impression", "new", "a", 1), event("view", "new", "a", 1),
                event("view", "page", "a"),  # a page that was viewed has no place in a list
            ]
        )
    )  # fmt: skip
    assert [kind for kind, *_ in rows(log, "event", "search", "doc")] == [
        "click", "impression", "impression", "view", "view",
    ]  # fmt: skip


def test_names_of_events_can_be_given(write):
    log = read_log(
        write([event("impression", "s", "a", 1), event("Tap-Item", "s", "a")]),
        click_events="tap-item",
    )
    with pytest.warns(Remark):
        assert harvest(log).funnel.clicks == 1
    assert log.describe()["click_events"] == ["tap_item"]


def test_documents_that_are_not_as_they_should_be_spoil_nothing(write):
    odd = [
        {**event("impression", "s", "a", 1), "event_attributes": "none"},
        {**event("impression", 7, "a", 1), "user_query": ["a", "b"]},
        {**query("s", "tea"), "query_response_hit_ids": "a,b"},
        {"action_name": None}, {}, {"action_name": "click", "event_attributes": {"object": []}},
    ]  # fmt: skip
    log = read_log(write([event("impression", "s", "a", 1), *odd]))
    with pytest.warns(Remark):
        funnel = harvest(log).funnel
    funnel.check()
    # What is neither an event nor a query is told of, too.
    assert funnel.rows == 6 and funnel.dropped["stray_click"].clicks == 1
    assert funnel.dropped["other_event"].rows == 2


# -- Google Analytics 4 ----------------------------------------------------------------------------


def ga4(name, at, items=(), words=None, session=1, user="u", day="20240501"):
    params = [{"key": "ga_session_id", "value": {"int_value": str(session)}}]
    if words:
        params.append({"key": "search_term", "value": {"string_value": words}})
    return {
        "event_date": day, "event_timestamp": str(1_714_557_600_000_000 + at), "event_name": name,
        "event_params": params, "user_pseudo_id": user,
        "items": [
            {"item_id": doc, "item_list_name": "Search", "item_list_index": index, "price": 2}
            for doc, index in items
        ],
    }  # fmt: skip


def test_a_click_goes_to_the_view_of_the_item_that_was_last(write):
    """No search has an id: two views of one list in a session are two searches."""
    log = read_log(
        write(
            [
                ga4("view_item_list", 0, [("a", "0"), ("b", "1")], "tea"),
                ga4("view_item_list", 1, [("c", "2")], "tea"),  # the next batch of the same list
                ga4("select_item", 2, [("b", "1")]),
                ga4("view_item_list", 3, [("b", "0"), ("a", "(not set)")], "tea"),
                ga4("select_item", 4, [("b", "0")]),
                ga4("select_item", 5, [("b", "0")], session=2),  # seen in another session
                ga4("view_item_list", 6, [], "tea"),
                ga4("page_view", 7),
            ]
        )
    )
    shown = [row for row in rows(log, "event", "doc", "rank", "query") if row[0][0] == "v"]
    assert shown == sorted(
        [
            ("view_item_list", "a", 1, "tea"), ("view_item_list", "b", 2, "tea"),
            ("view_item_list", "c", 3, "tea"), ("view_item_list", "b", 1, "tea"),
            ("view_item_list", "a", None, "tea"), ("view_item_list", None, None, "tea"),
        ],
        key=str,
    )  # fmt: skip
    with pytest.warns(Remark, match="from 0"):
        funnel = harvest(log).funnel
    funnel.check()
    # b was shown at ranks 2 and 1, and clicked at each.
    assert (funnel.used.rows, funnel.used.clicks, funnel.used.pairs) == (2, 2, 1)
    assert funnel.dropped["stray_click"].clicks == 1
    assert funnel.dropped["no_rank"].rows == 2 and funnel.dropped["other_event"].rows == 1


def test_without_any_index_the_place_is_the_rank(write):
    log = read_log(write([ga4("view_item_list", 0, [("a", None), ("b", "(not set)")], "tea")]))
    assert rows(log, "doc", "rank") == [("a", 1), ("b", 2)]
    assert any("No rank was logged" in remark for remark in probe(log))


def test_the_search_term_may_be_in_the_address(write):
    seen = ga4("view_item_list", 0, [("a", "1")])
    address = {"string_value": "https://shop.example/s?page=2&q=green+tea%20cup#top"}
    seen["event_params"].append({"key": "page_location", "value": address})
    assert rows(read_log(write([seen])), "query", "price") == [("green tea cup", 2.0)]


def test_clicks_of_nobody_are_strays(write):
    """Without consent there is neither a user nor a session: it could be anybody's."""
    nobody = {"session": "", "user": ""}
    log = read_log(
        write(
            [
                ga4("view_item_list", 0, [("a", "0"), ("b", "1")], "tea", **nobody),
                ga4("select_item", 1, [("a", "0")], **nobody),
                ga4("view_item_list", 2, [("a", "1"), ("b", "0")], "tea"),
                ga4("select_item", 3, [("a", "1")]),
            ]
        )
    )
    with pytest.warns(Remark):
        funnel = harvest(log).funnel
    funnel.check()
    assert funnel.dropped["stray_click"].clicks == 1 and funnel.used.clicks == 1


def write_table(path, events):
    """Events as Google exports them to Parquet."""
    with duckdb.connect() as con:
        lines = path.with_suffix(".tmp")
        lines.write_text("\n".join(json.dumps(event) for event in events))
        con.execute(f"COPY (FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
        lines.unlink()


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_only_tables_that_changed_are_counted_again(tmp_path, ending):
    """Google's tables change for three days."""
    folder, counts = tmp_path / "tables", tmp_path / "counts"
    folder.mkdir()
    days = ("20240501", "20240502")
    seen = {day: [ga4("view_item_list", 0, [("a", "1")], "tea", day=day)] for day in days}

    def store(day):
        path = folder / f"events_{day}.{ending}"
        if ending == "parquet":
            write_table(path, seen[day])
        else:
            path.write_text("\n".join(map(json.dumps, seen[day])))

    for day in days:
        store(day)
    done = []

    def count():
        done.clear()
        log = read_log(folder)
        harvest_by_day(log, counts, each=lambda day, path, skipped: done.append(skipped))
        return list(done)

    assert count() == [False, False] and count() == [True, True]
    seen[days[1]].append(ga4("select_item", 9, [("a", "1")], day=days[1]))
    store(days[1])
    assert count() == [True, False]
    clicks = [Counts.load(path).funnel.clicks for path in sorted(counts.glob("*.parquet"))]
    assert clicks == [0, 1]


def test_days_are_counted_again_when_another_table_tells_that_ranks_count_from_0(tmp_path):
    """Which they do can only be told from all tables together."""

    def store(day, first):
        one, other = str(first), str(first + 1)
        events = [
            ga4("view_item_list", 0, [("a", one), ("b", other)], "tea", day=day),
            ga4("view_item_list", 1, [("b", one), ("a", other)], "tea", day=day),
            ga4("select_item", 5, [("a", one)], day=day),
        ]
        path = tmp_path / f"events_{day}.json"
        path.write_text("\n".join(map(json.dumps, events)))

    def count():
        done = []
        log = read_log(sorted(tmp_path.glob("*.json")))
        paths = harvest_by_day(
            log, tmp_path / "counts", each=lambda day, path, skipped: done.append(skipped)
        )
        return done, [Counts.load(path).ranks.tolist() for path in paths]

    store("20240501", first=1)
    store("20240502", first=1)
    assert count() == ([False, False], [[1, 2], [1, 2]])
    assert count()[0] == [True, True]
    store("20240502", first=0)  # and so those of the day before are 2 and 3
    assert count() == ([False, False], [[2, 3], [1, 2]])
    assert count()[0] == [True, True]


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_a_click_may_be_on_another_day_than_its_table_if_days_are_not_those_of_tables(
    tmp_path, ending
):
    lists = [ga4("view_item_list", n, [("a", str(n)), ("b", str(3 - n))], "tea") for n in (1, 2)]
    midnight = 1714607999_000_000  # 23:59:59 of a day whose table goes on in another time zone
    for event, at in zip(lists, (midnight - 10_000_000, midnight), strict=True):
        event["event_timestamp"] = at
    click = ga4("select_item", 5, [("a", "2")]) | {"event_timestamp": midnight + 3_000_000}
    path = tmp_path / f"events_20240501.{ending}"
    if ending == "parquet":
        write_table(path, [*lists, click])
    else:
        path.write_text("\n".join(map(json.dumps, [*lists, click])))
    log = read_log(path, day="timestamp")
    whole = harvest(log).funnel
    days = [Counts.load(each).funnel for each in harvest_by_day(log, tmp_path / "counts")]
    assert whole.used.clicks == sum(funnel.used.clicks for funnel in days) == 1


# -- Metarank, Snowplow, Algolia, Elastic, Meilisearch ---------------------------------------------


def test_metarank_interactions_without_a_ranking_are_strays(write):
    ranking = {
        "event": "ranking", "id": "r1", "timestamp": "1714557600000", "user": "u",
        "fields": [{"name": "country", "value": "de"}, {"name": "query", "value": "tea"}],
        "items": [{"id": "a", "relevancy": 1.5}, {"id": "b"}],
    }  # fmt: skip
    act = {"event": "interaction", "id": "i", "timestamp": "1714557601000", "item": "b"}
    log = read_log(
        write(
            [
                ranking,
                {**act, "type": "click", "ranking": "r1"}, {**act, "type": "click", "ranking": ""},
                {**act, "type": "click"}, {**act, "type": "purchase", "ranking": "r1"},
                {"event": "item", "id": "x", "timestamp": "1", "item": "a"},
            ]
        )
    )  # fmt: skip
    assert rows(log, "event", "query", "search", "doc", "rank", "score")[-2:] == [
        ("ranking", "tea", "r1", "a", 1, 1.5),
        ("ranking", "tea", "r1", "b", 2, None),
    ]
    with pytest.warns(Remark):
        funnel = harvest(log).funnel
    assert (funnel.rows, funnel.clicks) == (7, 3)
    assert funnel.dropped["stray_click"].clicks == 2 and funnel.dropped["other_event"].rows == 2


ACTION = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
PRODUCT = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"


def test_snowplow_positions_may_be_missing_and_prices_are_kept(write):
    view = {
        "collector_tstamp": "2024-05-01 10:00:00.000", "domain_sessionid": "s",
        "page_urlquery": "q=tea", ACTION: {"type": "list_view", "name": "search"},
        PRODUCT: [{"id": "a", "position": 0, "price": 9.5}, {"id": "b", "position": None}],
    }  # fmt: skip
    log = read_log(write([view, {"event_name": "page_ping"}]), same="price")
    assert rows(log, "event", "query", "doc", "rank", "price") == [
        ("list_view", "tea", "a", 1, 9.5),
        ("list_view", "tea", "b", None, None),
        ("page_ping", None, None, None, None),
    ]
    assert log.describe()["same"] == ["price"]


def test_algolia_views_without_a_search_are_neither_shown_nor_clicked(write):
    response = {
        "queryID": "q1", "query": "tea", "timestamp": 1714557600000, "page": 1, "hitsPerPage": 20,
        "hits": [{"objectID": "a"}, {"objectID": "b"}], "nbHits": 40,
    }  # fmt: skip
    click = {"eventType": "click", "queryID": "q1", "objectIDs": ["b"], "positions": [22],
             "timestamp": 1714557605000}  # fmt: skip
    view = {"eventType": "view", "objectIDs": ["a", "b"], "timestamp": 1714557601000}
    empty = {**response, "queryID": "q2", "hits": []}
    log = read_log(write([response, click, view, empty, {"message": "?"}]))
    assert rows(log, "event", "search", "doc", "rank") == [
        ("click", "q1", "b", None),
        ("search", "q1", "a", 21),
        ("search", "q1", "b", 22),
        ("search", "q2", None, None),
        ("unknown", None, None, None),
        ("view", None, "a", None),
        ("view", None, "b", None),
    ]


def test_elastic_has_neither_search_ids_nor_positions(write):
    def happened(action, at, words="tea", items=(), doc=None):
        results = {"items": [{"document": {"id": item}} for item in items]}
        return {"_source": {
            "@timestamp": f"2024-05-01T10:00:{at:02}Z", "event": {"action": action},
            "session": {"id": "s"}, "user": {"id": "u"}, "document": {"id": doc},
            "search": {"query": words, "results": results, "page": {"current": 2, "size": 10}},
        }}  # fmt: skip

    log = read_log(
        write(
            [
                happened("search", 1, items=["a", "b"]),
                happened("search_click", 2, items=["a", "b"], doc="b"),
                happened("search", 3, items=["b", "a"]),
                happened("search_click", 4, doc="b"),
                happened("pageview", 5),
            ]
        )
    )
    with pytest.warns(Remark):
        counts = harvest(log)
    # b, seen twice in the session, at ranks 12 and 11, is clicked each time.
    assert counts.funnel.used.pairs == 1 and counts.funnel.used.clicks == 2
    assert sorted({rank for *_, rank in rows(log, "doc", "rank") if rank}) == [11, 12]


@pytest.mark.parametrize("letter", ["x", "é"])
def test_meilisearch_a_long_text_where_an_object_should_be(write, letter):
    """Its message is cut by DuckDB, in the middle of a letter if that has two bytes."""
    answer = {
        "metadata": {"queryUid": "s1", "indexUid": "shop"}, "query": "q", "offset": 0, "limit": 2,
        "timestamp": "2024-05-01T06:00:00Z", "hits": [{"id": "a"}, {"id": "b"}],
    }  # fmt: skip
    odd = {**answer, "metadata": letter * 401}
    log = read_log(write([answer, odd]), format="meilisearch")
    assert harvest(log).funnel.rows == 4


def test_meilisearch_positions_from_0_do_not_matter(write):
    response = {
        "metadata": {"queryUid": "q"}, "query": "tea", "offset": 20, "limit": 2,
        "timestamp": "2024-05-01T10:00:00Z", "hits": [{"id": 1}, {"id": 2}],
    }  # fmt: skip
    click = {"eventType": "click", "queryUid": "q", "objectId": "2", "position": 1}
    assert rows(read_log(write([response, click])), "event", "doc", "rank") == [
        ("click", "2", None), ("search", "1", 21), ("search", "2", 22),
    ]  # fmt: skip


# -- Research --------------------------------------------------------------------------------------


def test_yandex_clicks_go_to_the_query_that_showed_the_url_last(tmp_path):
    path = tmp_path / "train"
    path.write_text(
        "1\t0\tQ\t5\t3\t10\t11\n1\t4\tC\t11\n1\t9\tQ\t5\t3\t11\t10\n1\t9\tC\t11\n1\t12\tC\t99\n"
    )
    log = read_log(path)
    assert log.format.name == "yandex"
    with pytest.warns(Remark):
        funnel = harvest(log).funnel
    assert funnel.used.pairs == 1 and funnel.used.clicks == 2
    assert funnel.dropped["stray_click"].clicks == 1 and funnel.rows == 7


def test_clax_sessions_may_have_no_query(tmp_path):
    table = pa.table(
        {"query_doc_ids": [[1, 2], [2, 1], []], "clicks": [[1.0, 0.0], [0.0, 1.0], []]}
    )
    pq.write_table(table, tmp_path / "part-0.parquet")
    log = read_log(tmp_path)
    assert rows(log, "query", "doc", "rank", "click")[:2] == [
        ("1", "1", 1, 1),
        ("1", "1", 2, 1),
    ]
    assert harvest(log).funnel.rows == 5  # the session without docs is told of


def test_baidu_results_belong_to_the_query_before_them(tmp_path):
    def result(place, doc, click):
        return "\t".join([str(place), doc, "t", "a", "5", str(click), *["0"] * 26])

    texts = ["q1\t1\x012\t", result(1, "m1", 0), result(2, "m2", 1),
             "q2\t1\x012\t3", result(1, "m2", 1), result(31, "m1", "")]  # fmt: skip
    path = tmp_path / "part-00001.gz"
    path.write_bytes(gzip.compress("\n".join(texts).encode()))
    log = read_log(path)
    assert log.format.name == "baidu-ultr"
    assert rows(log, "query", "doc", "rank", "click") == [
        ("1\x012", "m1", 1, 0), ("1\x012", "m1", 31, None),
        ("1\x012", "m2", 1, 1), ("1\x012", "m2", 2, 1),
    ]  # fmt: skip
    assert len({search for (search,) in rows(log, "search")}) == 2
    # A file that begins amid results does not go on with the query of the file before.
    (tmp_path / "part-00002.gz").write_bytes(gzip.compress("\n".join(texts[1:]).encode()))
    known = rows(read_log(sorted(tmp_path.iterdir())), "query", "doc")
    assert known.count((None, "m1")) == known.count((None, "m2")) == 1 and len(known) == 8


def test_tiangong_clicks_find_their_result_by_rank(tmp_path):
    def asked(query, docs, clicks):
        results = "".join(
            f'<result rank="{n}">\n<docid>{doc}</docid>\n<url>u</url>\n</result>\n'
            for n, doc in enumerate(docs, start=1)
        )
        told = "".join(f"<click>\n<rank>{n}</rank>\n<docid>d</docid>\n</click>\n" for n in clicks)
        clicked = f"<clicked>\n{told}</clicked>\n" if clicks else ""
        words = f"<query_id>{query}</query_id>\n" if query else ""
        shown = f"{words}<results>\n{results}</results>\n{clicked}"
        return f'<interaction num="1">\n{shown}</interaction>\n'

    path = tmp_path / "session.xml"
    searches = asked("q1", ["d1", "d2"], [2, 2]) + asked("q1", ["d2"], []) + asked("", ["d3"], [7])
    path.write_text(f'<root>\n<session num="5">\n{searches}</session>\n</root>\n')
    log = read_log(path)
    assert log.format.name == "tiangong-st"
    assert rows(log, "event", "query", "doc", "rank", "session") == [
        ("click", "q1", "d2", 2, "5"), ("click", "q1", "d2", 2, "5"), ("click", None, None, 7, "5"),
        ("result", "q1", "d1", 1, "5"), ("result", "q1", "d2", 1, "5"),
        ("result", "q1", "d2", 2, "5"), ("result", None, "d3", 1, "5"),
    ]  # fmt: skip
    funnel = harvest(log).funnel
    assert funnel.clicks == 3 and funnel.dropped["stray_click"].clicks == 1
    assert funnel.dropped["no_query"].rows == 1


def test_what_a_harvest_left_out_can_be_asked_for_later(tmp_path):
    path = tmp_path / "sessions.txt"
    path.write_text("1\t0\tQ\t7\t3\t11\t12\n1\t5\tC\t12\n")
    log = read_log(path)
    harvest(log)
    assert "region" not in log.engine.connection.sql("SELECT * FROM rd_log").columns
    assert rows(log, "doc", "region") == [(11, "3"), (12, "3"), (12, None)]


def test_mind_is_shuffled_and_that_is_said(tmp_path):
    path = tmp_path / "behaviors.tsv"
    path.write_text("1\tU1\t11/5/2019 9:05:58 AM\tN1 N2\tN7-0 N8-1\n")
    log = read_log(path)
    assert any("shuffled" in remark for remark in log.remarks)
    assert [(doc, rank, click, str(day)) for doc, rank, click, day in
            rows(log, "doc", "rank", "click", "day")] == [
        ("N7", 1, 0, "2019-11-05"), ("N8", 2, 1, "2019-11-05"),
    ]  # fmt: skip


# -- what is said ----------------------------------------------------------------------------------


def test_a_format_that_does_not_fit_says_what_is_missing(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadLog, match=r"does not look like User Behavior Insights.*no action_name"):
        read_log(tmp_path / "a.parquet", format="ubi")
    with pytest.raises(BadOption, match="Did you mean 'ubi'"):
        read_log(tmp_path / "a.parquet", format="ubo")


def test_clicks_alone_are_refused_with_what_is_missing(write):
    click = {"eventType": "click", "queryID": "q", "objectIDs": ["a"], "timestamp": 1714557600000}
    with pytest.raises(BadLog) as error:
        harvest(read_log(write([click])))
    assert "'click' (1)" in str(error.value) and "search responses" in str(error.value)
    assert "--shown-events" not in str(error.value)


def test_columns_of_one_s_own_are_read_one_s_own_way(write):
    """Who names fields of the log, or a layout, knows better."""
    path = write([event("impression", "s", "a", 1, user_query="tea"), event("click", "s", "a", 1)])
    assert read_log(path).format.name == "ubi"
    assert read_log(path, layout="events").format is None
    assert read_log(path, query="user_query").format is None
    assert read_log(path, segment="application").format.name == "ubi"


def test_plain_logs_are_not_taken_for_a_format(write):
    path = write([{"query": "q", "doc": "d", "rank": 1, "click": 0, "session_id": 1}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_log(path).format is None


def test_an_array_of_documents_is_read_as_lines_are(tmp_path):
    path = tmp_path / "events.json"
    path.write_text(json.dumps([event("impression", "s", "a", 1), query("s", "tea")], indent=1))
    assert rows(read_log(path), "query", "doc", "rank") == [("tea", "a", 1)]
