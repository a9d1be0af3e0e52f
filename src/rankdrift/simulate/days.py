"""Made-up logs as one Parquet file a day, the same bytes every time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB

Chunk = Mapping[str, NDArray[Any]]
"""Some rows of a day, by column."""


def split_days(start: str, days: int, rows: int) -> Iterator[tuple[date, int]]:
    """Each day from `start` on and its share of the rows, as even as whole numbers are."""
    for number in range(days):
        share = rows * (number + 1) // days - rows * number // days
        yield date.fromisoformat(start) + timedelta(number), share


def write_day(
    path: Path,
    chunks: Iterable[Chunk],
    *,
    columns: str,
    words: Mapping[str, Sequence[Any]],
    select: str,
    parameters: Sequence[Any],
    on_disk: bool = False,
) -> tuple[int, int]:
    """Write one day as a Parquet file, through a table that may go to disk: memory stays small.

    Parameters
    ----------
    path
        Of the file, which is replaced whole.
    chunks
        The rows.
    columns
        Names and types of the table `shown` that they are put into; one is `click`.
    words
        Columns of the table `words`, to join.
    select, parameters
        The statement whose result is written, and its values.
    on_disk
        Keep the tables in a file, rather than spill what does not fit into memory.

    Returns
    -------
    (int, int)
        Rows and clicks.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".day-") as scratch:
        file = f"{scratch}/day.duckdb" if on_disk else ":memory:"
        spill: dict[str, Any] = {} if on_disk else {"temp_directory": f"{scratch}/spilled"}
        # One thread, or the bytes of the file would differ from run to run.
        with connect(file, threads=1, **spill) as database:
            database.execute("SET memory_limit = '400MB'")
            listed = ", ".join(f"unnest(${i}) AS {name}" for i, name in enumerate(words, start=1))
            database.execute(f"CREATE TABLE words AS SELECT {listed}", [*words.values()])
            database.execute(f"CREATE TABLE shown ({columns})")
            for chunk in chunks:
                database.register("chunk", chunk)
                database.execute("INSERT INTO shown BY NAME FROM chunk")
            target = f"{scratch}/day.parquet"
            database.execute(
                f"COPY ({select}) TO {DUCKDB.literal(target)} (FORMAT parquet, COMPRESSION zstd)",
                [*parameters],
            )
            os.replace(target, path)
            [(rows, clicks)] = database.execute("SELECT count(*), sum(click) FROM shown").fetchall()
        return int(rows), int(clicks)
