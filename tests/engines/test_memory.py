"""The memory of DuckDB: what a long step leaves behind goes back to the system."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from rankdrift import harvest, read_log
from rankdrift.log.engines.duckdb import engine
from rankdrift.simulate import world


@pytest.mark.parametrize("long", [True, False])
def test_steps_that_take_long_give_memory_back_and_change_no_setting(tmp_path, monkeypatch, long):
    world("valid", pairs=500, ranks=6, days=2, queries=100).write(tmp_path)
    log, given = read_log(str(tmp_path / "*.parquet"), threads=2), []
    settings = "SELECT current_setting('threads'), current_setting('disabled_optimizers')"
    before, give_back = log.engine.query(settings), log.engine._give_back
    monkeypatch.setattr(engine, "LONG_STEP", 0.0 if long else 60.0)
    monkeypatch.setattr(log.engine, "_give_back", lambda: given.append(give_back()))
    assert harvest(log).n_pairs > 0
    assert log.engine.query(settings) == before and bool(given) == long


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_what_is_given_back_is_the_systems_again():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    log = read_log(pa.table({"query": [1], "doc": [1], "rank": [1], "click": [1]}), threads=2)
    many = "SELECT count(*) FROM (SELECT DISTINCT hash(i) AS h FROM range(6_000_000) AS x(i))"
    before = resident()
    log.engine.query(many)
    kept = resident() - before
    log.engine._give_back()
    assert kept > 100e6 and resident() - before < kept / 2
