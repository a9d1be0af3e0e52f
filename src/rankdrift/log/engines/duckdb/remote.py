"""Files that are not on this machine: DuckDB reads them through the file systems of fsspec, or by
an extension of its own that is installed already. Nothing is fetched to do so but the files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import duckdb

from rankdrift.core.addresses import is_address, without_secrets
from rankdrift.core.errors import BadLog, MissingExtra
from rankdrift.log.sources import Files, Source

PACKAGES = {
    "s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs",
    "http": "aiohttp", "https": "aiohttp",
}  # fmt: skip
"""Schemes, and the packages that fsspec reads them with."""
BY_EXTENSION = ("http", "https", "s3", "gs", "gcs")
"""Schemes that DuckDB's extension httpfs reads too."""
BY_EXTENSION_ALONE = ("hf", "r2", "s3a", "s3n")
_UNKNOWN = (
    "{path!r} is not on this machine, and nothing here reads {scheme}://. It can be {known}. Copy "
    "the files here first; what a cluster reads by that name, `--engine spark` does too."
)
_MISSING = (
    "{path!r} is not on this machine. To read it there: pip install 'rankdrift[remote]'{more}. Or "
    "copy the files here first."
)
_NO_KEY = (
    "{path!r} may not be read: {why}. Give the credentials where their own tools look for them "
    "(variables of the environment, or a file such as ~/.aws/credentials), never in the address."
)


def reach(con: duckdb.DuckDBPyConnection, source: Source) -> Source:
    """Let the database read a source that is elsewhere; the same source, patterns and folders as
    the files that are there.

    Raises
    ------
    MissingExtra
        Nothing is installed that reads such an address.
    BadLog
        There is no such file, or it may not be read, or nobody answers.
    """
    if not isinstance(source, Files):
        return source
    paths = list(source.paths)
    schemes = {_scheme(path): path for path in paths if is_address(path)}
    for scheme in sorted(schemes.keys() - BY_EXTENSION_ALONE):
        if scheme not in PACKAGES:
            told, known = without_secrets(schemes[scheme]), (f"{name}://" for name in PACKAGES)
            raise BadLog(_UNKNOWN.format(path=told, scheme=scheme, known=", ".join(known)))
        system = _system(scheme)
        if system is None:
            _load_extension(con, scheme, schemes[scheme])
            continue
        with _errors(schemes[scheme]):
            con.register_filesystem(system)
        paths = [
            file
            for path in paths
            for file in (_files(system, path) if _scheme(path) == scheme else [path])
        ]
    return replace(source, paths=tuple(paths))


def _scheme(path: str) -> str:
    return path.partition("://")[0].lower() if is_address(path) else ""


def _system(scheme: str) -> Any:
    """The file system of fsspec for this scheme; None if it is not installed."""
    try:
        import fsspec

        # Not one that an earlier call made: credentials may be others now.
        system = fsspec.filesystem(scheme, skip_instance_cache=True)
    except ImportError:
        return None
    if scheme in ("http", "https"):
        # The web does not tell when a file was changed: while a log is open, it was not.
        system.modified = lambda path: datetime.fromtimestamp(0, UTC)
    return system


def _load_extension(con: duckdb.DuckDBPyConnection, scheme: str, path: str) -> None:
    """DuckDB's own, if it is installed: it is never fetched."""
    found = con.execute(
        "SELECT installed FROM duckdb_extensions() WHERE extension_name = 'httpfs'"
    ).fetchone()
    if scheme in BY_EXTENSION and found and found[0]:
        con.execute("LOAD httpfs")
        return
    package = PACKAGES[scheme]
    more = f" {package}" if package not in ("s3fs", "aiohttp") else ""
    raise MissingExtra(_MISSING.format(path=without_secrets(path), more=more))


def _files(system: Any, path: str) -> list[str]:
    """The files that an address names: one, those of a pattern, or those in a folder."""
    with _errors(path):
        if "*" in path:
            found = sorted(system.glob(path))
        elif _scheme(path) in ("http", "https"):
            system.info(path)
            return [path]
        else:
            found = sorted(system.find(path))
        named = [system.unstrip_protocol(file) for file in found]
    if not named:
        raise BadLog(f"No file at {without_secrets(path)!r}. Check the bucket and the name.")
    # As they were typed: az:// is called abfs:// by its own system.
    return [f"{_scheme(path)}://{name.partition('://')[2]}" for name in named]


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """What goes wrong elsewhere, in our words, and without anybody's key."""
    told = without_secrets(path)
    try:
        yield
    except Exception as found:
        # Of the web, whatever is wrong is called a file that was not found.
        cause = found.__cause__
        of_web = isinstance(cause, OSError) or hasattr(cause, "status")
        error = cause if of_web and isinstance(cause, Exception) else found
        refused = isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403)
        if refused or "Credential" in type(error).__name__:
            raise BadLog(_NO_KEY.format(path=told, why=_words(error))) from None
        if isinstance(error, FileNotFoundError) or getattr(error, "status", None) in (404, 410):
            raise BadLog(f"No file at {told!r}. Check the bucket and the name.") from None
        raise BadLog(
            f"{told!r} cannot be reached: {_words(error)}. Check the address, and whether this "
            "machine may go there."
        ) from None


def _words(error: Exception) -> str:
    text = without_secrets(str(error)).strip().partition("\n")[0].rstrip(".")
    return text or type(error).__name__
