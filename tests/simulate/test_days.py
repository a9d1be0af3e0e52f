"""A made-up day as a file: whole, joined with its words, and the same bytes every time."""

from datetime import date

import duckdb
import numpy as np
import pytest

from rankdrift.simulate.days import split_days, write_day


def test_rows_are_split_as_evenly_as_whole_numbers_are():
    found = list(split_days("2024-02-28", 3, 11))
    assert found == [(date(2024, 2, 28), 3), (date(2024, 2, 29), 4), (date(2024, 3, 1), 4)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_day_is_written_whole(tmp_path, on_disk):
    def chunks():
        for first in (0, 3):
            number = first + np.arange(3)
            yield {"query": number % 2, "click": (number == 4).astype(np.int8), "more": number}

    folder = tmp_path / "it's"
    folder.mkdir()
    for name in ("one", "two"):
        written = write_day(
            folder / name, chunks(), columns="query BIGINT, click TINYINT, more BIGINT",
            words={"number": [0, 1], "text": ["lamp", None]},
            select="SELECT text, more + $1 AS more, click FROM shown JOIN words ON number = query"
            " ORDER BY more", parameters=[10], on_disk=on_disk,
        )  # fmt: skip
        assert written == (6, 1)
    assert (folder / "one").read_bytes() == (folder / "two").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["one", "two"]
    path = str(folder / "one").replace("'", "''")
    assert duckdb.sql(f"FROM read_parquet('{path}')").fetchall() == [
        ("lamp", 10, 0), (None, 11, 0), ("lamp", 12, 0), (None, 13, 0), ("lamp", 14, 1),
        (None, 15, 0),
    ]  # fmt: skip


def test_a_day_that_breaks_off_leaves_nothing(tmp_path):
    def chunks():
        yield {"click": np.zeros(2, np.int8)}
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write_day(
            tmp_path / "day", chunks(), columns="click TINYINT", words={"number": [0]},
            select="SELECT click FROM shown", parameters=[],
        )  # fmt: skip
    assert not list(tmp_path.iterdir())
