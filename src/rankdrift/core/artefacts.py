"""Which kind of file is this? What rankdrift writes is marked, and the marks are stated here."""

import json
import os

# Keys of the metadata of Parquet files.
COUNTS_KEY = "rankdrift"
PROPENSITIES_KEY = "rankdrift_propensities"
# `kind` in JSON, and the first line of CSV.
PROPENSITIES_KIND = "rankdrift propensities"
PROPENSITIES_COLUMNS = tuple(
    "segment rank propensity low high std_error pairs clicks supported".split()
)


def looks_like_propensities(path: str | os.PathLike[str]) -> bool:
    """Whether a text file begins as JSON or CSV of propensities; nothing more of it is read."""
    with open(path, "rb") as file:
        start = file.read(1000)
    return start.startswith(",".join(PROPENSITIES_COLUMNS).encode()) or (
        start.startswith(b"{") and json.dumps(PROPENSITIES_KIND).encode() in start
    )
