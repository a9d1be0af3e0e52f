"""Verbs that write, stopped, killed, doubled, starved, locked out, and with clocks gone wrong.

They run in forks of a process that has imported everything, so that what is disturbed is the work;
one in fifty is a process that is begun from nothing."""

import contextlib
import ctypes
import gzip
import os
import resource
import signal
import sys
import time
from pathlib import Path

import duckdb
from support.harness import Harness
from torture import originals
from torture.apart import ended, forked
from torture.files_of_any_form import write
from torture.kinds import REFUSED, RIGHT, kind
from torture.logs import adds_up, made_up
from torture.originals import DATED, LONG, VERBS, digests, undisturbed

from rankdrift.cli import stopping
from rankdrift.monitoring.results import is_whole, latest_name, read_finished

NEW_MOUNTS = 0x20000
NOBODY = 65534
MEMORY = 3 << 30  # bytes that a process may map in attempts on memory
WHOLE = {name: words for name, words in VERBS.items() if name not in LONG}


def _begin(rng, words, *, before=None, begun_anew=0.02):
    """The number of a process that runs these words; `before` is done in it first."""

    def run():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if before:
            before()
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            originals.run(words)
        except KeyboardInterrupt:
            if stopping.asked():
                raise
            return 130  # it came before anybody listened

    def anew():
        if before:
            before()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.execv(sys.executable, [sys.executable, "-m", "rankdrift.cli", *words, "--quiet"])

    chosen = anew if rng.random() < begun_anew else run
    return forked(chosen, out="out.txt", err="err.txt")


def _said(child, codes=(0, 1, 2), seconds=30.0):
    """(outcome, what it says); it must end with one of the codes, and without a traceback."""
    code, _ = ended(child, seconds)
    err = Path("err.txt").read_text(errors="replace")
    assert code in codes, (code, err[-800:])
    assert "Traceback" not in err and "KeyboardInterrupt" not in err, err[-800:]
    return (RIGHT, "") if code != 2 else (REFUSED, err[:300])


def _whole(name, must=False):
    """What is there is as it is when nothing disturbs it; with `must` all of it is there."""
    expected, found = undisturbed()[name].digests, digests(Path("out"))
    for path, digest in found.items():
        if path.endswith(".html"):
            assert Path("out", path).read_text().rstrip().endswith("</html>"), f"half of {path}"
        elif ".rankdrift-" not in path:
            assert expected.get(path, digest) == digest, f"{path} is not as it should be"
    latest = latest_name(Path("out")) if name == DATED and found else None
    assert not latest or is_whole(read_finished(Path("out", latest))), "half of the results"
    assert latest or not (name == DATED and must), "no results"
    if must:
        assert expected.keys() <= found.keys(), f"missing: {expected.keys() - found.keys()}"


def _left():
    """Files that nobody wants. A run that is killed in the instant between making its folder and
    locking it leaves that, empty, to those that come a minute later."""
    hidden = [str(path) for path in Path(".").rglob(".rankdrift-*")]
    folders = (path for path in Path("scratch").iterdir() if not path.is_dir() or _holds(path))
    return hidden + [path.name for path in folders]


def _holds(folder):
    return [path.name for path in folder.iterdir() if path.name != "lock-new"]


def _moment(rng, name):
    """Somewhere in the run, or a little after it; of those that take long, rather early."""
    time.sleep(rng.uniform(0, 1.1) ** (2 if name in LONG else 1) * undisturbed()[name].seconds)


def _interrupt(name):
    def function(rng, folder):
        originals.into(folder)
        child = _begin(rng, VERBS[name], begun_anew=0)
        _moment(rng, name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)
        found = _said(child, (0, 1, 130))
        assert not _left(), _left()
        _whole(name)
        return found

    return function


def _kill(name):
    def function(rng, folder):
        originals.into(folder)
        child = _begin(rng, VERBS[name])
        _moment(rng, name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _whole(name)
        if name in LONG:
            return RIGHT
        found = _said(_begin(rng, VERBS[name], begun_anew=0))
        _whole(name, must=True)
        assert not _left(), _left()
        return found

    return function


for _name in VERBS:
    kind("Ctrl-C at any moment: exit code 130 and nothing left, or it had ended before",
         name=f"an interrupt of {_name}", times=100, together=5, memory=None,
         seconds=60.0)(_interrupt(_name))  # fmt: skip
    kind("`kill -9` at any moment: what is there is whole, and the next run writes what an "
         "undisturbed one does", name=f"a kill of {_name}", times=100, together=5, memory=None,
         seconds=60.0)(_kill(_name))  # fmt: skip


def _some(rng, but=""):
    name = rng.choice([name for name in WHOLE if name != but])
    return name, WHOLE[name]


@kind("the same verb twice at the same time: both end, and what is there is whole", times=100,
      together=5, memory=None, seconds=60.0)  # fmt: skip
def two_at_once(rng, folder):
    originals.into(folder)
    name, words = _some(rng)
    both = [_begin(rng, words, begun_anew=0)]
    time.sleep(rng.choice((0.0, rng.uniform(0, undisturbed()[name].seconds))))
    both.append(_begin(rng, words, begun_anew=0))
    for child in both:
        _said(child, (0, 1))
    _whole(name, must=True)
    assert not _left(), _left()
    return RIGHT


def _mounted(folder, size):
    """This folder becomes a disk of so many bytes, for this process alone. Only root may."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS) or libc.mount(b"none", b"/", None, 16384 | 262144, None):
        return False  # private, with all below it
    options = f"size={size}".encode()
    return not libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, options)


def _small(folder, size):
    """A disk of that size there, or, where one may not mount, no file larger than that."""

    def before():
        if os.getuid() or not _mounted(folder, size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return before


@kind("where results go, a disk of 4 kB to 1 MB: a result, or an error and nothing half written",
      times=200, together=10, memory=None)  # fmt: skip
def a_full_disk(rng, folder):
    originals.into(folder)
    _, words = _some(rng)
    (folder / "out").mkdir()
    size = int(10 ** rng.uniform(3.6, 6))
    return _said(_begin(rng, words, before=_small(folder / "out", size)))


@kind("where temporary files go, a disk of 4 kB to 1 MB: a result or an error", times=100,
      together=10, memory=None)  # fmt: skip
def a_full_temporary_disk(rng, folder):
    originals.into(folder)
    name, words = _some(rng)
    size = int(10 ** rng.uniform(3.6, 6))
    found = _said(_begin(rng, words, before=_small(folder / "scratch", size)))
    _whole(name)
    return found


def _as_nobody():
    """Root has all rights: be somebody else."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


@kind("results into a folder that a plain user may only read: an error in words", times=100,
      together=10, memory=None)  # fmt: skip
def a_folder_one_may_not_write_to(rng, folder):
    originals.into(folder)
    name, words = _some(rng)
    (folder / "out").mkdir()
    for path in (folder.parent, folder, folder / "out"):
        path.chmod(0o755)
    (folder / "out").chmod(0o555)
    (folder / "scratch").chmod(0o777)
    found = _said(_begin(rng, words, before=_as_nobody, begun_anew=0))
    assert found[0] == REFUSED and "Cannot write" in found[1], (name, found)
    return found


@kind("temporary files where a plain user may only read: a result or an error in words", times=50,
      together=10, memory=None)  # fmt: skip
def a_temporary_folder_one_may_not_write_to(rng, folder):
    originals.into(folder)
    name, words = _some(rng)
    (folder / "out").mkdir()
    for path in (folder.parent, folder):
        path.chmod(0o755)
    (folder / "out").chmod(0o777)
    (folder / "scratch").chmod(0o555)
    found = _said(_begin(rng, words, before=_as_nobody, begun_anew=0))
    _whole(name)
    return found


@kind("DuckDB may have 1 to 60 MB: a result or an error", times=100, together=10, memory=None)
def little_memory(rng, folder):
    originals.into(folder)
    name = rng.choice(("harvest", "harvest by day", "inspect"))
    few = ["--memory", f"{rng.randint(1, 60)}MB", "--threads", str(rng.choice((1, 2)))]
    found = _said(_begin(rng, [*VERBS[name], *few]))
    _whole(name, must=found[0] == RIGHT)
    return found


ZONES = ("Asia/Kathmandu", "Pacific/Kiritimati", "America/St_Johns", "UTC+25", "No/Where", "",
         ":/dev/zero", "EST5EDT,M3.2.0,M11.1.0", "x" * 300, "Africa/Casablanca")  # fmt: skip
YEAR = 365 * 86400.0


@kind("odd time zones, clocks that are years off, run backwards or stand still, files from the "
      "future and from 1970: the same files every time", times=200, together=10,
      memory=None)  # fmt: skip
def clocks_and_time_zones(rng, folder):
    originals.into(folder)
    name, words = _some(rng, but=DATED)
    when = rng.choice((None, 0.0, 1.0, time.time() + 80 * YEAR, time.time() - 30 * YEAR))
    for path in folder.rglob("*.parquet") if when is not None else ():
        os.utime(path, (when, when))
    off, pace = rng.choice((0.0, 60 * YEAR, -40 * YEAR)), rng.choice((1.0, 1.0, 0.0, -1.0))
    zone = rng.choice(ZONES)

    def before():
        os.environ["TZ"] = zone
        time.tzset()
        clock, begun = time.time, time.time()
        time.time = lambda: begun + off + pace * (clock() - begun)

    written = []
    for _ in range(2):  # the second finds what the first has left
        found = _said(_begin(rng, words, before=before, begun_anew=0), (0, 1))
        written.append({p: d for p, d in digests(Path("out")).items() if ".html" not in p})
    assert written[0] == written[1], "the second run writes something else"
    if when is None:  # counts tell of their log, times of change included
        _whole(name, must=True)
    assert not _left(), _left()
    return found


@kind("a Parquet footer of petabytes, a gzip file that grows a thousandfold: a result or an error "
      "within 3 GB and 30 seconds", times=100, together=5, memory=None)  # fmt: skip
def a_file_that_promises_too_much(rng, folder):
    if rng.random() < 0.8:
        path = folder / "log.parquet"
        write(rng, made_up(rng), path)
        content = bytearray(path.read_bytes())
        size = int.from_bytes(content[-8:-4], "little")
        start = len(content) - 8 - size
        for _ in range(rng.randint(1, 4)):  # numbers in Thrift are bytes with the high bit set
            at = start + rng.randrange(size - 12)
            content[at : at + 9] = b"\xff" * 8 + b"\x7f"
        path.write_bytes(content)
    else:
        path = folder / "log.csv.gz"
        line = b"q," + b"d" * 60 + b",1,0\n"
        with gzip.open(path, "wb", compresslevel=6) as file:
            file.write(b"query,doc,rank,click\n")
            for _ in range(40):
                file.write(line * 20_000)
    words = ["harvest", str(path), "-o", "out.parquet", "--memory", "300MB", "--threads", "1"]
    limit = (resource.RLIMIT_AS, (MEMORY, MEMORY))
    return _said(_begin(rng, words, before=lambda: resource.setrlimit(*limit)))


ROWS = 20_000_000


@kind("harvest --memory 200MB: a right result or an error in words", times=1, together=1,
      least=10.0, memory=None, seconds=900.0)  # fmt: skip
def twenty_million_rows_in_200_megabytes(rng, folder):
    seed = rng.randrange(10**6)
    path = folder / "log.parquet"

    def made():
        with duckdb.connect(config={"threads": 1}) as database:
            database.execute(f"""
                COPY (
                    SELECT 'q' || (hash(s, {seed}) % 40000) AS query,
                        'd' || ((hash(s, {seed}) % 40000) * 20 + hash(s, r) % 30) AS doc,
                        r AS rank, CAST(hash(r, s, {seed}) % (5 + 5 * r) = 0 AS INTEGER) AS click,
                        DATE '2024-05-01' + CAST(s % 3 AS INTEGER) AS day
                    FROM range({ROWS // 20}) AS a(s), range(1, 21) AS b(r)
                ) TO '{path}'""")

    code, _ = ended(forked(made, err="err.txt"), 300)
    assert code == 0, Path("err.txt").read_text()
    words = ["harvest", str(path), "-o", "out.parquet", "--memory", "200MB", "--threads", "1"]
    begun = time.monotonic()
    code, most = ended(_begin(rng, words, begun_anew=1), 600)
    took, err = time.monotonic() - begun, Path("err.txt").read_text()
    assert code in (0, 1, 2) and "Traceback" not in err, (code, err[-800:])
    told = f"at most {most / 1e6:,.0f} MB of memory, {took:.0f} seconds"
    if code == 2:
        return REFUSED, f"{told}: {err[:200]}"
    from rankdrift import Counts

    counts = Counts.load("out.parquet")
    adds_up(counts)
    assert counts.funnel.rows == ROWS, counts.funnel
    roomy = Harness("duckdb").harvest(path, buckets=counts.buckets, max_shown=counts.max_shown)
    assert counts.equals(roomy), "other counts than with all memory"
    return RIGHT, told
