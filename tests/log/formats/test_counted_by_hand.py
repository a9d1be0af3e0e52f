"""Logs with everything awkward at once, counted as they are and from rows made in plain Python."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from rankdrift import harvest, read_log

pytestmark = pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
BEGIN = datetime(2024, 5, 1, 20, tzinfo=UTC)
SESSIONS = 400


def same_counts(log, rows, strays):
    """Whether a log counts like these results shown, beside clicks that belong to none."""
    names = ("search", "query", "doc", "rank", "click", "day", "time", "user")
    table = pa.table({name: [row[name] for row in rows] for name in names})
    counts, wanted = harvest(log), harvest(read_log(table, time="time"))
    assert wanted.n_pairs > 20
    for name, expected in wanted.tables.items():
        assert counts.tables[name].equals(expected), name
    found = counts.funnel.dropped
    for reason, lost in wanted.funnel.dropped.items():
        if lost.rows:
            assert found[reason].rows == lost.rows, reason
    assert found["stray_click"].clicks == strays > 0
    assert counts.funnel.used == wanted.funnel.used
    return {reason for reason, lost in wanted.funnel.dropped.items() if lost.rows}


def give_clicks(shown, clicks, key):
    """Every click to the result shown with its key that has the least rank; how many have none."""
    by_key = defaultdict(list)
    for row in shown:
        by_key[key(row)].append(row)
    strays = 0
    for wanted in clicks:
        found = by_key.get(wanted)
        if found:
            first = min(found, key=lambda row: (row["rank"] is None, row["rank"] or 0))
            first["click"] += 1
        else:
            strays += 1
    return strays


def ga4_log(draw):
    """Events of GA4: several lists in a session, items twice in a list, events sent twice, clicks
    before what they click, and days of a property that is four hours ahead of UTC."""
    events = []

    def event(name, at, who, words, items):
        user, session = who
        params = [{"key": "engagement_time_msec", "value": {"int_value": 3}}]
        params += [{"key": "ga_session_id", "value": {"int_value": session}}] if session else []
        params += words
        events.append(
            {
                "event_date": (at + timedelta(hours=4)).strftime("%Y%m%d"),
                "event_timestamp": round(at.timestamp() * 1e6),
                "event_name": name,
                "event_params": params,
                "user_pseudo_id": user,
                "items": items,
            }
        )

    for session in range(SESSIONS):
        at = BEGIN + timedelta(minutes=draw.randrange(3 * 24 * 60), seconds=session / 100)
        who = (draw.choice([None, "u1", "u2", f"u{session}"]), draw.choice([None, session + 1]))
        for _ in range(draw.randrange(1, 4)):
            n = draw.randrange(6)
            words = draw.choice(
                [
                    [{"key": "search_term", "value": {"string_value": f"tea {n}"}}],
                    [{"key": "search_term", "value": {"int_value": n}}],
                    [{"key": "search_term", "value": {"string_value": "(not set)"}}],
                    [{"key": "page_location", "value": {"string_value": f"/s?p=1&q=tea+{n}#top"}}],
                    [],
                ]
            )
            name = draw.choice(["Results", "Related", None, "(not set)"])
            docs = [f"d{(n + place) % 9}" for place in range(8)]
            draw.shuffle(docs)
            docs += docs[:1] if draw.random() < 0.1 else []
            items = [
                {
                    "item_id": draw.choice([doc] * 9 + [None, "(not set)"]),
                    "item_name": draw.choice([f"Name {doc}", None]),
                    "item_list_name": name,
                    "item_list_id": draw.choice(["list", None]),
                    "item_list_index": draw.choice([str(place)] * 9 + [None, "(not set)"]),
                }
                for place, doc in enumerate(docs)
            ]
            event("view_item_list", at, who, words, items)
            if draw.random() < 0.1:
                events.append(events[-1])
            for item in draw.sample(items, draw.randrange(3)):
                later = timedelta(seconds=draw.choice([-5, 0, 5, 50, 9 * 3600]))
                event("select_item", at + later, who, [], [item])
                if draw.random() < 0.1:
                    events.append(events[-1])
            at += timedelta(seconds=draw.choice([20, 60]))
        event("page_view", at, who, [], [])
    draw.shuffle(events)
    return events


def ga4_rows(events):
    def known(*values):
        return next((v for v in values if v not in (None, "", "(not set)")), None)

    shown, clicks = [], []
    for event in events:
        params = {p["key"]: p["value"] for p in event["event_params"]}

        def param(name, params=params):
            value = params.get(name, {})
            number = value.get("int_value")
            return value.get("string_value") or (None if number is None else str(number))

        page = param("page_location")
        from_page = page.split("q=")[1].split("#")[0].replace("+", " ") if page else None
        who = (event["user_pseudo_id"], param("ga_session_id"), event["event_date"])
        who = who if any(who[:2]) else None
        for item in event["items"]:
            named = known(item["item_list_name"], item["item_list_id"])
            index = known(item["item_list_index"])
            row = {
                "search": repr((who, named, event["event_timestamp"])),
                "query": known(param("search_term")) or from_page,
                "doc": known(item["item_id"], item["item_name"]),
                "rank": None if index is None else int(index) + 1,
                "click": 0,
                "day": datetime.strptime(event["event_date"], "%Y%m%d").date(),
                "time": datetime.fromtimestamp(event["event_timestamp"] / 1e6, UTC),
                "user": event["user_pseudo_id"],
                "visit": who and (who, named),
                "at": event["event_timestamp"],
            }
            {"view_item_list": shown, "select_item": clicks}[event["event_name"]].append(row)
    seen = defaultdict(list)
    for row in shown:
        seen[row["visit"], row["doc"]].append(row["at"])
    keys = []
    for click in clicks:
        where = click["visit"], click["doc"]
        before = [at for at in seen.get(where, ()) if at <= click["at"]]
        known_one = None not in where and before
        keys.append((*where, max(before)) if known_one else None)
    strays = give_clicks(shown, keys, lambda row: (row["visit"], row["doc"], row["at"]))
    return shown, strays


def test_ga4_as_plain_python_counts_it(tmp_path):
    events = ga4_log(Random(5))
    rows, strays = ga4_rows(events)
    days = sorted({event["event_date"] for event in events})
    for day in days:  # the last is still going on
        table = f"events_{'intraday_' if day == days[-1] else ''}{day}.jsonl"
        lines = (json.dumps(event) for event in events if event["event_date"] == day)
        (tmp_path / table).write_text("\n".join(lines))
    left_out = same_counts(read_log(tmp_path), rows, strays)
    assert len(left_out) > 3


def ubi_log(draw):
    """UBI's documents: impressions called this and that or missing, ordinals missing, docs twice in
    a list, documents sent twice, clicks on what was not shown, old and new names of fields."""
    documents = []
    for number in range(SESSIONS):
        at = BEGIN + timedelta(minutes=draw.randrange(3 * 24 * 60))
        n, kind = draw.randrange(6), draw.choice(["impressions", "views", "neither"])
        docs = [f"d{(n + place) % 9}" for place in range(8)]
        draw.shuffle(docs)
        common = {"query_id": f"s{number}", "application": "shop"}
        asked = {"client_id": draw.choice(["c1", f"c{number}"]), "timestamp": at.isoformat()}
        asked |= {"user_query": f" tea {n} "} if draw.random() < 0.9 else {}
        if draw.random() < 0.9:
            hits = draw.choice(["query_response_hit_ids", "query_response_object_ids", "other"])
            documents.append(common | asked | {hits: docs})
        where = {
            "impressions": ["impression", "Item Impression", "productImpression"],
            "views": ["view", "item-view"],
            "neither": ["hover"],
        }[kind]
        events = []
        for place, doc in enumerate(docs):
            attributes = {
                "object": draw.choice([{"object_id": doc}] * 9 + [{"internal_id": doc}, {}]),
                "position": {"ordinal": place if draw.random() < 0.9 else None},
            }
            event = common | {
                "action_name": draw.choice(where),
                "timestamp": (at + timedelta(seconds=1)).isoformat(),
                "event_attributes": attributes,
            }
            events.append(event)
            if draw.random() < 0.2:
                click = event | {
                    "action_name": draw.choice(["click", "item_click", "Product Click"]),
                    "timestamp": (at + timedelta(seconds=draw.choice([-9, 9]))).isoformat(),
                }
                if draw.random() < 0.1:
                    nowhere = {"object": {"object_id": "elsewhere"}}
                    click = click | {"event_attributes": nowhere}
                events += [click] * draw.choice([1, 1, 1, 2])
        if draw.random() < 0.2:
            events.append(events[0])
        documents += events
    draw.shuffle(documents)
    return documents


def ubi_rows(documents):
    searches = defaultdict(
        lambda: {"words": [], "at": [], "clients": [], "hits": [], "shown": set()}
    )

    def doc_of(event):
        found = event["event_attributes"].get("object", {})
        return found.get("object_id") or found.get("internal_id")

    def ordinal_of(event):
        return event["event_attributes"].get("position", {}).get("ordinal")

    def plain_name(event):
        name = event["action_name"].lower().replace("-", "_").replace(" ", "_")
        names = {
            "impression": "impression", "item_impression": "impression",
            "productimpression": "impression", "view": "view", "item_view": "view",
        }  # fmt: skip
        return "click" if "click" in name else names.get(name, name)

    for each in documents:
        search = searches[each["query_id"]]
        search["words"] += [each["user_query"]] if "user_query" in each else []
        search["at"].append(datetime.fromisoformat(each["timestamp"]))
        search["clients"] += [each["client_id"]] if "client_id" in each else []
        if "action_name" not in each:
            hits = each.get("query_response_hit_ids") or each.get("query_response_object_ids")
            search["hits"] = hits or []
        else:
            name = plain_name(each)
            if name != "view" or ordinal_of(each) is not None:
                search["shown"].add(name)
    shown, clicks = [], []
    for name, search in searches.items():
        search["row"] = {
            "search": name,
            "query": max(search["words"], default="").strip() or None,
            "click": 0,
            "user": max(search["clients"], default=None),
        }
        if not search["shown"] & {"impression", "view"}:
            at = min(search["at"])
            shown += [
                search["row"] | {"doc": doc, "rank": place, "day": at.date(), "time": at}
                for place, doc in enumerate(search["hits"], 1)
            ]
    for each in documents:
        if "action_name" not in each:
            continue
        search, name = searches[each["query_id"]], plain_name(each)
        doc, ordinal = doc_of(each), ordinal_of(each)
        if name == "click":
            clicks.append((each["query_id"], doc) if doc else None)
        stands_in = name == "view" and ordinal is not None and "impression" not in search["shown"]
        if name == "impression" or stands_in:
            place = search["hits"].index(doc) + 1 if doc in search["hits"] else None
            at = datetime.fromisoformat(each["timestamp"])
            rank = place if ordinal is None else ordinal + 1
            shown.append(search["row"] | {"doc": doc, "rank": rank, "day": at.date(), "time": at})
    strays = give_clicks(shown, clicks, lambda row: (row["search"], row["doc"]))
    return shown, strays


def test_ubi_as_plain_python_counts_it(tmp_path):
    documents = ubi_log(Random(6))
    rows, strays = ubi_rows(documents)
    half = len(documents) // 2
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, documents[:half])))
    (tmp_path / "b.jsonl").write_text(
        "\n".join(
            f'{{"index": {{"_index": "u"}}}}\n{json.dumps(each)}' for each in documents[half:]
        )
    )
    left_out = same_counts(read_log(tmp_path), rows, strays)
    assert len(left_out) > 1


# -- TianGong-ST -----------------------------------------------------------------------------------


def tiangong_lines(draw):
    """Sessions with what may be odd: a query that is none, a result without a doc or shown twice,
    clicks at ranks that show nothing, tags in titles, blanks before tags, either quotes."""
    yield "<root>"
    for session in range(300):
        quote, blanks = draw.choice("\"'"), " " * draw.randrange(3)
        yield f"{blanks}<session num={quote}{session}{quote}>"
        for number in range(draw.randrange(1, 4)):
            yield f"{blanks}<interaction num={quote}{number}{quote}>"
            yield "<query>the rank, clicked</query>"
            if draw.random() < 0.9:
                yield f"{blanks}<query_id>q{draw.randrange(5)}</query_id>"
            yield "<results>"
            docs = draw.sample(range(12), 8)
            for rank, doc in enumerate(docs + docs[:1] * (draw.random() < 0.1), 1):
                yield f"{blanks}<result rank={quote}{rank}{quote}>"
                if draw.random() < 0.95:
                    yield f"{blanks}<docid>d{doc}</docid>"
                yield "<title>docid> rank> num=</title>"
                yield "<relevance>"
                yield "<PSCM>0.5</PSCM>"
                yield "</relevance>"
                yield "</result>"
            yield "</results>"
            if draw.random() < 0.7:
                yield f"{blanks}<clicked>"
                for _ in range(draw.randrange(4)):
                    yield "<click>"
                    yield f"{blanks}<rank>{draw.randrange(1, 11)}</rank>"
                    yield "</click>"
                yield "</clicked>"
            yield "</interaction>"
        yield "</session>"
    yield "</root>"


def tiangong_rows(text):
    """What a reader of XML makes of them, as that of its authors does."""
    shown, clicks = [], []
    for at, interaction in enumerate(ElementTree.fromstring(text).iter("interaction")):
        docs = {}
        for result in interaction.iter("result"):
            doc, rank = result.findtext("docid"), int(result.get("rank"))
            if doc:
                query = interaction.findtext("query_id")
                row = {"search": at, "query": query, "doc": doc, "rank": rank, "click": 0}
                shown.append(row)
                docs[rank] = doc
        found = interaction.find("clicked")
        ranks = [int(click.findtext("rank")) for click in found] if found is not None else []
        clicks += [(at, docs.get(rank)) for rank in ranks]
    return shown, give_clicks(shown, clicks, lambda row: (row["search"], row["doc"]))


def test_tiangong_as_a_reader_of_xml_counts_it(tmp_path):
    text = "\n".join(tiangong_lines(Random(7)))
    (tmp_path / "session.xml").write_text(text)
    rows, strays = tiangong_rows(text)
    names = ("search", "query", "doc", "rank", "click")
    table = pa.table({name: [row[name] for row in rows] for name in names})
    counts, wanted = harvest(read_log(tmp_path / "session.xml")), harvest(read_log(table, day=""))
    assert wanted.n_pairs > 40
    for name, expected in wanted.tables.items():
        assert counts.tables[name].equals(expected), name
    assert counts.funnel.dropped["stray_click"].clicks == strays > 0
    for reason in ("no_query", "doc_twice"):
        assert counts.funnel.dropped[reason].rows == wanted.funnel.dropped[reason].rows > 0
