"""What the torture tries. Each attempt is given chance and an empty folder, and says what became of
it: `right` (the result is the right one) or `refused` (a RankdriftError). Anything else is a
defect, and so is an attempt that ends its process or does not end."""

import datetime
import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import duckdb
from oracle.harvest_oracle import from_events, from_lists, tally
from support import curve_example
from support.counts_example import by_device, with_comparisons
from support.harness import Harness, assert_same, random_log, with_holes
from support.results_example import made

from rankdrift import Counts, Propensities, harvest, inspect, make_report, read_log
from rankdrift.core.digests import sealed
from rankdrift.core.errors import RankdriftError
from rankdrift.core.scratch import remove_mine
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.ranking.ranker import Ranker

RIGHT, REFUSED = "right", "refused"
ENDINGS = ("parquet", "csv", "csv.gz", "json", "json.gz", "csv.zst")
CODECS = ("snappy", "zstd", "gzip", "uncompressed")
COMMAND = (sys.executable, "-m", "rankdrift.cli")
MEMORY = 3 << 30  # bytes that a process may map in attempts on memory


# -- logs ------------------------------------------------------------------------------------------


def _rows(rng):
    rows = random_log(rng.randrange(10**6), searches=rng.randint(5, 80))
    return with_holes(rows, rng.randrange(10**6), rng.choice((0.0, 0.05)), ["query", "doc", "on"])


def _write(rng, rows, path, types=None):
    """The rows as a file of the kind that its name says; types are SQL by column."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        plain = [
            {k: v.isoformat() if isinstance(v, datetime.date) else v for k, v in row.items()}
            for row in rows
        ]
        source = path.with_name(path.name + ".lines")
        source.write_text("".join(json.dumps(row) + "\n" for row in plain))
        known = {"sid": "VARCHAR", "query": "VARCHAR", "doc": "VARCHAR", "rank": "INTEGER",
                 "click": "INTEGER", "on": "DATE", "price": "DOUBLE", "device": "VARCHAR",
                 "event": "VARCHAR", "results": "VARCHAR[]", "picked": "VARCHAR[]"}  # fmt: skip
        columns = {name: known[name] for name in rows[0]}
        listed = ", ".join(f"'{name}': '{type_}'" for name, type_ in columns.items())
        changed = ", ".join(f'CAST("{n}" AS {t}) AS "{n}"' for n, t in (types or {}).items())
        replaced = f" REPLACE ({changed})" if changed else ""
        options = {"json": "FORMAT json", "csv": "FORMAT csv, HEADER"}.get(
            path.name.split(".")[1], f"FORMAT parquet, COMPRESSION {rng.choice(CODECS)}"
        )
        con.execute(
            f"COPY (SELECT *{replaced} FROM read_json('{source}', columns = {{{listed}}},"
            f" format = 'newline_delimited')) TO '{path}' ({options})"
        )
        source.unlink()


def _layout(rng, rows):
    """The rows in one of the layouts; (rows to write, rows that the oracle counts, options)."""
    kind = rng.choice(("long", "long", "list", "events"))
    if kind == "long":
        return rows, rows, {}, {}
    if kind == "list":
        searches = {}
        for row in rows:
            first = {k: row[k] for k in ("sid", "query", "on", "device")}
            found = searches.setdefault(row["sid"], {**first, "results": [], "picked": []})
            found["results"].append(row["doc"] or "x")
            found["picked"] += [row["doc"] or "x"] * (row["click"] or 0)
        written = list(searches.values())
        long, outside = from_lists(written, "results", "picked")
        return written, long, {"shown": "results", "clicked": "picked"}, {"outside": outside}
    events = []
    for row in rows:
        shown = {k: v for k, v in row.items() if k != "click"}
        shown["doc"] = shown["doc"] or "x"
        events.append({**shown, "event": "impression"})
        events += [{**shown, "event": "click"}] * (row["click"] or 0)
    long, outside = from_events(events, search="sid", event="event")
    return events, long, {"event": "event"}, {"outside": outside, "search": "sid"}


def a_log_of_any_form(rng, folder):
    """Format, compression, layout, types and number of files by chance: the oracle's counts."""
    rows, long, ours, oracle = _layout(rng, _rows(rng))
    ending = rng.choice(ENDINGS) if "shown" not in ours else rng.choice(("parquet", "json"))
    files = rng.choice((1, 1, 2, 3))
    for i in range(min(files, len(rows))):
        types = {}
        if ending == "parquet" and "rank" in rows[0]:
            types = {"rank": rng.choice(("INTEGER", "BIGINT", "UBIGINT", "VARCHAR", "DOUBLE"))}
        _write(rng, rows[i::files], folder / f"log{i}.{ending}", types)
    common = {"day": "on"} | ({"segment": "device"} if rng.random() < 0.3 else {})
    if "event" in ours:
        ours = {**ours, "search": "sid"}
    elif "shown" not in ours and rng.random() < 0.5:
        ours, oracle = {**ours, "search": "sid"}, {**oracle, "search": "sid"}
    else:
        ours = {**ours, "search": ""}
    counts = Harness("duckdb").harvest(folder, **common, **ours)
    assert_same(counts, tally(long, **common, **oracle))
    return RIGHT


def _damaged(rng, content):
    content = bytearray(content)
    how = rng.choice(("flip", "flip", "flips", "cut", "zero", "insert", "swap"))
    if how == "cut":
        return bytes(content[: rng.randrange(len(content))])
    for _ in range(rng.randint(2, 40) if how == "flips" else 1):
        at = rng.randrange(len(content))
        if how in ("flip", "flips"):
            content[at] ^= 1 << rng.randrange(8)
        elif how == "zero":
            content[at : at + 64] = bytes(len(content[at : at + 64]))
        elif how == "insert":
            content[at:at] = rng.randbytes(rng.randint(1, 30))
        else:
            other = rng.randrange(len(content))
            content[at : at + 16], content[other : other + 16] = (
                content[other : other + 16], content[at : at + 16],
            )  # fmt: skip
    return bytes(content)


def _adds_up(counts):
    funnel = counts.funnel
    dropped = sum(line.rows for line in funnel.dropped.values())
    assert dropped + funnel.used.rows == funnel.rows, "the funnel does not add up"


def a_damaged_log(rng, folder):
    """Bits flipped, cut short, blanked, mixed up: counts whose funnel adds up, or an error."""
    path = folder / f"log.{rng.choice(ENDINGS)}"
    _write(rng, _rows(rng), path)
    path.write_bytes(_damaged(rng, path.read_bytes()))
    how = rng.choice(("harvest", "by day", "inspect"))
    log = read_log(path, day="on", threads=1, memory="500MB")
    if how == "harvest":
        _adds_up(harvest(log))
    elif how == "by day":
        for file in harvest_by_day(log, folder / "days"):
            _adds_up(Counts.load(file))
    else:
        json.dumps(inspect(log).to_dict(), allow_nan=False)
    return RIGHT


def a_strange_request(rng, folder):
    """Options and configurations by chance: a result or an error."""
    _write(rng, _rows(rng), folder / "log.parquet")
    values = ["rank", "query", "", "nonsense", "on", -1, 0, 1, 7, 10**12, "1; DROP", "x" * 500,
              True, [], ["a", "b"], {"a": 1}, 1.5, "rank > 0", "Europe/Berlin", "list"]  # fmt: skip
    fitting = {
        "query": ["query", ["query", "device"]], "day": ["on"], "search": ["sid", ""],
        "same": ["price"], "segment": ["device"], "where": ["rank > 1", "device = 'web'"],
        "layout": ["auto", "long"], "max_rank": [3, 10**9], "first_rank": [1], "dedupe": [True],
        "time_zone": ["Europe/Berlin"], "memory": ["200MB"], "threads": [1], "format": ["parquet"],
    }  # fmt: skip
    options = {
        name: rng.choice(values if rng.random() < 0.2 else fitting[name])
        for name in rng.sample(list(fitting), rng.randint(1, 5))
    }
    if "dedupe" in options:
        options["search"] = "sid"
    if rng.random() < 0.1:
        options["no_such_option"] = rng.choice(values)
    text = "\n".join(f"{name} = {_toml(value)}" for name, value in options.items())
    (folder / "c.toml").write_bytes(
        text.encode() if rng.random() < 0.7 else _damaged(rng, text.encode())
    )
    _adds_up(harvest(read_log(folder / "log.parquet", config=folder / "c.toml")))
    return RIGHT


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


# -- artefacts -------------------------------------------------------------------------------------


def _record(path):
    Ranker("mine", "lightgbm", "tree\nof a kind", (), trees=3, history=(0.5,)).save(path)
    path.unlink()
    Path(f"{path}.meta.json").rename(path)


def _load_record(path):
    model = path.with_name("model.txt")
    model.write_text("tree\nof a kind")
    Path(f"{model}.meta.json").write_bytes(path.read_bytes())
    return Ranker.load(model)


def _printed(document):
    return lambda path: path.write_text(json.dumps(sealed(json.loads(json.dumps(document())))))


def _page(path):
    return make_report([path]).html.replace("\r", "").split("This page")[0]


ARTEFACTS = {
    "counts.parquet": (with_comparisons().save, Counts.load, Counts.equals),
    "segments.parquet": (by_device().save, Counts.load, Counts.equals),
    "p.json": (curve_example.by_device().save, Propensities.load, Propensities.equals),
    "p.parquet": (curve_example.by_device().save, Propensities.load, Propensities.equals),
    # A table for other tools, without a digest: what can be read is taken.
    "p.csv": (curve_example.by_device().save, Propensities.load, lambda a, b: True),
    "record.json": (_record, _load_record, lambda a, b: vars(a) == vars(b)),
    "comparison.json": (_printed(lambda: made().rankers.to_dict()), _page, str.__eq__),
    "methods.json": (_printed(lambda: made().methods.to_dict()), _page, str.__eq__),
    "diagnosis.json": (_printed(lambda: diagnose(made().counts).to_dict()), _page, str.__eq__),
}


def a_damaged_artefact(rng, folder):
    """It loads as what it was, or is refused."""
    name = rng.choice(list(ARTEFACTS))
    save, load, same = ARTEFACTS[name]
    path = folder / name
    save(path)
    whole = load(path)
    path.write_bytes(_damaged(rng, path.read_bytes()))
    assert same(load(path), whole), f"{name} loads as something else"
    return RIGHT


# -- processes -------------------------------------------------------------------------------------


def _run(words, folder, *, limits=(), timeout=60):
    def prepare():
        for which, most in limits:
            resource.setrlimit(which, (most, most))

    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, capture_output=True, text=True, check=False,
        timeout=timeout, preexec_fn=prepare, env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip


def _ended(done, codes=(0, 1, 2)):
    assert done.returncode in codes, (done.returncode, done.stderr[-800:])
    assert "Traceback" not in done.stderr, done.stderr[-800:]
    return RIGHT if done.returncode in (0, 1) else REFUSED


def _prepared(rng, folder):
    """Inputs of the verbs, and the verbs that write."""
    for i in range(3):
        _write(rng, random_log(i, searches=60), folder / f"log-{i}.parquet")
    curve_example.small_counts(800).save(folder / "counts.parquet")
    curve_example.hand().save(folder / "p.json")
    return rng.choice((
        ["harvest", "log-*.parquet", "--day", "on", "-o", "out.parquet"],
        ["harvest", "log-*.parquet", "--day", "on", "--by", "day", "-o", "out"],
        ["merge", "counts.parquet", "-o", "out.parquet"],
        ["estimate", "counts.parquet", "-o", "out.json"],
        ["estimate", "counts.parquet", "-o", "out.parquet"],
        ["report", "counts.parquet", "p.json", "-o", "out.html"],
        ["inspect", "log-*.parquet", "--day", "on", "--html", "out.html"],
        ["simulate", "pairs", "-o", "out.parquet", "--pairs", "500"],
    ))  # fmt: skip


def _left(folder):
    hidden = [path.name for path in folder.rglob(".rankdrift-*")]
    return hidden + [path.name for path in (folder / "scratch").iterdir()]


def an_interrupt(rng, folder):
    """Ctrl-C at any moment: exit code 130 and nothing left, or it had ended before."""
    words = _prepared(rng, folder)
    (folder / "scratch").mkdir()
    begun = (
        "from rankdrift.cli import main, stopping; stopping.listen(); print(1, flush=True); main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", begun, *words], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder / "scratch")},
    )  # fmt: skip
    process.stdout.readline()
    time.sleep(rng.uniform(0, 3))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (0, 1, 130), (process.returncode, err[-800:])
    assert "Traceback" not in err and "KeyboardInterrupt" not in err, err[-800:]
    assert not _left(folder), _left(folder)
    return RIGHT


def a_kill(rng, folder):
    """kill -9 at any moment; then the same again gives what an undisturbed run gives."""
    words = _prepared(rng, folder)
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(rng.uniform(0, 3))
    process.kill()
    process.wait()
    for path in folder.glob("out*"):
        files = [path] if path.is_file() else path.glob("*.parquet")
        for file in files:
            assert file.stat().st_size > 0
            if file.suffix == ".parquet":
                load = Propensities.load if words[0] == "estimate" else Counts.load
                if words[0] != "simulate":
                    load(file)
    return _ended(_run(words, folder))


def two_at_once(rng, folder):
    """The same verb twice at the same time: both end, and what is there is whole."""
    words = _prepared(rng, folder)
    both = [
        subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    for process in both:
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1) and "Traceback" not in err, err[-800:]
    assert not list(folder.glob(".rankdrift-*"))
    return RIGHT


def a_full_disk(rng, folder):
    """No file may grow beyond some size, temporary ones included."""
    words = _prepared(rng, folder)
    most = int(10 ** rng.uniform(1, 5.5))
    done = _run(words, folder, limits=[(resource.RLIMIT_FSIZE, most)])
    found = _ended(done)
    assert not list(folder.rglob(".rankdrift-*.part"))
    return found


def a_place_one_may_not_write_to(rng, folder):
    """A folder without the right to write; for root, who has all rights, a read-only mount."""
    words = _prepared(rng, folder)
    command = [*COMMAND, *words]
    if os.getuid() == 0:
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", mount, str(folder), *command]
    else:
        folder.chmod(0o555)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
        )
        assert _ended(done) == REFUSED, done.stdout
        assert "Cannot write" in done.stderr, done.stderr
    finally:
        folder.chmod(0o755)
    return REFUSED


def little_memory(rng, folder):
    """DuckDB may have next to none."""
    words = _prepared(rng, folder)
    if words[0] not in ("harvest", "inspect"):
        words = ["harvest", "log-*.parquet", "--day", "on", "-o", "out.parquet"]
    few = ["--memory", f"{rng.randint(1, 60)}MB", "--threads", str(rng.choice((1, 2)))]
    return _ended(_run([*words, *few], folder))


def a_file_that_promises_too_much(rng, folder):
    """A footer of petabytes, and a gzip file that grows a thousandfold, within a memory limit."""
    limits = [(resource.RLIMIT_AS, MEMORY)]
    if rng.random() < 0.5:
        path = folder / "log.parquet"
        _write(rng, _rows(rng), path)
        content = bytearray(path.read_bytes())
        size = int.from_bytes(content[-8:-4], "little")
        start = len(content) - 8 - size
        for _ in range(rng.randint(1, 4)):  # numbers in Thrift are bytes with the high bit set
            at = start + rng.randrange(size - 12)
            content[at : at + 9] = b"\xff" * 8 + b"\x7f"
        path.write_bytes(content)
    else:
        path = folder / "log.csv.gz"
        with gzip.open(path, "wb", compresslevel=6) as file:
            file.write(b"query,doc,rank,click\n")
            line = b"q," + b"d" * 60 + b",1,0\n"
            for _ in range(40):
                file.write(line * 20_000)
    words = ["harvest", str(path), "-o", "out.parquet", "--memory", "300MB", "--threads", "1"]
    return _ended(_run(words, folder, limits=limits, timeout=30))


ATTEMPTS = (
    (a_log_of_any_form, 6), (a_damaged_log, 8), (a_strange_request, 5), (a_damaged_artefact, 8),
    (an_interrupt, 3), (a_kill, 2), (two_at_once, 1), (a_full_disk, 2),
    (a_place_one_may_not_write_to, 1), (little_memory, 1), (a_file_that_promises_too_much, 1),
)  # fmt: skip
"""What is tried, and how often compared with the others."""


def attempt(function, rng, folder):
    """(outcome, what was wrong)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(rng, folder), ""
        except RankdriftError:
            return REFUSED, ""
        except BaseException as error:
            return "wrong", f"{type(error).__name__}: {error}"
        finally:
            remove_mine()
