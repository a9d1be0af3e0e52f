"""A log's days in DuckDB: which files their rows are in, and how to read one day alone."""

import datetime
import os
import shutil
from typing import TYPE_CHECKING

from rankdrift.core.dialects import DUCKDB
from rankdrift.log.columns import Column
from rankdrift.log.engines.duckdb.readers import reader, unglobbed
from rankdrift.log.engines.engine import Day
from rankdrift.log.engines.parquet import days_by_statistics
from rankdrift.log.sources import Files
from rankdrift.log.sql.values import window_begins

if TYPE_CHECKING:
    from rankdrift.log.engines.duckdb.engine import DuckdbEngine

# Rereading files for each day costs more than sorting them by day once when days are mixed.
_MIXED = 4
BY_DAY = "by-day"
"""The folder of rows that were sorted by day."""


class DuckdbDays:
    """The days of a log that DuckDB reads: see `Days`."""

    def __init__(self, engine: "DuckdbEngine", day_sql: str, column: Column, window: int) -> None:
        self._engine, self._day_sql, self._column = engine, day_sql, column
        self._window = window
        self._paths = engine.input.paths if isinstance(engine.input, Files) else ()
        # Day -> path -> rows.
        self._files: dict[str, dict[str, int]] = {}
        for day, path, rows in self._stated() or self._counted():
            files = self._files.setdefault(str(day or ""), {})
            files[path] = files.get(path, 0) + rows
        self.all = [
            Day(day, sum(files.values()), self._fingerprint(files))
            for day, files in sorted(self._files.items())
        ]

    def _stated(self) -> list[tuple[str, str, int]] | None:
        """What Parquet's statistics say, without a row being read."""
        engine = self._engine
        if not isinstance(engine.input, Files) or engine.input.format != "parquet":
            return None
        if engine.format:  # its rows have columns that the files have not
            return None
        found = days_by_statistics(engine.connection, unglobbed(self._paths), self._column)
        return found and [(self._begins(day), path, rows) for day, path, rows in found]

    def _begins(self, day: str) -> str:
        return str(window_begins(datetime.date.fromisoformat(day), self._window))

    def _counted(self) -> list[tuple[object, str, int]]:
        engine, day = self._engine, f"{self._day_sql} AS day"
        if not self._paths:
            found = engine.query(f"SELECT {day}, '', count(*) FROM rd_log GROUP BY ALL")
        elif engine.staged:
            file = "rd_filename" if len(self._paths) > 1 else DUCKDB.literal(self._paths[0])
            found = engine.query(
                f"SELECT {day}, {file}, count(*)"
                f" FROM read_parquet({DUCKDB.literal(engine.staged)}) GROUP BY ALL"
            )
        else:
            found = [
                (at, self._paths[index], rows)
                for at, index, rows in engine.query(
                    f"SELECT {day}, file_index, count(*)"
                    f" FROM {reader(self._paths, 'parquet', folders=engine.folders)} GROUP BY ALL"
                )
            ]
        return [(at, path, rows) for at, path, rows in found]

    def _fingerprint(self, files: dict[str, int]) -> str | None:
        engine = self._engine
        if isinstance(engine.input, Files) and engine.fingerprint():
            return engine.input.fingerprint(files)
        return engine.fingerprint()

    @property
    def apart(self) -> bool:
        """See `Days`."""
        return bool(self._paths) and not self._mixed

    @property
    def _mixed(self) -> bool:
        """Would reading each day's files read the log several times over?"""
        if not self._paths or len(self._files) == 1:
            return False
        size: dict[str, int] = {}
        for files in self._files.values():
            for path, rows in files.items():
                size[path] = size.get(path, 0) + rows
        read = sum(size[path] for files in self._files.values() for path in files)
        return self._engine.staged is not None or read > _MIXED * sum(size.values())

    def part(self, day: Day) -> tuple[str, str | None]:
        """See `Days`."""
        with self._engine.reading():
            return self._part(day)

    def _part(self, day: Day) -> tuple[str, str | None]:
        if self._mixed:
            return self._sorted(day), None
        files = self._files[day.day]
        if not self._paths or len(files) == len(self._paths):
            return "rd_log", self._prune(day)
        return self._some_files(tuple(sorted(files))), self._prune(day)

    def _sorted(self, day: Day) -> str:
        """Days are mixed within files: write the rows once, a folder a day."""
        folder = self._engine.path(BY_DAY)
        if not os.path.exists(folder):
            label = f"coalesce(CAST({self._day_sql} AS VARCHAR), 'none')"
            begun = self._engine.path(f"{BY_DAY}-begun")
            shutil.rmtree(begun, ignore_errors=True)  # of a run that failed half way
            self._engine.execute(
                f"COPY (SELECT *, {label} AS rd_day FROM rd_log) TO {DUCKDB.literal(begun)}"
                " (FORMAT parquet, PARTITION_BY (rd_day))",
                "sorting by day",
                None,
            )
            os.rename(begun, folder)
        files = DUCKDB.literal(os.path.join(folder, f"rd_day={day.day or 'none'}", "*.parquet"))
        return f"read_parquet({files}, hive_partitioning = false)"

    def _some_files(self, paths: tuple[str, ...]) -> str:
        """These files, with the columns and types that the whole log has."""
        con = self._engine.connection
        files = reader(paths, "parquet", folders=self._engine.folders)
        there = set(con.sql(f"SELECT * FROM {files} LIMIT 0").columns)
        log = con.sql("SELECT * FROM rd_log LIMIT 0")
        columns = (
            f"CAST({DUCKDB.quote(name) if name in there else 'NULL'} AS {type_})"
            f" AS {DUCKDB.quote(name)}"
            for name, type_ in zip(log.columns, log.types, strict=True)
        )
        return f"(SELECT {', '.join(columns)} FROM {files})"

    def _prune(self, day: Day) -> str | None:
        """A plain condition that all rows of the day meet, in whichever time zone."""
        column = self._column
        if not day.day or column.kind not in ("timestamp", "instant"):
            return None
        name, near = DUCKDB.quote(*column.path), datetime.timedelta(days=2)
        at = datetime.date.fromisoformat(day.day)
        last = at + datetime.timedelta(days=self._window - 1)
        type_ = "TIMESTAMP" if column.kind == "timestamp" else "TIMESTAMPTZ"
        first, after = (DUCKDB.literal(str(date)) for date in (at - near, last + near))
        return f"{name} >= {type_} {first} AND {name} < {type_} {after}"
