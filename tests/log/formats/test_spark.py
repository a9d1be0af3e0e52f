"""Spark has the rows that DuckDB has, in every format, from the same text."""

import json
import os

import pytest
from support.log_formats import WRITERS, plain_log

from rankdrift import harvest, read_log
from rankdrift.core.errors import BadLog

spark_session = pytest.importorskip("support.spark_session", reason="needs the extra `spark`")
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]
CASES = [(name, writer) for name, writers in WRITERS.items() for writer in writers]
ALL_CASES = bool(os.environ.get("RANKDRIFT_ALL_CASES"))
if not ALL_CASES:  # those whose SQL has something that others lack
    CASES = [(name, WRITERS[name][0]) for name in ("ubi", "ga4", "algolia", "yandex", "baidu-ultr")]


@pytest.fixture(scope="module")
def plain():
    with plain_log(searches=9, queries=2) as con:
        yield con


def rows(log):
    """All rows, searches and visits by their first doc: hashes, and how an instant is written,
    differ between engines."""
    d, source = log.engine.dialect, log.engine.source
    told = [name for name in ("search", "visit") if name in log.format.columns]
    names = [name for name in log.format.columns if name not in (*told, "timestamp")]
    columns = [d.text.format(d.quote(name)) for name in names]
    if "timestamp" in log.format.columns:
        columns.append(d.seconds.format("timestamp"))
    columns += [f"min(doc) OVER (PARTITION BY {name})" for name in told]
    return sorted(log.engine.query(f"SELECT {', '.join(columns)} FROM {source}"), key=str)


def test_rows_are_those_of_duckdb(plain, tmp_path):
    session = spark_session.session()
    for name, writer in CASES:
        folder = tmp_path / writer.__name__
        folder.mkdir()
        paths = [str(path) for path in writer(plain, folder)]
        log = read_log(paths, session=session)
        assert log.format.name == name
        found, wanted = rows(log), rows(read_log(paths))
        assert len(found) >= 9 * 12 and [*map(_plain, found)] == [*map(_plain, wanted)], writer
        if ALL_CASES and name == "ga4":  # whose clicks are joined by visit and time
            counts, expected = harvest(log), harvest(read_log(paths))
            assert expected.n_pairs and counts.tables.keys() == expected.tables.keys()
            assert all(counts.tables[t].equals(rows) for t, rows in expected.tables.items())
            assert counts.funnel.dropped == expected.funnel.dropped


def _plain(row):
    """Engines write 2.0 and 2 alike."""
    return tuple(text.removesuffix(".0") if isinstance(text, str) else text for text in row)


def test_other_spellings_are_read_alike(tmp_path):
    session = spark_session.session()
    said = {"query_id": "s", "timestamp": "2024-05-01T10:00:00Z"}
    asked, shown = {"user_query": "tea", "client_id": "c"}, {"action_name": "Item Impression"}
    where = {"object": {"object_id": "d"}, "position": {"ordinal": 3}}
    dots = {"event_attributes.object.object_id": "d", "event_attributes.position.ordinal": 3}
    events = [where, json.dumps(where)]
    ways = [
        [said | asked, said | shown | dots],
        *([said | asked, said | shown | {"event_attributes": event}] for event in events),
    ]
    ways += [[{"hits": {"hits": [{"_source": document} for document in ways[1]]}}]]
    ways += [[ways[1][0], {"events": ways[1][1:]}]]
    logs = [{"log.jsonl": "\n".join(map(json.dumps, documents))} for documents in ways]
    # Lines beside a document that is over several lines, and beside an array.
    sent = {"events": ways[1][1:]}
    logs += [{"a.json": json.dumps(ways[1][0]), "b.json": json.dumps(sent, indent=1)}]
    logs += [{"a.json": json.dumps(ways[1][0]), "b.json": json.dumps(ways[1][1:], indent=1)}]
    for n, files in enumerate(logs):
        folder = tmp_path / str(n)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        for log in (read_log(folder), read_log(folder, session=session)):
            select = f"SELECT event, query, doc, rank FROM {log.engine.source}"
            assert [*map(tuple, log.engine.query(select))] == [("item_impression", "tea", "d", 3)]
    two = tmp_path / "two.json"
    two.write_text("\n".join(json.dumps(document, indent=1) for document in ways[1]))
    assert len(read_log(two, format="ubi").engine.query("SELECT event FROM rd_log")) == 1
    with pytest.raises(BadLog, match=r"several documents over more than a line each.*jq -c"):
        read_log(two, format="ubi", session=session)
