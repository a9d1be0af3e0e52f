"""Where a setting is from: what is typed, the environment, the file, and the schema of the file."""

import json
import tomllib
from pathlib import Path

import click
import jsonschema
import pytest

from rankdrift.cli.settings import as_typed, settable
from rankdrift.cli.settings_schema import settings_schema, verbs
from rankdrift.core.addresses import without_secrets
from rankdrift.core.errors import BadOption
from rankdrift.log.options import IN_FILES

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "rankdrift.schema.json"
VALUES = (True, 0, 3, -1, 2.5, "", "x", "day", [], ["a", "b"], [1, 2], [2.5], ["a", True], {"a": 1})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def came(done):
    """(table, name) -> (value, from, place) of all that is not a default."""
    return {
        (table, name): tuple(setting.values())
        for table, settings in done.json["settings"].items()
        for name, setting in settings.items()
        if setting["from"] != "default"
    }


def test_each_place_wins_over_those_below_it(folder, rankdrift, monkeypatch):
    (folder / "rankdrift.toml").write_text(
        "max_rank = 20\nwindow = '3d'\ndedupe = true\n"
        "[estimate]\ncurve = 'loglog'\nmax_rank = 25\nlevel = 0.8\n"
    )
    file = ("file", "rankdrift.toml")
    assert came(rankdrift("config", "--json")) == {
        ("log", "max_rank"): (20, *file),
        ("log", "window"): ("3d", *file),
        ("log", "dedupe"): (True, *file),
        ("estimate", "max_rank"): (25, *file),
        ("estimate", "curve"): ("loglog", *file),
        ("estimate", "level"): (0.8, *file),
    }
    monkeypatch.setenv("RANKDRIFT_MAX_RANK", "30")
    monkeypatch.setenv("RANKDRIFT_HARVEST_MAX_RANK", "40")
    monkeypatch.setenv("RANKDRIFT_DEDUPE", "no")
    monkeypatch.setenv("RANKDRIFT_ESTIMATE_LEVEL", "0.9")
    monkeypatch.setenv("RANKDRIFT_SEGMENT", "web, app")
    monkeypatch.setenv("RANKDRIFT_WINDOW", "")  # says nothing
    all_verbs = came(rankdrift("config", "--json"))
    from_all = ("environment", "RANKDRIFT_MAX_RANK")
    assert all_verbs["log", "max_rank"] == (30, *from_all)
    assert ("estimate", "max_rank") not in all_verbs  # as that of all verbs
    assert all_verbs["harvest", "max_rank"] == (40, "environment", "RANKDRIFT_HARVEST_MAX_RANK")
    assert all_verbs["log", "dedupe"] == (False, "environment", "RANKDRIFT_DEDUPE")
    assert all_verbs["log", "window"] == ("3d", *file)
    assert all_verbs["log", "segment"] == ("web, app", "environment", "RANKDRIFT_SEGMENT")
    typed = ("estimate", "x.parquet", "--level", "0.5", "--max-rank", "50", "--curve", "direct")
    one = came(rankdrift("config", *typed, "--json"))
    assert one["estimate", "level"] == (0.5, "command line", None)
    assert one["estimate", "max_rank"] == (50, "command line", None)
    assert one["estimate", "curve"] == ("direct", "command line", None)
    assert one["estimate", "dedupe"][1:] == ("environment", "RANKDRIFT_DEDUPE")


def test_a_run_obeys_the_environment_and_says_so(folder, rankdrift, log, monkeypatch):
    (folder / "rankdrift.toml").write_text("max_rank = 20\nsegment = 'platform'\n")
    monkeypatch.setenv("RANKDRIFT_MAX_RANK", "10")
    monkeypatch.setenv("RANKDRIFT_HARVEST_BUCKETS", "8")
    monkeypatch.setenv("RANKDRIFT_MAX_RNAK", "5")
    done = rankdrift("harvest", log, "-o", "c.parquet", "--json")
    said = done.err.splitlines()
    assert "From rankdrift.toml: segment (--config '' to go without)." in said
    assert "From the environment: RANKDRIFT_HARVEST_BUCKETS, RANKDRIFT_MAX_RANK." in said
    assert any("RANKDRIFT_MAX_RNAK is no setting" in line for line in said)
    assert (done.json["counts"]["max_rank"], done.json["counts"]["buckets"]) == (10, 8)
    kept = rankdrift("counts", "c.parquet", "--json").json["options"]
    assert kept["segment"] == ["platform"]
    found = rankdrift("diagnose", "c.parquet", "--curve", "loglog", "--json").json["settings"]
    assert found["curve"] == {"value": "loglog", "from": "command line", "place": None}
    assert found["max_rank"]["from"] == "environment"
    monkeypatch.setenv("RANKDRIFT_MAX_RANK", "ten")
    done = rankdrift("harvest", log, "-o", "c.parquet")
    assert done.code == 2 and "RANKDRIFT_MAX_RANK: 'ten' is not a valid integer" in done.err


def test_what_the_machine_may_use_leaves_no_trace(folder, rankdrift, log):
    """The same bytes with much memory and with little."""
    for name, few in (("a", ()), ("b", ("--memory", "300MB", "--threads", "1"))):
        (folder / name).mkdir()
        assert rankdrift("harvest", log, "-o", f"{name}/counts.parquet", *few).code == 0
    found = [(folder / name / "counts.parquet").read_bytes() for name in "ab"]
    assert found[0] == found[1]


def test_a_variable_may_name_the_file(folder, rankdrift, monkeypatch):
    (folder / "other.toml").write_text("max_rank = 7\n")
    monkeypatch.setenv("RANKDRIFT_CONFIG", "other.toml")
    assert came(rankdrift("config", "--json"))["log", "max_rank"] == (7, "file", "other.toml")
    assert came(rankdrift("config", "--json", "--config", "")) == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["estimat"], "No verb 'estimat'. Did you mean 'estimate'?"),
        (["estimate", "--levl", "3"], "No such option"),
        (["estimate", "--level", "x"], "'x' is not a valid float"),
    ],
)
def test_what_cannot_be_typed_is_refused(folder, rankdrift, words, told):
    done = rankdrift("config", *words)
    assert done.code == 2 and told in done.err and done.out == ""


def test_no_setting_carries_a_password(folder, rankdrift):
    done = rankdrift("config", "harvest", "--master", "spark://me:secret@host:7077", "--json")
    assert done.json["settings"]["harvest"]["master"]["value"] == "spark://host:7077"
    assert without_secrets("s3://b/k and C:/x?y") == "s3://b/k and C:/x?y"


# -- the schema ------------------------------------------------------------------------------------


def test_the_published_schema_is_that_of_the_options():
    kept = json.loads(SCHEMA.read_text())
    found = settings_schema()
    assert kept == found, "rankdrift config --schema -q > docs/reference/rankdrift.schema.json"
    jsonschema.Draft202012Validator.check_schema(found)
    assert set(found["properties"]) == set(IN_FILES) | {name[0] for name, _ in verbs()}


def test_the_schema_lets_through_what_the_reader_does():
    schema = settings_schema()
    checked = 0
    for name, command in verbs():
        ctx = click.Context(command, info_name=name[-1])
        for key, option in settable(command).items():
            for value in VALUES:
                try:
                    as_typed(ctx, option, value, "here")
                    reads = True
                except BadOption:
                    reads = False
                document = {key: value}
                for table in reversed(name):
                    document = {table: document}
                valid = jsonschema.Draft202012Validator(schema).is_valid(document)
                assert valid == reads, (name, key, value)
                checked += 1
    assert checked > 2000


@pytest.mark.parametrize("text", ["quary = 'q'", "[estimat]\n", "[estimate]\ncurv = 'x'"])
def test_the_schema_knows_no_other_name(text):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), settings_schema())


def test_variables_of_two_settings_never_share_a_name():
    from rankdrift.cli.settings import is_of_log, variable

    named = [variable(name) for name in IN_FILES]
    for words, command in verbs():
        named += [variable(*words, key) for key in settable(command)]
        assert all(key in IN_FILES for key, o in settable(command).items() if is_of_log(o))
    assert len(named) == len(set(named))
