"""A DuckDB database, quiet."""

from typing import Any

import duckdb


def connect(
    path: str = ":memory:", *, watched: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """Open a database, in memory or in a file, on which DuckDB draws no bar.

    Parameters
    ----------
    path
        A DuckDB file.
    watched
        Whether `query_progress` is to tell how far a query is.
    config
        DuckDB's own settings.
    """
    database = duckdb.connect(path, config=config)
    try:
        database.execute(f"SET enable_progress_bar = {'true' if watched else 'false'}")
        database.execute("SET enable_progress_bar_print = false")
    except duckdb.InvalidInputException:
        pass  # a notebook without widgets: there the setting is refused, and no bar is drawn
    return database
