"""The logs that are measured on: made once, kept under benchmarks/.data."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from rankdrift.simulate import searches

DATA = Path(__file__).parent / ".data"
DAYS = 10
QUERIES = 200_000  # of which some 45,000 searches a day reach most only once, as in a real log
FEW_QUERIES = 20_000  # so that nearly every query is searched every day
CHECKED = {"score": "score", "ranker": "ranker", "user": "user", "outcome": "purchased"}
COLUMNS = ("query", "doc", "rank", "click", "day", "search")  # those that a harvest reads


def drifting(rows: int, queries: int = QUERIES, days: int = DAYS) -> list[str]:
    """A marketplace's searches, a file a day."""
    code = Path(searches.__code__.co_filename).read_text()
    return kept(
        f"searches-{rows}-{queries}-{days}",
        code,
        lambda folder: searches(folder, rows=rows, queries=queries, days=days),
    )


def checked(rows: int) -> list[str]:
    """The same with the columns that only checks look at: a score that drifts with the search, two
    rankers, users who come back, and a purchase after every fifth click."""
    select = (
        "SELECT *, hash(query, doc) % 1000 / 100 + hash(search, doc) % 1000 / 500 AS score,"
        " CASE WHEN hash(search, 3) % 2 = 0 THEN 'control' ELSE 'treatment' END AS ranker,"
        " (hash(search, 4) % 300_000)::BIGINT AS user,"
        " (click > 0 AND hash(search, doc, 5) % 5 = 0)::TINYINT AS purchased FROM '{}'"
    )

    def make(folder: Path) -> None:
        with duckdb.connect() as database:
            database.execute("SET enable_progress_bar = false")
            for day in map(Path, drifting(rows)):
                written = f"'{folder / day.name}' (FORMAT parquet, COMPRESSION zstd)"
                database.execute(f"COPY ({select.format(day)}) TO {written}")

    return kept(f"checked-{rows}", select, make)


def crowded(rows: int) -> list[str]:
    """One day on which half of all results shown are clicked, and every pair is shown twice.

    Nothing can be left out early, so what is known of the pairs grows as large as the log.
    """
    pairs = rows // 2
    shown = (
        f"SELECT 'words of query ' || i % {pairs} // 10 AS query, i % {pairs} AS doc,"
        " (1 + (hash(i) >> 40) % 50)::SMALLINT AS rank, ((hash(i) >> 20) % 2)::TINYINT AS click,"
        f" DATE '2024-01-01' AS day FROM range({2 * pairs}) AS shown(i)"
    )

    def make(folder: Path) -> None:
        with duckdb.connect() as database:
            database.execute("SET enable_progress_bar = false")
            database.execute(f"COPY ({shown}) TO '{folder}/crowded.parquet' (FORMAT parquet)")

    return kept(f"crowded-{rows}", shown, make)


def kept(name: str, recipe: str, make: Callable[[Path], object]) -> list[str]:
    """The files of a log, made now unless they are there; a half-made log is never there."""
    folder = DATA / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    if not folder.exists():
        print(f"making {folder.name} ...", flush=True)
        for outdated in DATA.glob(f"{name}-????????"):
            shutil.rmtree(outdated)
        DATA.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=DATA) as scratch:
            made = Path(scratch) / "log"
            made.mkdir()
            make(made)
            made.rename(folder)
    return sorted(map(str, folder.glob("*.parquet")))
