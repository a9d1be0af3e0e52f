"""The options of a log are stated once; what reads them agrees."""

from dataclasses import fields
from inspect import signature

import pytest

from rankdrift import read_log, warehouse_sql
from rankdrift.core.errors import BadOption
from rankdrift.log.columns import SEVERAL, Roles
from rankdrift.log.options import IN_FILES, ROLES, TAKES, Options, Rules

LONG = {"query": "q", "doc": "d", "rank": "r", "click": "c"}


def test_the_options_are_the_parameters_of_read_log():
    source, *parameters = signature(read_log).parameters.values()
    assert source.name == "source"
    declared = {field.name: field.type for field in fields(Options)}
    assert {p.name: p.annotation for p in parameters} == declared
    assert list(TAKES) == [p.name for p in parameters]
    assert all(p.default is None for p in parameters)


def test_read_log_passes_every_option_on(monkeypatch):
    class Seen(Exception):
        pass

    def stop(source, options):
        raise Seen({name: getattr(options, name) for name in TAKES})

    monkeypatch.setattr("rankdrift.log.log.open_log", stop)
    given = {name: f"<{name}>" for name in TAKES} | {
        "threads": 3,
        "outcome_at_least": 1.5,
        "config": None,
    }
    with pytest.raises(Seen) as seen:
        read_log("x", **given)
    assert seen.value.args == (given,)


def test_every_option_has_its_meaning_in_the_docstring():
    named = {
        name
        for line in (read_log.__doc__ or "").splitlines()
        if line.startswith("    ") and not line.startswith("     ")
        for name in line.strip().split(", ")
    }
    assert set(TAKES) <= named


def test_roles_and_rules_are_options():
    assert {f.name for f in fields(Roles)} == set(ROLES) <= set(TAKES)
    assert {f.name for f in fields(Rules)} <= set(TAKES)
    assert tuple(name for name, takes in TAKES.items() if takes == "columns") == SEVERAL


def test_all_but_the_file_itself_and_objects_may_stand_in_a_file(tmp_path):
    assert set(TAKES) - set(IN_FILES) == {"config", "session"}
    (tmp_path / "log.toml").write_text('doc = "d"\nmax_rank = 7\n')
    options = Options(max_rank=9, config=tmp_path / "log.toml").with_file()
    assert (options.doc, options.max_rank) == ("d", 9)


def test_a_warehouse_takes_the_same_options(tmp_path):
    (tmp_path / "log.toml").write_text('doc = "d"\nmax_rank = 7\n')
    given = {**LONG, "max_rank": 7}
    from_file = {name: value for name, value in LONG.items() if name != "doc"}
    from_file["config"] = tmp_path / "log.toml"
    assert warehouse_sql("t", dialect="trino", **given) == warehouse_sql(
        "t", dialect="trino", **from_file
    )
    with pytest.raises(BadOption, match=r"^No option 'quary'. Did you mean 'query'\?$"):
        warehouse_sql("t", dialect="trino", quary="q")


@pytest.mark.parametrize("least", [0, -1, float("inf"), float("nan"), "30", True])
def test_an_outcome_is_one_from_a_number_above_zero_on(least):
    with pytest.raises(BadOption, match="outcome_at_least must be a number greater than 0"):
        Options(outcome_at_least=least).check()


def test_the_least_outcome_goes_with_a_column(tmp_path):
    roles = Roles(query=("q",), outcome="dwell")
    (tmp_path / "log.toml").write_text("outcome_at_least = 30\n")
    rules = Options(config=tmp_path / "log.toml").with_file().rules(roles)
    assert rules.outcome_at_least == 30.0 and isinstance(rules.outcome_at_least, float)
    with pytest.raises(BadOption, match="--outcome"):
        Options(outcome_at_least=30.0).rules(Roles(query=("q",)))
    with pytest.raises(BadOption, match="greater than 0"):
        warehouse_sql("t", dialect="trino", **LONG, outcome="o", outcome_at_least=-1)
