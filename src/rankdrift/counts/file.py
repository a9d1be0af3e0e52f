"""Files of counts: one Parquet file each, the table of `schema` with its metadata.

Options, days and so on are JSON under the Parquet metadata key `rankdrift`. Files of format 1 say
nothing of much-shown pairs by rank, before format 3 there were no splits, and before format 4 no
pairs shown at one rank; else they are the same.
"""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.artefacts import (
    APPEARANCES_KEY,
    COUNTS_KEY,
    JUDGMENTS_KEY,
    looks_like_propensities,
)
from rankdrift.core.artefacts import PROPENSITIES_KEY as PROPENSITIES
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.digests import KEY as DIGEST
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadCounts
from rankdrift.core.plain import parsed
from rankdrift.core.types import Segment
from rankdrift.counts.counts import Counts, version_order
from rankdrift.counts.funnel import Funnel
from rankdrift.counts.reading import fields_of, read_table, warn_unknown_overflow
from rankdrift.counts.schema import FORMAT, format_of, table_sql
from rankdrift.counts.tables import Table
from rankdrift.counts.together import Together, read_together

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Found = TypeVar("Found")

_SAME = ("options", "buckets", "max_rank", "max_shown", "segment_columns")
"""Metadata of files that can be added up as they are read."""
_TOGETHER = 4_000_000  # bytes of files that are read at once
_PROPENSITIES = "this file holds propensities, not counts. Read it with Propensities.load."


def save(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write `counts` as one Parquet file, whole or not at all."""
    from rankdrift.core.database import writing

    meta = json.dumps(sealed(_plain(metadata(counts)), _content(counts)), sort_keys=True)
    with writing(path) as (part, con):
        marked = f"KV_METADATA {{{COUNTS_KEY}: {DUCKDB.literal(meta)}}}"
        options = f"FORMAT parquet, COMPRESSION zstd, {marked}"
        con.execute(f"COPY ({table_sql(con, counts)}) TO {DUCKDB.literal(str(part))} ({options})")


def load(path: str | os.PathLike[str]) -> Counts:
    """Read what `save` wrote."""
    with _opened(path) as (con, name):
        meta = _stored_metadata(con, name)
        counts = read_table(con, f"read_parquet({name}, hive_partitioning = false)", meta)
    changed = what_changed(meta, _content(counts), by_hand=False)
    if changed:
        raise BadCounts(f"{os.fspath(path)}: {changed} (delete it, and harvest or merge).")
    warn_unknown_overflow(counts)
    return counts


def find_counts(names: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that these names stand for, files, folders and globs, each once."""
    found: list[str] = []
    for given in names:
        name = os.fspath(given)
        if os.path.isdir(name):
            paths = sorted(glob.glob(os.path.join(glob.escape(name), "*.parquet")))
            missing = f"No *.parquet files in the folder {name!r}."
        else:
            paths = [name] if os.path.exists(name) else sorted(glob.glob(name))
            missing = f"No file {name!r}."
        if not paths:
            raise BadCounts(f"{missing} Give files of counts, written by rankdrift harvest.")
        found += paths
    return list(dict.fromkeys(os.path.normpath(path) for path in found))


def each_counts(
    parts: str | os.PathLike[str] | Iterable[Counts | str | os.PathLike[str]],
) -> Iterator[Counts]:
    """Counts as they are, and those that paths stand for, some of them added up."""
    if isinstance(parts, str | os.PathLike):
        parts = [parts]
    paths: list[str | os.PathLike[str]] = []
    for part in parts:
        if not isinstance(part, Counts):
            paths.append(part)
            continue
        yield from load_added_up(find_counts(paths))
        paths.clear()
        yield part
    yield from load_added_up(find_counts(paths))


def load_added_up(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Counts]:
    """What `load` reads of each, files that were made with the same options as one sum: a year of
    days in the time of a few."""
    yield from _by_batch(paths, _add_up, load)


def load_all(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Counts]:
    """What `load` reads of each, in order; many small files in little more time than one."""
    yield from _by_batch(paths, _load_together, load)


def load_both(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Counts], list[Counts]]:
    """What `load_all` reads and what `load_added_up` does, of files that are read once."""
    apart, summed = list[Counts](), list[Counts]()
    for parts, sums in _by_batch(paths, _read_both, lambda path: ([load(path)], None)):
        apart += parts
        summed += sums or parts
    return apart, summed


def _by_batch(
    paths: Iterable[str | os.PathLike[str]],
    read: Callable[[Sequence[str | os.PathLike[str]], DuckDBPyConnection], list[Found]],
    read_one: Callable[[str | os.PathLike[str]], Found],
) -> Iterator[Found]:
    """What is read of some files at a time or, if they are not alike or one is not fine, of one
    after the other, so that what is wrong has a name."""

    def at_once(batch: Sequence[str | os.PathLike[str]]) -> list[Found] | None:
        with suppress(BadCounts):
            return read(batch, database.cursor()) if len(batch) > 1 else None
        return None

    from rankdrift.core.database import connect

    batches = list(_batches(paths))
    if all(len(batch) == 1 for batch in batches):
        yield from (read_one(path) for batch in batches for path in batch)
        return
    # DuckDB, NumPy and hashing run side by side; of small files each wants but one thread.
    with connect(threads=1) as database, ThreadPoolExecutor(max_workers=2) as pool:
        for batch, found in zip(batches, pool.map(at_once, batches), strict=True):
            yield from map(read_one, batch) if found is None else found


def _batches(
    paths: Iterable[str | os.PathLike[str]],
) -> Iterator[list[str | os.PathLike[str]]]:
    """As many at a time as are small together."""
    batch: list[str | os.PathLike[str]] = []
    size = 0
    for path in paths:
        size += os.path.getsize(path) if os.path.isfile(path) else _TOGETHER
        if batch and size > _TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append(path)
    if batch:
        yield batch


def _load_together(
    paths: Sequence[str | os.PathLike[str]], con: DuckDBPyConnection
) -> list[Counts]:
    """Each for itself."""
    return _apart(*_read_alike(paths, con))


def _read_both(
    paths: Sequence[str | os.PathLike[str]], con: DuckDBPyConnection
) -> list[tuple[list[Counts], list[Counts] | None]]:
    """Each for itself, and their sum if they can be added up as they are."""
    found, metas = _read_alike(paths, con)
    parts, sums = _apart(found, metas), None
    with suppress(BadCounts):
        sums = [_sum(found, metas)]
    return [(parts, sums)]


def _apart(found: Together, metas: Sequence[dict[str, Any]]) -> list[Counts]:
    """The counts of each file."""
    counts = []
    for place, meta in enumerate(metas):
        tables, segments = found.alone(place)
        funnel, given = found.funnels[place], fields_of(meta)
        _refuse_change(meta, tables, segments, funnel)
        one = Counts.known(**tables, **given, segments=segments, funnel=funnel)
        warn_unknown_overflow(one)
        counts.append(one)
    return counts


def _add_up(paths: Sequence[str | os.PathLike[str]], con: DuckDBPyConnection) -> list[Counts]:
    """The sum of files that only days and sources tell apart; BadCounts for all others."""
    found, metas = _read_alike(paths, con)
    for place, meta in enumerate(metas):
        _refuse_change(meta, *found.alone(place), found.funnels[place])
    return [_sum(found, metas)]


def _sum(found: Together, metas: Sequence[dict[str, Any]]) -> Counts:
    """Of files that are what was saved; BadCounts if more than days and sources tell them apart."""
    first = metas[0]
    if any(meta.get(name) != first.get(name) for meta in metas for name in _SAME):
        raise BadCounts("these files are not alike.")
    sources = [source for meta in metas for source in meta["sources"]]
    if len({*sources}) < len(sources):
        raise BadCounts("an input is there twice.")
    return Counts.known(
        **{name: table.collapse() for name, table in found.tables.items()},
        **{name: fields_of(first)[name] for name in _SAME},
        segments=found.segments,
        funnel=reduce(add, found.funnels),
        days=tuple(day for meta in metas for day in meta["days"]),
        sources=tuple(sources),
        version=max((meta["version"] for meta in metas), key=version_order),
    )


def _read_alike(
    paths: Sequence[str | os.PathLike[str]], con: DuckDBPyConnection
) -> tuple[Together, list[dict[str, Any]]]:
    """What several files say, and the metadata of each; BadCounts if they do not have the same
    columns, or one has no digest."""
    files = [os.path.abspath(path) for path in paths]
    names = [DUCKDB.literal(glob.escape(file)) for file in files]
    with _opened(paths[0], con):
        metas = _all_metadata(con, files)
        forms = con.sql(f"""
            SELECT DISTINCT list((name, type, logical_type))
            FROM parquet_schema([{", ".join(names)}]) GROUP BY file_name""").fetchall()
        split = {tuple(meta.get("segment_columns", ())) for meta in metas}
        known = all(meta.get(DIGEST) for meta in metas)
        if not known or len(forms) > 1 or len(split) > 1 or len({*files}) < len(files):
            raise BadCounts("these files are not alike.")
        return read_together(con, names, *split), metas


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of what `save` wrote, without its rows. It ends the file: if it is there, the
    file is whole."""
    with _opened(path) as (con, name):
        return _stored_metadata(con, name)


def read_all_metadata(paths: Sequence[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """What `read_metadata` reads of each; of many in little more time than of one."""
    if not paths:
        return []
    files = [os.path.abspath(path) for path in paths]
    with _opened(files[0]) as (con, _):
        return _all_metadata(con, files)


def metadata(counts: Counts) -> dict[str, Any]:
    """All of `counts` that is not in the table, as plain values; `read_table` takes it back."""
    names = ("version", "options", "buckets", "max_rank", "max_shown", "days", "sources")
    kept = {name: getattr(counts, name) for name in (*names, "segment_columns")}
    return {"format": format_of(counts), **kept}


def _content(counts: Counts) -> Iterator[NDArray[Any]]:
    return _arrays(counts.tables, counts.segments, counts.funnel)


def _refuse_change(
    meta: Mapping[str, Any],
    tables: Mapping[str, Table],
    segments: Sequence[Segment],
    funnel: Funnel,
) -> None:
    """BadCounts unless this is what was saved, or nobody can tell."""
    changed = what_changed(meta, _arrays(tables, segments, funnel), by_hand=False)
    if changed:
        raise BadCounts(changed)


def _plain(meta: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return dict(json.loads(json.dumps(meta)))


def _arrays(
    tables: Mapping[str, Table], segments: Sequence[Segment], funnel: Funnel
) -> Iterator[NDArray[Any]]:
    """All that the table of counts says, but for tables without a row: a file need not have all the
    tables that a later version knows."""
    for name, table in tables.items():
        if len(table):
            yield np.array([name])
            yield from table.columns()
    words = [segments, [*funnel.lines()], sorted((+Counter(funnel.notes)).items())]
    yield np.frombuffer(json.dumps(words).encode(), np.uint8)


@contextmanager
def _opened(
    path: str | os.PathLike[str], known: DuckDBPyConnection | None = None
) -> Iterator[tuple[DuckDBPyConnection, str]]:
    """A connection, new or `known`, which is closed in the end, and the file's name in its SQL;
    what goes wrong is BadCounts with the path."""
    import duckdb

    from rankdrift.core.database import connect, first_line, interrupted

    file = Path(os.path.abspath(path))
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "does not exist"
        raise BadCounts(f"{os.fspath(path)} {what}. Give a counts file written by a harvest.")
    with known or connect() as con:
        try:
            yield con, DUCKDB.literal(glob.escape(str(file)))
        except BadCounts as error:
            raise BadCounts(f"{os.fspath(path)}: {error}") from error
        except duckdb.Error as error:
            if interrupted(error):
                raise KeyboardInterrupt from error
            if looks_like_propensities(file):
                raise BadCounts(f"{os.fspath(path)}: {_PROPENSITIES}") from error
            raise BadCounts(
                f"{os.fspath(path)} cannot be read as a Parquet file: it is cut short or of "
                "another kind. Harvest again, or copy it again from where it came. "
                f"(DuckDB says: {first_line(error)})"
            ) from error


def _stored_metadata(con: DuckDBPyConnection, name: str) -> dict[str, Any]:
    return _checked_metadata(
        con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall()
    )


def _all_metadata(con: DuckDBPyConnection, files: Sequence[str]) -> list[dict[str, Any]]:
    names = DUCKDB.literals([glob.escape(file) for file in files])
    stored = con.sql(f"SELECT file_name, key, value FROM parquet_kv_metadata([{names}])")
    texts: dict[str, list[tuple[bytes, bytes]]] = {}
    for file, key, value in stored.fetchall():
        texts.setdefault(file, []).append((key, value))
    return [_checked_metadata(texts.get(file, [])) for file in files]


def _checked_metadata(stored: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    texts = [value for key, value in stored if key == COUNTS_KEY.encode()]
    if not texts:
        if any(key == PROPENSITIES.encode() for key, _ in stored):
            raise BadCounts(_PROPENSITIES)
        if any(key == JUDGMENTS_KEY.encode() for key, _ in stored):
            raise BadCounts("this file holds judgments, not counts. Give what harvest wrote.")
        if any(key == APPEARANCES_KEY.encode() for key, _ in stored):
            raise BadCounts(
                "this file holds appearances, not counts: `rankdrift judge` reads them. Give what "
                "harvest wrote."
            )
        raise BadCounts(
            "this Parquet file was not written by rankdrift. Give a counts file, or use harvest to "
            "count a log."
        )
    try:
        meta = parsed(texts[0])
    except ValueError as error:
        raise BadCounts("its metadata is damaged. Harvest again.") from error
    number = meta.get("format") if isinstance(meta, dict) else None
    if not isinstance(number, int) or number < 1:
        raise BadCounts("its metadata names no format. Harvest again.")
    if number > FORMAT:
        raise BadCounts(
            f"it has format {number}, written by rankdrift {meta.get('version')}; this rankdrift "
            f"reads up to format {FORMAT}. Upgrade rankdrift."
        )
    return dict(meta)
