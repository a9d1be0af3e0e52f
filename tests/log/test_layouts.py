"""Layouts are objects: a new one is one object, known wherever layouts are."""

from dataclasses import replace

import click
import pyarrow as pa
import pytest
import sqlglot
from click.testing import CliRunner
from rich.console import Console

from rankdrift import harvest, harvest_by_day, inspect, read_log, read_matrix, warehouse_sql
from rankdrift.cli.options import Sections, log_options
from rankdrift.core.errors import BadOption, MissingColumns
from rankdrift.log.columns import KINDS
from rankdrift.log.layouts import ENGINE_COLUMNS, LAYOUTS, LONG, Layout, find_layout, layout_of
from rankdrift.log.sql.plan import SHOWN_SOURCE, Step
from rankdrift.report.terminal.inspection import inspection_report


class Tabbed(Layout):
    """A row per result shown, if the column `tab` says that the tab of results was open."""

    def evidence(self, columns, taken):
        return len(columns) if "tab" in columns else 0

    def steps(self, p):
        tab = p.dialect.quote("tab")
        return [Step(SHOWN_SOURCE, f"SELECT * FROM {p.source}{p.on_day(f'{tab} = 1')}")]

    def outside(self, p):
        tab = p.dialect.quote("tab")
        hidden = f"{p.source}{p.on_day(f'{tab} <> 1')}"
        return f"SELECT 'other_event' AS reason, count(*) AS n, 0 AS clicks FROM {hidden}"


TABBED = Tabbed(**{**vars(LONG), "name": "tabbed", "row": "a row per result in a tab", "marks": ()})


@pytest.fixture
def tabbed():
    with LAYOUTS.registered(TABBED):
        yield TABBED


@pytest.fixture
def table():
    shown = [(q, d, r, c) for q, d, r, c in zip("ab" * 40, "xyzw" * 20, [1, 2, 3, 1, 2] * 16,
                                                [1, 0, 0, 1] * 20, strict=True)]  # fmt: skip
    names = ("query", "doc", "rank", "click", "f_a", "tab")
    rows = [(*row, i % 7, 1) for i, row in enumerate(shown)] + [("a", "x", 9, 0, 1, 0)] * 5
    return pa.table(
        {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    )


def test_a_new_layout_is_recognised_read_inspected_and_harvested(tabbed, table, tmp_path):
    log = read_log(table)
    assert log.layout is tabbed and log.describe()["layout"] == "tabbed"
    plain = read_log(table.filter(pa.compute.equal(table["tab"], 1)), layout="long")
    counts, expected = harvest(log), harvest(plain)
    assert counts.n_pairs and counts.tables["pairs"].equals(expected.tables["pairs"])
    assert counts.funnel.dropped["other_event"].rows == 5
    assert counts.funnel.rows == expected.funnel.rows + 5
    assert len(read_matrix(log).rank) == len(read_matrix(plain).rank)
    found = inspect(log)
    assert found.to_dict()["roles"]["layout"] == "tabbed"
    console = Console(width=100)
    with console.capture() as said:
        console.print(inspection_report(found))
    assert "Layout: tabbed, a row per result in a tab." in said.get()
    assert 'FROM "t" WHERE ("tab" = 1)' in warehouse_sql("t", dialect="duckdb", log=log)


def test_a_new_layout_is_read_day_by_day(tabbed, table, tmp_path):
    days = pa.array(["2024-03-01", "2024-03-02"] * (len(table) // 2) + ["2024-03-01"])
    files = harvest_by_day(read_log(table.append_column("day", days)), tmp_path)
    assert [path.stem for path in files] == ["2024-03-01", "2024-03-02"]


def test_a_new_layout_is_named_where_layouts_are(tabbed, table):
    with pytest.raises(BadOption) as error:
        read_log(table, layout="tabed")
    assert "Did you mean 'tabbed'? There are auto, long, list, events, tabbed." in str(error.value)

    @click.command(cls=Sections, first=["layout"])
    @log_options()
    def verb(**options):
        pass

    told = " ".join(CliRunner().invoke(verb, ["--help"]).output.split())
    assert "--layout LAYOUT long: a row per result shown; list: per search; events; tabbed:" in told
    with pytest.raises(MissingColumns, match="columns of a log of layout tabbed"):
        read_log(table.drop_columns(["rank"]))


def test_without_it_the_log_is_a_long_one(table):
    assert read_log(table).layout is LONG
    with pytest.raises(BadOption, match="There are auto, long, list, events"):
        read_log(table, layout="tabbed")


def test_a_layout_is_found_by_its_name():
    assert [find_layout(name) for name in (None, "auto")] == [None, None]
    assert [find_layout(layout.name) for layout in LAYOUTS] == list(LAYOUTS)
    assert LAYOUTS.names == ("long", "list", "events")


def test_of_roles_that_were_named_one_is_the_sign_of_a_layout():
    assert layout_of({"query": "q", "shown": "s"}).name == "list"
    assert layout_of({"query": "q", "event": "e"}).name == "events"
    assert layout_of({"query": "q", "clicked": "c"}) is LONG


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_columns_that_a_layout_adds_are_all_declared(layout):
    """What its steps call rd_… must be refused as a name of the log's own columns."""
    roles = {role: f"{role}_" for role in (*layout.needed, "day", "outcome")}
    sql = warehouse_sql("t", dialect="duckdb", **roles)
    named = {
        alias.alias
        for alias in sqlglot.parse_one(sql, read="duckdb").find_all(sqlglot.exp.Alias)
        if alias.alias.startswith("rd_")
    }
    assert named - {*ENGINE_COLUMNS, *layout.adds} == set()
    assert set(layout.adds) <= named | {"rd_doc", "rd_place"}


def test_only_lists_of_a_search_have_an_element_for_each_result():
    for kind in KINDS:
        assert not LONG.by_place(kind)
        assert replace(LONG, row_is_search=True).by_place(kind) == (kind == "list")
