"""A DuckDB database, quiet."""

from typing import Any

import duckdb


def connect(
    path: str = ":memory:", *, watched: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """No bar is drawn; if `watched`, `query_progress` tells how far a query is."""
    database = duckdb.connect(path, config=config)
    try:
        database.execute(f"SET enable_progress_bar = {'true' if watched else 'false'}")
        database.execute("SET enable_progress_bar_print = false")
    except duckdb.InvalidInputException:
        pass  # a notebook without widgets: there the setting is refused, and no bar is drawn
    return database
