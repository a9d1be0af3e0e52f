"""How DuckDB reads files: FROM items."""

import glob

from rankdrift.core.dialects import DUCKDB


def reader(paths: tuple[str, ...], format: str, filename: bool = False) -> str:
    """FROM text that reads these files; columns are matched by name."""
    files = f"[{DUCKDB.literals(unglobbed(paths))}]"
    named = ", filename = 'rd_filename'" if filename else ""
    if format == "parquet":
        return f"read_parquet({files}, union_by_name = true{named})"
    if format == "csv":
        # Everything stays text: '007' is not 7, and a letter in the last row breaks nothing.
        return (
            f"read_csv({files}, all_varchar = true, union_by_name = true, header = true,"
            f" quote = '\"', escape = '\"'{named})"
        )
    return (
        f"read_json({files}, format = 'newline_delimited', union_by_name = true,"
        f" sample_size = -1, map_inference_threshold = -1{named})"
    )


def unglobbed(paths: tuple[str, ...]) -> list[str]:
    """Each path means one file, even if its name has stars or brackets."""
    return [path if "://" in path else glob.escape(path) for path in paths]
