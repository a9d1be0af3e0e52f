"""A full disk, and a damaged file, are told as what they are, whichever step meets them."""

import subprocess
import sys

import duckdb
import pytest

from rankdrift.core.database import connect, shortages_told
from rankdrift.core.errors import BadLog, RankdriftError
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.log.log import read_log

# Files may not grow further: as with a full disk, to write fails. The log's temporary copies are
# larger; its counts are not written before they are there.
LARGEST = 100_000
RUN = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({LARGEST}, {LARGEST}))
from rankdrift.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Six days mixed in one file, which are sorted before they are counted."""
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    duckdb.sql(f"""
        COPY (
            SELECT 'q' || i % 9 AS query, md5(i::VARCHAR) AS doc, 1 + i % 10 AS rank,
                CAST(i % 7 = 0 AS INTEGER) AS click, DATE '2024-05-01' + CAST(i % 6 AS INT) AS day
            FROM range(60000) AS t(i)
        ) TO '{path}'""")
    duckdb.sql(f"COPY (FROM '{path}') TO '{path.with_suffix('.csv')}'")
    return path


@pytest.mark.parametrize(("ending", "by"), [(".parquet", ["--by", "day"]), (".csv", [])])
def test_a_full_temporary_disk_is_no_damaged_file(tmp_path, log, ending, by):
    given = [str(log.with_suffix(ending)), *by, "-o", str(tmp_path / "counts")]
    words = [sys.executable, "-c", RUN, "harvest", *given]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 2, run.stderr
    assert "Cannot write temporary files in" in run.stderr and "TMPDIR" in run.stderr
    assert "damaged" not in run.stderr and "Traceback" not in run.stderr


def test_a_temporary_disk_that_would_be_full_is_no_lack_of_memory(tmp_path):
    numbers = "FROM range(2000000) AS t(i)"
    with connect(memory_limit="20MB", temp_directory=str(tmp_path / "spilt"), threads=1) as con:
        con.execute("SET max_temp_directory_size = '300KiB'")
        told = pytest.raises(RankdriftError, match=r"Cannot write temporary files in .* TMPDIR")
        with told, shortages_told():
            con.execute(f"SELECT md5(i::VARCHAR) AS text, count(*) {numbers} GROUP BY text")
        with pytest.raises(RankdriftError, match="Not enough memory"), shortages_told():
            con.execute(f"SELECT list(i) {numbers}")


def test_a_full_disk_is_told_of_what_is_written(tmp_path, log):
    told = subprocess.run(
        [sys.executable, "-c", RUN.replace(str(LARGEST), "500"), "harvest", str(log), "-o",
         str(tmp_path / "counts.parquet")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 2
    assert "Raise the limit on the size of files" in told.stderr and not list(tmp_path.iterdir())


def test_a_damaged_page_is_an_error_while_sorting_by_day(tmp_path, log):
    damaged = bytearray(log.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 400] = bytes(400)
    path = tmp_path / "log.parquet"
    path.write_bytes(damaged)
    read = read_log(path)
    for _ in range(2):  # what a failed run had begun is not taken for whole
        with pytest.raises(BadLog, match="may be damaged"):
            harvest_by_day(read, tmp_path / "counts")
