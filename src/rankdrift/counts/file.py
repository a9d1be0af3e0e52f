"""Files of counts: one Parquet file each, the table of `schema` with its metadata.

Options, days and so on are JSON under the Parquet metadata key `rankdrift`. Files of format 1 say
nothing of much-shown pairs by rank, and before format 3 there were no splits; else they are the
same.
"""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.artefacts import COUNTS_KEY, looks_like_propensities
from rankdrift.core.artefacts import PROPENSITIES_KEY as PROPENSITIES
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadCounts
from rankdrift.counts.counts import Counts
from rankdrift.counts.reading import read_table
from rankdrift.counts.schema import FORMAT, FORMAT_BEFORE_SPLITS, table_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PROPENSITIES = "this file holds propensities, not counts. Read it with Propensities.load."


def save(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write `counts` as one Parquet file, whole or not at all."""
    from rankdrift.core.database import writing

    meta = json.dumps(sealed(_plain(metadata(counts)), _arrays(counts)), sort_keys=True)
    with writing(path) as (part, con):
        marked = f"KV_METADATA {{{COUNTS_KEY}: {DUCKDB.literal(meta)}}}"
        options = f"FORMAT parquet, COMPRESSION zstd, {marked}"
        con.execute(f"COPY ({table_sql(con, counts)}) TO {DUCKDB.literal(str(part))} ({options})")


def load(path: str | os.PathLike[str]) -> Counts:
    """Read what `save` wrote."""
    with _opened(path) as (con, name):
        meta = _stored_metadata(con, name)
        counts = read_table(con, f"read_parquet({name}, hive_partitioning = false)", meta)
    changed = what_changed(meta, _arrays(counts), by_hand=False)
    if changed:
        raise BadCounts(f"{os.fspath(path)}: {changed} (delete it, and harvest or merge).")
    return counts


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of what `save` wrote, without its rows. It ends the file: if it is there, the
    file is whole."""
    with _opened(path) as (con, name):
        return _stored_metadata(con, name)


def metadata(counts: Counts) -> dict[str, Any]:
    """All of `counts` that is not in the table, as plain values; `read_table` takes it back."""
    names = ("version", "options", "buckets", "max_rank", "max_shown", "days", "sources")
    kept = {name: getattr(counts, name) for name in (*names, "segment_columns")}
    return {"format": FORMAT if len(counts.splits) else FORMAT_BEFORE_SPLITS, **kept}


def _plain(meta: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return dict(json.loads(json.dumps(meta)))


def _arrays(counts: Counts) -> Iterator[NDArray[Any]]:
    """All that the table of `counts` says, but for tables without a row: a file need not have all
    the tables that a later version knows."""
    for name, table in counts.tables.items():
        if len(table):
            yield np.array([name])
            yield from table.columns()
    words = [
        counts.segments,
        [*counts.funnel.lines()],
        sorted((+Counter(counts.funnel.notes)).items()),
    ]
    yield np.frombuffer(json.dumps(words).encode(), np.uint8)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[DuckDBPyConnection, str]]:
    """A connection and the file's name in its SQL; what goes wrong is BadCounts with the path."""
    import duckdb

    from rankdrift.core.database import connect, interrupted

    file = Path(os.path.abspath(path))
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "does not exist"
        raise BadCounts(f"{os.fspath(path)} {what}. Give a counts file written by a harvest.")
    with connect() as con:
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
                f"(DuckDB says: {str(error).splitlines()[0]})"
            ) from error


def _stored_metadata(con: DuckDBPyConnection, name: str) -> dict[str, Any]:
    stored = con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall()
    texts = [value for key, value in stored if key == COUNTS_KEY.encode()]
    if not texts:
        if any(key == PROPENSITIES.encode() for key, _ in stored):
            raise BadCounts(_PROPENSITIES)
        raise BadCounts(
            "this Parquet file was not written by rankdrift. Give a counts file, or use harvest to "
            "count a log."
        )
    try:
        meta = json.loads(texts[0])
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
