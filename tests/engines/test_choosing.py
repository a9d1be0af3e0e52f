"""An engine is one module and one line in the registry."""

import sys
from types import ModuleType

import pyarrow as pa
import pytest

from rankdrift import read_log
from rankdrift.core.errors import BadOption
from rankdrift.log.engines.choosing import ENGINES, EngineChoice
from rankdrift.log.engines.duckdb.engine import DuckdbEngine
from rankdrift.log.engines.duckdb.engine import open_engine as open_duckdb


class Special:
    """A table that only one engine reads."""

    def __init__(self, table):
        self.table = table


Special.__module__ = "specialsql.tables"


@pytest.fixture
def table():
    return pa.table({"query": ["a"], "doc": ["d"], "rank": [1], "click": [1]})


@pytest.fixture
def special(monkeypatch):
    module = ModuleType("special_engine")

    class SpecialEngine(DuckdbEngine):
        pass

    def open_engine(source, options):
        engine = open_duckdb(getattr(source, "table", source), options)
        engine.__class__ = SpecialEngine
        return engine

    module.open_engine = open_engine
    monkeypatch.setitem(sys.modules, "special_engine", module)
    choice = EngineChoice(
        "special", "Special", "special_engine", tables="specialsql.", refused={"memory": "is not."}
    )
    with ENGINES.registered(choice):
        yield SpecialEngine


def test_a_new_engine_is_chosen_by_name_and_by_its_tables(special, table):
    assert isinstance(read_log(table, engine="special").engine, special)
    assert isinstance(read_log(Special(table)).engine, special)
    assert not isinstance(read_log(table).engine, special)


def test_a_new_engine_is_named_where_engines_are(special, table):
    with pytest.raises(BadOption, match="There are duckdb and spark and special"):
        read_log(table, engine="sparc")
    with pytest.raises(BadOption, match=r"^memory is not\.$"):
        read_log(table, engine="special", memory="1GB")
    with pytest.raises(BadOption) as error:
        read_log(Special(table), engine="duckdb")
    words = "A Special DataFrame is read by Special: leave out engine='duckdb'."
    assert str(error.value) == words


def test_engines_are_not_loaded_before_they_are_chosen():
    assert ENGINES.names == ("duckdb", "spark")
    for choice in ENGINES:
        assert choice.home.startswith("rankdrift.log.engines.")
