"""Logs of any form, with strange values, or damaged; and strange requests of them."""

import json
import math
import re
import shutil
from dataclasses import dataclass

from oracle.harvest_oracle import from_events, from_lists, tally
from support.harness import Harness, assert_same, random_log, with_holes
from torture import originals
from torture.damage import STRANGE, damaged, edited
from torture.files_of_any_form import ENDINGS, typed, write
from torture.kinds import RIGHT, kind

from rankdrift import Counts, harvest, inspect, read_log
from rankdrift.core.errors import RankdriftError
from rankdrift.harvesting.by_day import harvest_by_day

LISTS = ("parquet", "json", "json.gz", "json.zst")  # formats that have lists


def made_up(rng, most=60):
    """Rows of a log, now and then with holes."""
    rows = random_log(rng.randrange(10**6), searches=rng.randint(5, most))
    return with_holes(rows, rng.randrange(10**6), rng.choice((0.0, 0.05)), ["query", "doc", "on"])


def _layout(rng, rows):
    """One of the layouts: (rows to write, rows that the oracle counts, our options, its own)."""
    layout = rng.choice(("long", "long", "list", "events"))
    if layout == "long":
        return rows, rows, {}, {}
    rows = [{**row, "doc": row["doc"] or "x"} for row in rows]
    if layout == "list":
        searches = {}
        for row in rows:
            first = {k: row[k] for k in ("sid", "query", "on", "device")}
            found = searches.setdefault(row["sid"], {**first, "results": [], "picked": []})
            found["results"].append(row["doc"])
            found["picked"] += [row["doc"]] * (row["click"] or 0)
        written = list(searches.values())
        return written, *_of_lists(written)
    events = []
    for row in rows:
        shown = {k: v for k, v in row.items() if k != "click"}
        events.append({**shown, "event": "impression"})
        events += [{**shown, "event": "click"}] * (row["click"] or 0)
    return events, *_of_events(events)


def _of_lists(rows):
    long, outside = from_lists(rows, "results", "picked")
    return long, {"shown": "results", "clicked": "picked"}, {"outside": outside}


def _of_events(rows):
    long, outside = from_events(rows, search="sid", event="event")
    return long, {"event": "event", "search": "sid"}, {"outside": outside, "search": "sid"}


def _counted(engine, source, **options):
    """These logs are to be read: an error is a failure, but for what Spark cannot read."""
    try:
        return engine.harvest(source, **options)
    except RankdriftError as error:
        spared = engine.name == "spark" and re.search("BrotliCodec|to the nanosecond", str(error))
        assert spared, f"refused: {error}"
        raise


def any_form(rng, folder, engine, most=60):
    """A log of any form, counted by an engine and by the oracle."""
    rows, long, ours, oracle = _layout(rng, made_up(rng, most))
    ending = rng.choice(LISTS if "shown" in ours else ENDINGS)
    rows, types = typed(rng, rows, ending)
    if "shown" in ours:
        long, ours, oracle = _of_lists(rows)
    elif "event" in ours:
        long, ours, oracle = _of_events(rows)
    else:
        long = rows
    files = rng.choice((1, 1, 2, 3))
    for i in range(min(files, len(rows))):
        part = rows[i::files]
        if rng.random() < 0.2:
            part = [{**row, f"more{i}": "é"} for row in part]
        own = dict(types)
        if "rank" in own and rng.random() < 0.3 and all(type(row["rank"]) is int for row in part):
            own["rank"] = rng.choice(("int16", "uint32", "int64"))
        write(rng, part, folder / f"log{i}.{ending}", own)
    common = {"day": "on"} | ({"segment": "device"} if rng.random() < 0.3 else {})
    if "search" not in ours:
        by_search = "shown" not in ours and rng.random() < 0.5
        ours = {**ours, "search": "sid" if by_search else ""}
        oracle = {**oracle, **({"search": "sid"} if by_search else {})}
    counts = _counted(engine, folder / f"*.{ending}", **common, **ours)
    assert_same(counts, tally(long, **common, **oracle))
    return RIGHT


@dataclass
class _Threads(Harness):
    """Harvests with so many threads; one is cheaper, and what is planned is the same."""

    threads: int = 1

    def harvest(self, source, **options):
        return super().harvest(source, threads=self.threads, **options)


def _engine(rng):
    return _Threads("duckdb", threads=rng.choice((1, 1, 1, 2)))


@kind(
    "layout, format, compression, encoding, types, schemas and number of files by chance: the "
    "counts of an oracle in plain Python, which shares no code",
    times=3_000, together=40,
)  # fmt: skip
def a_log_of_any_form(rng, folder):
    return any_form(rng, folder, _engine(rng))


VALUES = {
    "rank": ("", " ", "-3", "x", "1.5", "2.0", " 3 ", "+2", "1e1", "999999999999", "NaN", "inf",
             "0x10", None),
    "click": ("", "2", "-1", "yes", " No ", "x", "1.0", "0.5", "TRUE", "f", "NaN", None),
    "on": ("", "x", "2024-02-30", "2024-02-28", "20240229", " 2024-02-28 ", "2024-02-28T23:59:59",
           "1709164799", "0", None),
    "doc": ("", " ", "d1 ", "'", '"', "a,b", "a\nb", "\\", "NULL", "null", "🙂", "é", None),
    "query": ("", "  ", "red shoes", '"', "';--", "a\tb", "a\nb", "\\N", "🙂", None),
}  # fmt: skip


def strange_values(rng, folder, engine, most=60):
    """Text in all columns, with values that are none, counted by an engine and by the oracle."""
    rows = [
        {n: v if v is None or n == "price" else str(v) for n, v in row.items()}
        for row in made_up(rng, most)
    ]
    share = rng.choice((0.01, 0.05, 0.3))
    chosen = rng.sample(list(VALUES), rng.randint(1, len(VALUES)))
    for row in rows:
        for name in chosen:
            if rng.random() < share:
                row[name] = rng.choice(VALUES[name])
    rows += [dict(rng.choice(rows)) for _ in range(rng.choice((0, 0, 3, 30)))]
    rng.shuffle(rows)
    ending = rng.choice(ENDINGS)
    write(rng, rows, folder / f"log.{ending}", dict.fromkeys(VALUES, "string"))
    if not ending.startswith(("parquet", "json")):
        rows = [{n: None if v == "" else v for n, v in row.items()} for row in rows]
    options = {"day": "on"} if rng.random() < 0.8 else {}
    if rng.random() < 0.5:
        options |= {"search": "sid", "dedupe": rng.random() < 0.5}
    if rng.random() < 0.2:
        options["max_rank"] = rng.randint(2, 10)
    ours = {"search": "", "day": "", **options}
    counts = _counted(engine, folder / f"log.{ending}", **ours, layout="long")
    assert_same(counts, tally(rows, **options))
    return RIGHT


@kind("text, blanks, fractions, times and rows that are there twice: the oracle's counts",
      times=2_000, together=40)  # fmt: skip
def a_log_with_strange_values(rng, folder):
    return strange_values(rng, folder, _engine(rng))


def adds_up(counts):
    """Every row of the log is used or dropped for a reason."""
    funnel = counts.funnel
    dropped = sum(line.rows for line in funnel.dropped.values())
    assert dropped + funnel.used.rows == funnel.rows, "the funnel does not add up"


@kind("bits flipped, cut short, blanked, mixed up: counts whose funnel adds up, or an error",
      times=4_000, together=40)  # fmt: skip
def a_damaged_log(rng, folder):
    path = folder / f"log.{rng.choice(ENDINGS)}"
    rows, types = typed(rng, made_up(rng), path.name.split(".")[1])
    write(rng, rows, path, types)
    path.write_bytes(damaged(rng, path.read_bytes()))
    how = rng.choice(("harvest", "harvest", "harvest", "by day", "inspect"))
    log = read_log(path, day="on", threads=1, memory="500MB")
    if how == "harvest":
        adds_up(harvest(log))
    elif how == "by day":
        for file in harvest_by_day(log, folder / "days"):
            adds_up(Counts.load(file))
    else:
        json.dumps(inspect(log).to_dict(), allow_nan=False)
    return RIGHT


@kind("a log of User Behavior Insights, GA4, Metarank … with values of any type in its fields, "
      "lines left out, or damaged: counts whose funnel adds up, or an error", times=1_000,
      together=40)  # fmt: skip
def a_damaged_log_of_another_tool(rng, folder):
    from_tool = rng.choice(sorted((originals.PLACE / originals.FORMATS).iterdir()))
    shutil.copytree(from_tool, folder / "log")
    files = sorted((folder / "log").iterdir())
    path = rng.choice(files)
    content = path.read_bytes()
    text = path.suffix not in (".gz", ".parquet") and rng.random() < 0.8
    path.write_bytes(_odd_lines(rng, content) if text else damaged(rng, content))
    log = read_log(files, threads=1, memory="500MB")
    adds_up(harvest(log))
    return RIGHT


def _odd_lines(rng, content):
    """Some lines of a text with strange values, left out, doubled, or with fields mixed up."""
    lines, share = content.splitlines(keepends=True), rng.choice((0.01, 0.1, 1.0))
    found = []
    for line in lines:
        how = rng.random() if rng.random() < share else 2.0
        if how < 0.8 and line.startswith(b"{"):
            line = edited(rng, line) + b"\n"
        elif how < 0.8:
            fields = line.rstrip(b"\n").split(b"\t" if b"\t" in line else b",")
            rng.shuffle(fields)
            line = b",".join(fields) + b"\n"
        elif how < 0.9:
            line = b""
        elif how <= 1:
            line += line
        found.append(line)
    return b"".join(found)


FITTING = {
    "query": ["query", ["query", "device"]], "day": ["on"], "search": ["sid", ""],
    "same": ["price"], "segment": ["device"], "where": ["rank > 1", "device = 'web'"],
    "layout": ["auto", "long"], "max_rank": [3, 10**9], "first_rank": [1], "dedupe": [True],
    "time_zone": ["Europe/Berlin"], "memory": ["200MB"], "threads": [1], "format": ["parquet"],
    "window": ["7d"], "user": ["sid"], "score": ["price"], "ranker": ["device"],
}  # fmt: skip
OTHER = (*STRANGE, "rank", "query", "nonsense", "1; DROP", "x" * 500, "rank > 0", "list", "200MB",
         ["query", "query"], "0d", "-1d", "1e9d", "UTC+25", "'", '"', "main.rd_log")  # fmt: skip


@kind("options and configurations by chance, four in five fitting: a result or an error",
      times=500)  # fmt: skip
def a_strange_request(rng, folder):
    write(rng, made_up(rng), folder / "log.parquet")
    options = {
        name: rng.choice(OTHER if rng.random() < 0.2 else FITTING[name])
        for name in rng.sample(list(FITTING), rng.randint(1, 5))
    }
    if "dedupe" in options:
        options["search"] = "sid"
    if rng.random() < 0.1:
        options["no_such_option"] = rng.choice(OTHER)
    text = "\n".join(f"{name} = {_toml(value)}" for name, value in options.items()).encode()
    (folder / "c.toml").write_bytes(text if rng.random() < 0.7 else damaged(rng, text))
    counts = harvest(read_log(folder / "log.parquet", config=folder / "c.toml"))
    adds_up(counts)
    assert all(math.isfinite(x) for x in counts.by_rank.clicks.tolist())
    return RIGHT


def _toml(value):
    if value is None:
        return '""'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
