"""rankdrift init: a log in, a file of settings out that says what was understood."""

import re
import tomllib

import duckdb
import jsonschema
import pytest
from support.log_formats import metarank, plain_log, ubi

from rankdrift.cli.init import OF_VERBS
from rankdrift.cli.settings_schema import settings_schema
from rankdrift.log.options import IN_FILES

WHERE = """query <> 'a "quoted" \\ word' AND price > 1"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_it_writes_is_what_every_verb_then_reads(folder, rankdrift, log):
    done = rankdrift("init", log, "--same", "price", "--where", WHERE, "--json")
    assert done.code in (0, 1), done.err
    text = (folder / "rankdrift.toml").read_text()
    found = tomllib.loads(text)
    tables: dict[str, object] = {name: {} for name in OF_VERBS} | {"run": {"log": [str(log)]}}
    assert found == {**done.json["settings"], **tables}
    assert found["where"] == WHERE and found["same"] == "price"
    assert done.json["guessed"].keys() <= found.keys()
    jsonschema.validate(found, settings_schema())
    assert max(map(len, text.splitlines())) <= 100
    changed = rankdrift("config", "--changed", "--json").json["settings"]["log"]
    assert {name: s["from"] for name, s in changed.items()} == dict.fromkeys(
        done.json["settings"], "file"
    )
    said = rankdrift("inspect", log)
    assert "guessed" not in said.out and said.err.startswith("From rankdrift.toml: query, doc")


def test_every_line_that_is_a_comment_may_be_made_a_setting(folder, rankdrift, log):
    rankdrift("init", log, "-q")
    text = (folder / "rankdrift.toml").read_text()
    opened = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
    assert set(IN_FILES) <= set(opened)
    jsonschema.validate(opened, settings_schema())


def test_a_file_that_is_there_stays_unless_told(folder, rankdrift, log):
    path = folder / "rankdrift.toml"
    path.write_text("max_rank = 9\n")
    done = rankdrift("init", log)
    assert done.code == 2 and "Replace it with --force" in done.err
    assert path.read_text() == "max_rank = 9\n"
    assert rankdrift("init", log, "--force", "-q").code in (0, 1)
    assert tomllib.loads(path.read_text())["max_rank"] == 9  # it was in force
    assert rankdrift("init", log, "-o", "other.toml", "--config", "", "-q").code in (0, 1)
    assert "max_rank" not in tomllib.loads((folder / "other.toml").read_text())
    assert not list(folder.glob(".*"))  # nothing half written


def test_odd_names_of_columns_survive(folder, rankdrift):
    duckdb.sql(
        """COPY (SELECT 'q' AS "a ""b"" \\ ü", r AS doc, r % 9 + 1 AS rank, r % 4 = 0 AS click
        FROM range(400) t(r)) TO 'odd.parquet'"""
    )
    rankdrift("init", "odd.parquet", "--query", 'a "b" \\ ü', "-q")
    assert tomllib.loads((folder / "rankdrift.toml").read_text())["query"] == 'a "b" \\ ü'
    assert rankdrift("inspect", "odd.parquet", "-q").code in (0, 1)


def test_a_log_that_cannot_be_read_leaves_no_file(folder, rankdrift):
    (folder / "x.csv").write_text("a,b\n1,2\n")
    done = rankdrift("init", "x.csv")
    assert done.code == 2 and not (folder / "rankdrift.toml").exists()


@pytest.mark.parametrize("given", [(), ("--format", "ubi")])
def test_of_a_known_format_the_columns_are_comments(folder, rankdrift, given):
    paths = ubi(plain_log(), folder)
    done = rankdrift("init", *paths, *given, "--segment", "application", "--json")
    assert done.code == 0, done.err
    text = (folder / "rankdrift.toml").read_text()
    found = {k: v for k, v in tomllib.loads(text).items() if k not in OF_VERBS}
    assert found == done.json["settings"] == {"format": "ubi", "segment": "application"}
    told = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
    jsonschema.validate(told, settings_schema())
    assert told["query"] == ["query"] and told["day"] == "timestamp" and told["layout"] == "events"
    with_file, without = (
        rankdrift("inspect", *paths, "--segment", "application", *config, "--json").json
        for config in ((), ("--config", ""))
    )
    assert with_file["roles"] == without["roles"]


def test_beside_settings_of_one_format_another_may_be_asked_for(folder, rankdrift):
    rankdrift("init", *ubi(plain_log(), folder), "-q")
    for name in ("ga4", "mind"):  # whose days, and whose clicks, are in other columns
        table = ("sql", "--dialect", "duckdb", "--table", "t", "--format", name, "--json")
        here, alone = (rankdrift(*table, *config).json for config in ((), ("--config", "")))
        assert here == alone
    (folder / "other").mkdir()
    (rankings,) = metarank(plain_log(), folder / "other")
    assert rankdrift("inspect", rankings, "--format", "metarank").code == 0
