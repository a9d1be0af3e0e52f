"""Ctrl-C, at whichever moment it comes: a run ends with one word, exit code 130, and no traceback.

Python raises KeyboardInterrupt wherever it happens to be, and not everything takes that well:
imports turn it into an ImportError, DuckDB into an error of its own, callbacks swallow it, and a
process that ends while DuckDB's threads still run may be aborted. So what counts is that a stop was
asked for, not which error came of it; and a run that was stopped ends at once, after its temporary
files.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

# Seconds in which a second Ctrl-C is taken for the same; after that it ends the run at once.
AGAIN, SOON = 1.0, 0.02  # seconds
STOPPED = 130
_TRIES_FOLDERS = "_get_default_tempdir"  # of tempfile


class _Stop:
    """When a stop was first asked for, and whether there is anything to stop yet."""

    asked: float | None = None
    at_once = True
    settled = False
    error: BaseException | None = None


def listen() -> None:
    """From here on Ctrl-C ends the process at once; there is nothing yet to leave in order."""
    _Stop.asked, _Stop.at_once, _Stop.settled, _Stop.error = None, True, False, None
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # whoever started this wants it ignored, or sees to it
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, _stop)
        sys.unraisablehook = _unless_stopped


def begin() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt, once."""
    _Stop.at_once = False


def asked() -> bool:
    """Was a stop asked for?"""
    return _Stop.asked is not None


def settle(error: BaseException | None = None) -> None:
    """The run has stopped: nothing more is to be interrupted. With this error all that the run was
    doing is kept: to take it apart in any odd order may end a library of C's, and the process."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    _Stop.settled, _Stop.error = True, error


def end(code: int) -> NoReturn:
    """End the process; there is nothing left to stop."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    settle(_Stop.error)
    if not asked():
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    for name in ("rankdrift.core.files", "rankdrift.core.scratch"):
        if name in sys.modules:
            sys.modules[name].remove_mine()
    os._exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if _Stop.asked is None:
        _Stop.asked = now
        if not _Stop.at_once:
            if hasattr(signal, "setitimer"):
                signal.signal(signal.SIGALRM, _insist)
                if _must_wait(frame):
                    signal.setitimer(signal.ITIMER_REAL, SOON, SOON)
                    return
                signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
            raise KeyboardInterrupt
        with suppress(OSError):
            os.write(2, b"Stopped.\n")
        os._exit(STOPPED)
    if now - _Stop.asked > AGAIN:
        os._exit(STOPPED)


def _must_wait(frame: FrameType | None) -> bool:
    """Whether something is being imported: an error raised then may be printed and forgotten, leave
    a module half made, or end a library of C's, and with it the process. Or Python tries a folder
    for temporary files by writing one, which would stay."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == _TRIES_FOLDERS:
            return True
        frame = frame.f_back
    return False


def _insist(number: int, frame: FrameType | None) -> None:
    """Some libraries swallow it, in callbacks and while they are imported: then once more. While it
    is on its way, what tidies up after it is left in peace."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return
        error = error.__cause__ or error.__context__
    if not _Stop.settled and not _must_wait(frame):
        signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        raise KeyboardInterrupt


def _unless_stopped(error: Any) -> None:
    """What Python would print of errors that nobody can catch: not after Ctrl-C."""
    if not asked():
        sys.__unraisablehook__(error)
