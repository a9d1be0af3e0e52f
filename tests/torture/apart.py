"""Attempts in processes of their own, forked from one that has imported everything: a death, a
hang or too much memory is the result of that attempt alone."""

import contextlib
import json
import os
import random
import resource
import select
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

from torture.kinds import REFUSED

from rankdrift.core.errors import RankdriftError
from rankdrift.core.scratch import remove_mine

LONGEST = 3_000  # characters of what an attempt says
SESSION, TICKS = 3, slice(11, 15)  # in /proc/…/stat, from the state on


def in_turn(kind, names, end=float("inf")):
    """Yields (name, outcome, what it says, CPU seconds) of each, until the time is over."""
    left = list(names)
    while left and time.monotonic() < end:
        for result in _in_one_process(kind, tuple(left), end):
            yield result
            left.pop(0)
        if time.monotonic() >= end:
            return


def _in_one_process(kind, names, end):
    """As many as the process survives. The last one may be the one it did not."""
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(kind, names, end, folder, writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb", buffering=0) as said:
            for name in names:
                line = _line(said, kind.seconds)
                if line is None:
                    yield name, "no end", f"not ended after {kind.seconds:.0f} seconds", 0.0
                    return
                if not line:  # it has ended, or has died
                    _, status = os.waitpid(child, 0)
                    child, code = 0, os.waitstatus_to_exitcode(status)
                    if code:
                        yield name, "died", f"exit code {code}", 0.0
                    return
                yield name, *json.loads(line)
    finally:
        if child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _line(file, seconds):
    """b"" at the end, None after so many seconds. A line is written at once, and is short."""
    ready, _, _ = select.select([file], [], [], patience(seconds))
    return file.readline() if ready else None


def patience(seconds):
    """So many seconds of an idle machine: others may use this one, and what waits is no hang."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _work(kind, names, end, folder, writer):
    os.setsid()
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if kind.memory:
        resource.setrlimit(resource.RLIMIT_AS, (kind.memory, kind.memory))
    for i, name in enumerate(names):
        if i and time.monotonic() >= end:
            break
        inside = folder / str(i)
        (inside / "scratch").mkdir(parents=True)
        tempfile.tempdir = os.environ["TMPDIR"] = str(inside / "scratch")
        os.chdir(inside)
        before = _processor(kind.lasting)
        said = attempt(kind.function, random.Random(name), inside)
        took = _processor(kind.lasting) - before
        os.write(writer, json.dumps([*said, took]).encode() + b"\n")
        shutil.rmtree(inside, ignore_errors=True)
    os._exit(0)


def _processor(lasting):
    """Seconds of processor that this process and those it waited for have taken; `lasting`: and
    all others of its session."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    found = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))
    for path in Path("/proc").glob("[0-9]*/stat") if lasting else ():
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[SESSION]) == os.getsid(0) and path.parent.name != str(os.getpid()):
                found += sum(map(int, fields[TICKS])) / os.sysconf("SC_CLK_TCK")
    return found


def attempt(function, rng, folder):
    """(outcome, what it says)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(rng, folder)
            return (found, "") if isinstance(found, str) else found
        except RankdriftError as error:
            return REFUSED, str(error)[:LONGEST]
        except BaseException as error:
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            place = f"{Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno}"
            return "wrong", f"{type(error).__name__} at {place}: {error}"[:LONGEST]
        finally:
            remove_mine()


def forked(function, *, out=None, err=None):
    """The number of a new process that does this and ends with what it gives, or with 70. Ctrl-C
    waits until the function is ready for it, and lets it come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    code = 70
    try:
        for number, path in ((1, out), (2, err)):
            if path:
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
        code = function() or 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException as error:
        os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def ended(child, seconds=30.0):
    """Its exit code, and the most memory it had, in bytes; after so many seconds it is killed."""
    end = time.monotonic() + patience(seconds)
    while time.monotonic() < end:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"not ended after {seconds:.0f} seconds")
