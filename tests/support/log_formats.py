"""One small log, plain, and the same log as each known format has it: all must count alike.

`plain_log` makes up the log, `WRITERS` has a function a format that writes it to a folder. All is
SQL, so that the same writers make logs of any size (`benchmarks/formats.py`).
"""

from pathlib import Path

import duckdb

RANKS = 12


def plain_log(searches=600, queries=15, days=3, seed=7, docs="r"):
    """A connection with the table `plain`: a row per result shown. `clicks` of them may be 2.
    `docs` is SQL of a doc's number: the same few for all queries (`r`), or also by the query (`q`).
    """
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    con.execute(
        f"""
        CREATE TABLE shown AS
        SELECT s, 'words ' || q AS query, r AS item, {docs} AS number,
            TIMESTAMP '2024-05-01 06:00:00' + INTERVAL (s % {days}) DAY
                + INTERVAL (1 + s // {days} * 40 % 50000) SECOND AS seen,
            's' || s AS search, 'u' || (s % 97) AS person
        FROM (SELECT range AS s, hash(range, {seed}) % {queries} AS q FROM range({searches})),
            range({RANKS} + 4) AS b(r)
        """
    )
    con.execute(
        f"""
        CREATE TABLE plain AS
        SELECT search, query, doc, rank, seen, person, price,
            CASE WHEN luck < 0.6 / rank THEN CASE WHEN luck < 0.05 THEN 2 ELSE 1 END ELSE 0 END
                AS clicks
        FROM (
            SELECT s, search, query, seen, person, 'd' || number AS doc, 1.5 + item % 3 AS price,
                row_number() OVER (PARTITION BY s ORDER BY
                    item + 6 * (hash(s, item, {seed}) % 1000) / 1000, item) AS rank,
                (hash(item, s, {seed + 1}) % 10000) / 10000 AS luck
            FROM shown
        ) WHERE rank <= {RANKS}
        """
    )
    # Each click by itself, some seconds after the list was shown.
    con.execute(
        "CREATE TABLE clicked AS SELECT *, seen + INTERVAL (3 * rank + n) SECOND AS clicked_at"
        " FROM plain, range(2) AS times(n) WHERE n < clicks"
    )
    con.execute(
        "CREATE TABLE lists AS SELECT search, query, seen, person, list(doc ORDER BY rank) AS docs,"
        " list(clicks ORDER BY rank) AS clicks FROM plain GROUP BY ALL"
    )
    return con


def write(con, select, path, compressed=False):
    """A SELECT of one text, as lines of a file."""
    more = ", COMPRESSION gzip" if compressed else ""
    con.execute(
        f"COPY ({select}) TO '{path}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '',"
        f" DELIMITER '\x1f'{more})"
    )
    return Path(path)


def documents(select):
    """Rows as JSON documents without the fields that are NULL."""
    return f"SELECT json_merge_patch(to_json(t), '{{}}')::VARCHAR AS line FROM ({select}) AS t"


def ubi_events(first=0, shown="impression", clicked="click", ordinals=True):
    ordinal = f"rank - 1 + {first}" if ordinals else "NULL"
    fields = (
        "'shop' AS application, {} AS action_name, search AS query_id, person AS client_id,"
        " strftime({}, '%Y-%m-%dT%H:%M:%S.000Z') AS timestamp,"
        " {{'object': {{'object_id': doc}}, 'position': {{'ordinal': " + ordinal + "}}}}"
        " AS event_attributes"
    )
    impressions = f"SELECT {fields.format(repr(shown), 'seen')} FROM plain"
    clicks = f"SELECT {fields.format(repr(clicked), 'clicked_at')} FROM clicked"
    return f"{impressions} UNION ALL {clicks}" if shown else clicks


def ubi_queries(hits=False):
    listed = "docs" if hits else "NULL::VARCHAR[]"
    return (
        "SELECT 'shop' AS application, search AS query_id, person AS client_id,"
        " query AS user_query, strftime(seen, '%Y-%m-%dT%H:%M:%S.000Z') AS timestamp,"
        f" {listed} AS query_response_hit_ids FROM lists"
    )


def ubi(con, folder):
    """One bulk file: a header before every document, ordinals from 0."""
    both = f"{documents(ubi_queries())} UNION ALL {documents(ubi_events())}"
    header = """'{"index": {"_index": "ubi", "_id": "' || md5(line) || '"}}'"""
    bulk = f"SELECT unnest([{header}, line]) FROM ({both})"
    return [write(con, bulk, folder / "ubi.ndjson.gz", compressed=True)]


def ubi_two_files(con, folder):
    events = documents(ubi_events(1, "Impression", "item-click"))
    return [
        write(con, documents(ubi_queries()), folder / "ubi_queries.jsonl"),
        write(con, events, folder / "ubi_events.jsonl"),
    ]


def ubi_lists(con, folder):
    """No impressions: queries have the hits."""
    queries, clicks = documents(ubi_queries(hits=True)), documents(ubi_events(shown=None))
    return [write(con, f"{queries} UNION ALL {clicks}", folder / "ubi.json")]


def ubi_dump(con, folder):
    """A dump of the indices, and impressions called views."""
    both = f"{documents(ubi_queries())} UNION ALL {documents(ubi_events(1, 'view'))}"
    dump = f"""SELECT '{{"_index": "ubi", "_source": ' || line || '}}' FROM ({both})"""
    return [write(con, dump, folder / "dump.json")]


def ubi_parquet(con, folder):
    queries, events = folder / "ubi_queries.parquet", folder / "ubi_events.parquet"
    con.execute(f"COPY ({ubi_queries(hits=True)}) TO '{queries}'")
    con.execute(f"COPY ({ubi_events(0, ordinals=False)}) TO '{events}'")
    return [queries, events]


def ga4_events(first=0):
    """Lists, in two batches as a page that is scrolled sends them; clicks; and page views."""
    params = (
        "[{{'key': 'ga_session_id', 'value': {{'string_value': NULL::VARCHAR,"
        " 'int_value': hash(search) % 1000000}}}},"
        " {{'key': 'search_term', 'value': {{'string_value': {}, 'int_value': NULL}}}}]"
    )
    item = (
        "{'item_id': doc, 'item_name': 'Item ' || doc, 'item_brand': '(not set)',"
        " 'item_category': NULL::VARCHAR, 'price': price,"
        " 'item_list_id': 'search', 'item_list_name': 'Search results',"
        f" 'item_list_index': CAST(rank - 1 + {first} AS VARCHAR)" + "}"
    )
    event = (
        "strftime(seen, '%Y%m%d') AS event_date, epoch_us({}) AS event_timestamp,"
        " '{}' AS event_name, {} AS event_params, person AS user_pseudo_id,"
        " NULL::VARCHAR AS user_id, 'WEB' AS platform, {{'category': 'desktop'}} AS device,"
        " {{'country': 'Spain'}} AS geo, {} AS items"
    )
    words, none = params.format("query"), params.format("NULL::VARCHAR")
    views = event.format("seen", "view_item_list", words, f"list({item} ORDER BY rank)")
    clicks = event.format("clicked_at", "select_item", none, f"[{item}]")
    pages = event.format("seen", "page_view", none, f"list_filter([{item}], lambda v: FALSE)")
    group = "GROUP BY seen, query, person, search, rank > 8"
    return (
        f"SELECT {views} FROM plain {group} UNION ALL SELECT {clicks} FROM clicked UNION ALL"
        f" SELECT {pages} FROM plain WHERE rank = 1"
    )


def ga4(con, folder):
    """Parquet, a file a day."""
    events = ga4_events()
    days = [day for (day,) in con.execute(f"SELECT DISTINCT event_date FROM ({events})").fetchall()]
    paths = [folder / f"events_{day}.parquet" for day in sorted(days)]
    for path in paths:
        day = path.stem.removeprefix("events_")
        con.execute(f"COPY (SELECT * FROM ({events}) WHERE event_date = '{day}') TO '{path}'")
    return paths


def ga4_json(con, folder):
    return [write(con, documents(ga4_events(1)), folder / "events.json.gz", compressed=True)]


def metarank(con, folder):
    common = "CAST(epoch_ms({}) AS VARCHAR) AS timestamp, person AS user, search AS session"
    rankings = (
        f"SELECT 'ranking' AS event, search AS id, {common.format('seen')},"
        " [{'name': 'query', 'value': query}] AS fields,"
        " list_transform(docs, lambda d: {'id': d, 'relevancy': 0.5}) AS items FROM lists"
    )
    clicks = (
        "SELECT 'interaction' AS event, md5(search || doc) AS id, search AS ranking,"
        f" {common.format('clicked_at')}, 'click' AS type, doc AS item FROM clicked"
    )
    both = f"{documents(rankings)} UNION ALL {documents(clicks)}"
    return [write(con, both, folder / "events.jsonl")]


def snowplow(con, folder):
    action = "unstruct_event_com_snowplowanalytics_snowplow_ecommerce_snowplow_ecommerce_action_1"
    product = "contexts_com_snowplowanalytics_snowplow_ecommerce_product_1"
    event = (
        "strftime({}, '%Y-%m-%d %H:%M:%S.000') AS collector_tstamp, person AS domain_userid,"
        " search AS domain_sessionid, 'q=' || replace(query, ' ', '+') || '&page=1'"
        f" AS page_urlquery, {{{{'type': '{{}}', 'name': 'search'}}}} AS {action},"
        f" {{}} AS {product}"
    )
    item = "{'id': doc, 'price': price, 'currency': 'EUR', 'position': rank}"
    views = event.format("seen", "list_view", f"list({item} ORDER BY rank)")
    clicks = event.format("clicked_at", "list_click", f"[{item}]")
    both = (
        f"SELECT {views} FROM plain GROUP BY seen, person, search, query"
        f" UNION ALL SELECT {clicks} FROM clicked"
    )
    return [write(con, documents(both), folder / "enriched.jsonl")]


def algolia(con, folder):
    """Responses of two pages, and clicks."""
    responses = (
        "SELECT search AS queryID, query, epoch_ms(seen) AS timestamp, person AS userToken,"
        " p AS page, 8 AS hitsPerPage,"
        " list_transform(docs[8 * p + 1:8 * p + 8], lambda d: {'objectID': d}) AS hits"
        " FROM lists, range(2) AS pages(p)"
    )
    clicks = (
        "SELECT 'click' AS eventType, 'Product Clicked' AS eventName, 'shop' AS index,"
        " search AS queryID, [doc] AS objectIDs, [rank] AS positions, person AS userToken,"
        " epoch_ms(clicked_at) AS timestamp FROM clicked"
    )
    return [
        write(con, documents(responses), folder / "responses.jsonl"),
        write(con, documents(clicks), folder / "events.jsonl"),
    ]


def meilisearch(con, folder):
    responses = (
        "SELECT {'queryUid': search, 'indexUid': 'shop'} AS metadata, query,"
        " strftime(seen, '%Y-%m-%dT%H:%M:%SZ') AS timestamp, 8 * p AS offset, 8 AS limit,"
        " list_transform(docs[8 * p + 1:8 * p + 8], lambda d: {'id': d}) AS hits"
        " FROM lists, range(2) AS pages(p)"
    )
    clicks = (
        "SELECT 'click' AS eventType, 'Clicked' AS eventName, 'shop' AS indexUid,"
        " search AS queryUid, doc AS objectId, rank - 1 AS position, person AS userId,"
        " strftime(clicked_at, '%Y-%m-%dT%H:%M:%SZ') AS timestamp FROM clicked"
    )
    both = f"{documents(responses)} UNION ALL {documents(clicks)}"
    return [write(con, both, folder / "meili.jsonl")]


def elastic(con, folder):
    event = (
        "strftime({}, '%Y-%m-%dT%H:%M:%S.000Z') AS \"@timestamp\", {{'action': '{}'}} AS event,"
        " {{'id': search}} AS session, {{'id': person}} AS user, {} AS search"
    )
    items = "list_transform(docs, lambda d: {'document': {'id': d, 'index': 'shop'}})"
    results = "{'query': query, 'results': {'items': " + items + ", 'total_results': 99}}"
    searches = f"SELECT {event.format('seen', 'search', results)} FROM lists"
    clicks = (
        f"SELECT {event.format('clicked_at', 'search_click', '{0}')},"
        " {'id': doc, 'index': 'shop'} AS document FROM clicked"
    ).replace("{0}", "{'query': query}")
    both = f"{documents(searches)} UNION ALL {documents(clicks)}"
    return [write(con, both, folder / "behavior.ndjson")]


def yandex(con, folder):
    numbers = "substr({}, 2)"
    asked = (
        "SELECT substr(search, 2) || chr(9) || '0' || chr(9) || 'Q' || chr(9)"
        " || replace(query, 'words ', '') || chr(9) || '7' || chr(9)"
        " || array_to_string(list_transform(docs, lambda d: substr(d, 2)), chr(9)) AS line"
        " FROM lists"
    )
    clicks = (
        f"SELECT {numbers.format('search')} || chr(9) || (3 * rank + n) || chr(9) || 'C' || chr(9)"
        f" || {numbers.format('doc')} AS line FROM clicked"
    )
    return [write(con, f"{asked} UNION ALL {clicks}", folder / "sessions.txt")]


def clax(con, folder):
    path = folder / "part-0.parquet"
    con.execute(
        "COPY (SELECT CAST(replace(query, 'words ', '') AS INTEGER) AS query_id,"
        " list_transform(docs, lambda d: CAST(substr(d, 2) AS INTEGER)) AS query_doc_ids,"
        f" list_transform(clicks, lambda c: CAST(c AS FLOAT)) AS clicks FROM lists) TO '{path}'"
    )
    return [path]


def baidu(con, folder):
    """A line per query, then its results in order."""
    query = "s || chr(9) || query || chr(9) || '12' || chr(1) || '13'"
    result = (
        "rank || chr(9) || md5(doc) || chr(9) || '1' || chr(1) || '2' || chr(9) || '3' || chr(9)"
        " || '5' || chr(9) || clicks || repeat(chr(9) || '0', 26)"
    )
    lines = (
        f"SELECT search, 0 AS n, {query.replace('s ||', 'search ||', 1)} AS line FROM lists"
        f" UNION ALL SELECT search, rank AS n, {result} AS line FROM plain"
    )
    ordered = f"SELECT line FROM ({lines}) ORDER BY search, n"
    return [write(con, ordered, folder / "part-00000.gz", compressed=True)]


def tiangong(con, folder):
    """An element a line, those that their authors' cleaner counts: 14 a result, of which it drops
    the URL, the title and six relevances; a session has one interaction."""
    tag, words = "'<{0}>' || {1} || '</{0}>'", "replace(query, 'words ', 'q')"
    judged = ", ".join(
        f"'<{model}>' || hash(docs[i]) % 10000 / 10000 || '</{model}>'"
        for model in ("TACM", "PSCM", "THCM", "UBM", "DBN", "POM")
    )
    result = (
        "['<result rank=\"' || i || '\">', '<docid>' || docs[i] || '</docid>',"
        " '<url>http://' || docs[i] || '.example/</url>', '<title>Of ' || query || '</title>',"
        f" '<vtype>22</vtype>', '<relevance>', {judged}, '</relevance>', '</result>']"
    )
    click = "['<click>', '<rank>' || i || '</rank>', '</click>']"
    places = "range(1, len(docs) + 1)"
    found = f"flatten(list_transform({places}, lambda i: {result}))"
    times = f"flatten(list_transform(range(clicks[i]), lambda n: {click}))"
    clicks = f"flatten(list_transform({places}, lambda i: {times}))"
    lines = (
        "flatten([['<session num=\"' || substr(search, 2) || '\">', '<interaction num=\"1\">',"
        f" {tag.format('query', 'query')},"
        f" {tag.format('query_id', words)}, '<results>'], {found},"
        " ['</results>'], CASE WHEN list_sum(clicks) > 0 THEN"
        f" flatten([['<clicked>'], {clicks}, ['</clicked>']]) ELSE [] END,"
        " ['</interaction>', '</session>']])"
    )
    return [write(con, f"SELECT unnest({lines}) FROM lists", folder / "session.xml")]


def mind(con, folder):
    shown = (
        "list_transform(range(1, len(docs) + 1), lambda i: docs[i] || '-' || least(clicks[i], 1))"
    )
    line = (
        "substr(search, 2) || chr(9) || person || chr(9)"
        " || strftime(seen, '%-m/%-d/%Y %-I:%M:%S %p') || chr(9) || 'N1 N2' || chr(9)"
        f" || array_to_string({shown}, ' ')"
    )
    return [write(con, f"SELECT {line} FROM lists", folder / "behaviors.tsv")]


def open_bandit(con, folder):
    path = folder / "men.csv"
    con.execute(
        "COPY (SELECT row_number() OVER () AS index, strftime(seen, '%Y-%m-%d %H:%M:%S+00:00')"
        " AS timestamp, substr(doc, 2) AS item_id, rank AS position, clicks AS click,"
        f" 0.03 AS propensity_score FROM plain) TO '{path}'"
    )
    return [path]


WRITERS = {
    "ubi": (ubi, ubi_two_files, ubi_lists, ubi_dump, ubi_parquet),
    "ga4": (ga4, ga4_json),
    "metarank": (metarank,),
    "snowplow": (snowplow,),
    "algolia": (algolia,),
    "elastic": (elastic,),
    "meilisearch": (meilisearch,),
    "yandex": (yandex,),
    "clax": (clax,),
    "baidu-ultr": (baidu,),
    "tiangong-st": (tiangong,),
    "mind": (mind,),
    "open-bandit": (open_bandit,),
}
"""Format -> what writes it, in its several ways."""
