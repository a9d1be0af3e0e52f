"""The package for dbt: its templates rendered and run on DuckDB, and by dbt itself where there is
one."""

import os
import shutil
import subprocess
import sys

import duckdb
import jinja2
import pytest
from support.log_formats import WRITERS, plain_log

from rankdrift import harvest, read_log
from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadOption
from rankdrift.core.files import write_text
from rankdrift.harvesting.dbt import dbt_package
from rankdrift.harvesting.warehouse import import_counts

pytestmark = pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
OPTIONS = {"format": "ga4", "where": "brand IS NULL OR brand <> '{{ this }} {% that %} {# #}'"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A database with a log in GA4's columns, and its counts."""
    folder = tmp_path_factory.mktemp("dbt")
    with plain_log(240) as con:
        paths = [str(path) for path in WRITERS["ga4"][0](con, folder)]
    with duckdb.connect(folder / "shop.duckdb") as con:
        con.execute(f'CREATE TABLE "events" AS SELECT * FROM read_parquet({paths})')
    return folder, harvest(read_log(paths, **OPTIONS))


def exported(database, folder):
    with duckdb.connect(database, read_only=True) as con:
        con.execute(f"COPY rankdrift_counts TO '{folder / 'result.parquet'}'")
    return import_counts(folder / "result.parquet")


def same(found, wanted):
    assert wanted.n_pairs
    for table, rows in wanted.tables.items():
        assert found.tables[table].equals(rows), table
    assert found.funnel.used == wanted.funnel.used and found.funnel.rows == wanted.funnel.rows


def test_its_models_rendered_give_the_counts(shop, tmp_path):
    folder, wanted = shop
    files = dbt_package("main.events", dialect="duckdb", **OPTIONS)
    asked = {}

    def rendered(path):
        named = {
            "ref": lambda name: asked[path].append(name) or f'"{name}"',
            "source": lambda package, name: '"events"',
            "var": lambda name, default=None: default,
            "return": lambda value: value,
            "config": lambda **options: "",
        }
        asked[path] = []
        text = files["macros/rankdrift_log.sql"] + files[path]
        return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(named)

    models = {path: rendered(path) for path in files if path.endswith(".sql") and "models" in path}
    tables = {path: path.removeprefix("models/").removesuffix(".sql") for path in models}
    with duckdb.connect(tmp_path / "copy.duckdb") as con:
        con.execute(f"ATTACH '{folder / 'shop.duckdb'}' AS shop (READ_ONLY)")
        con.execute("CREATE TABLE events AS FROM shop.events")
        made = set()
        for path, sql in models.items():  # in the order of the plan: what is asked for is there
            assert set(asked[path]) <= made
            con.execute(f"CREATE TABLE {tables[path]} AS {sql}")
            made.add(tables[path])
    same(exported(tmp_path / "copy.duckdb", tmp_path), wanted)


@pytest.mark.slow
@pytest.mark.skipif("RANKDRIFT_DBT" not in os.environ, reason="no Python that has dbt is named")
def test_dbt_runs_it(shop, tmp_path):
    folder, wanted = shop
    files = dbt_package("main.events", dialect="duckdb", **OPTIONS)
    # A model of one's own can be the log as well.
    files["models/mine.sql"] = "SELECT * FROM {{ source('rankdrift', 'log') }}"
    for name, text in files.items():
        write_text(tmp_path / "package" / name, text)
    output = f"{{type: duckdb, path: '{folder / 'shop.duckdb'}', threads: 1}}"
    (tmp_path / "profiles.yml").write_text(
        f"rankdrift:\n  target: dev\n  outputs:\n    dev: {output}\n"
    )
    run = [
        os.environ["RANKDRIFT_DBT"], "-c", "from dbt.cli.main import cli; cli()", "run",
        "--project-dir", tmp_path / "package", "--profiles-dir", tmp_path,
        "--vars", "{rankdrift_log: mine}",
    ]  # fmt: skip
    quiet = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "0", "PATH": os.environ["PATH"], "HOME": "/tmp"}
    done = subprocess.run(run, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    same(exported(folder / "shop.duckdb", tmp_path), wanted)


@pytest.mark.parametrize("dialect", [name for name, d in DIALECTS.items() if not d.opening])
def test_every_dialect_has_one(dialect):
    columns = {"query": "words", "doc": "doc", "rank": "rank", "click": "click"}
    files = dbt_package("a.b.log", dialect=dialect, **columns)
    assert {"dbt_project.yml", "models/rankdrift_counts.sql"} <= files.keys()
    text = files["models/sources.yml"]
    assert all(line in text for line in ('schema: "b"', 'database: "a"', 'identifier: "log"'))


def test_a_dialect_with_settings_has_none():
    with pytest.raises(BadOption, match="settings of a session"):
        dbt_package("log", dialect="clickhouse", query="q", doc="d", rank="r", click="c")


def test_the_command_writes_it_and_spares_what_is_there(tmp_path):
    words = ["sql", "--format", "ga4", "--dialect", "bigquery", "--table", "a.events_20240501"]
    command = [sys.executable, "-m", "rankdrift.cli", *words, "--dbt"]
    for _ in range(2):  # a package takes the place of the one before
        done = subprocess.run([*command, tmp_path / "p"], capture_output=True, text=True)
        assert done.returncode == 0 and "Next: dbt run --project-dir" in done.stderr, done.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    done = subprocess.run([*command, tmp_path / "mine"], capture_output=True, text=True)
    assert done.returncode == 2 and "files of its own" in done.stderr
    shutil.rmtree(tmp_path / "p" / "macros")  # as a kill in the middle may leave it
    done = subprocess.run([*command, tmp_path / "p"], capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "p" / "macros").is_dir(), done.stderr
