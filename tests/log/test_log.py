import json

import pyarrow as pa
import pytest

from rankdrift.core.errors import BadOption, RankdriftError
from rankdrift.log.log import Log, read_log
from rankdrift.log.options import Rules


@pytest.fixture
def table():
    return pa.table({"q": ["a"], "item": ["d"], "pos": [1], "clicks": [1], "price": [9.5],
                     "day": ["2024-01-01"], "part": [1], "sid": ["s"]})  # fmt: skip


def test_a_log_knows_its_columns_and_what_was_guessed(table):
    log = read_log(table, same="price")
    assert isinstance(log, Log)
    assert log.roles.query == ("q",) and log.roles.same == ("price",)
    assert log.guessed == {
        "query": "q", "doc": "item", "rank": "pos", "click": "clicks", "day": "day",
    }  # fmt: skip
    assert log.rules == Rules()
    assert {name: c.kind for name, c in log.engine.columns.items()} == {
        "q": "text", "item": "text", "pos": "int", "clicks": "int", "price": "float",
        "day": "text", "part": "int", "sid": "text",
    }  # fmt: skip


def test_the_description_is_plain_and_tells_all_that_makes_a_pair(table):
    options = {
        "query": ["q", "part"], "same": "price", "where": "pos < 9", "max_rank": 40,
        "search": "sid", "dedupe": True, "time_zone": "Asia/Tokyo", "first_rank": 0,
    }  # fmt: skip
    told = read_log(table, **options).describe()
    assert json.loads(json.dumps(told)) == told
    assert told["layout"] == "long" and told["days"] == "the date in Asia/Tokyo"
    assert (told["query"], told["same"]) == (["q", "part"], ["price"])
    for name in ("where", "max_rank", "search", "dedupe", "time_zone", "first_rank"):
        assert told[name] == options[name]
    assert "shown_events" not in told
    plain = read_log(table).describe()
    for name, value in options.items():
        needs = {"search": "sid"} if name == "dedupe" else {}
        assert read_log(table, **{name: value, **needs}).describe() != plain, name


def test_events_are_described_with_their_names(table):
    told = read_log(table, event="part", search="sid", click_events="tap").describe()
    assert told["layout"] == "events"
    assert (told["shown_events"], told["click_events"]) == (["impression"], ["tap"])


def test_without_a_day_the_log_says_so(table):
    assert read_log(table, day="").days == "no day column: the whole log counts as one day"


@pytest.mark.parametrize(
    "options",
    [
        {"page": "part", "page_size": 10},
        {"page": "part", "page_size": 10, "first_page": 0},
        {"first_rank": 0},
        {"dedupe": True, "search": "sid"},
        {"dedupe": False},
        {"max_rank": 100_000},
        {"time_zone": "UTC"},
        {"shown_events": ["view", "impression"]},
        {"memory": "500MB", "threads": 1},
    ],
    ids=str,
)
def test_options_that_make_sense(table, options):
    log = read_log(table, **options)
    for name, value in options.items():
        if name in vars(log.rules):
            assert getattr(log.rules, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"page": "part"}, "page_size (results a page) is missing"),
        ({"page_size": 10}, "page (the page's column) is missing"),
        ({"page": "part", "page_size": 0}, "page_size must be a whole number from 1"),
        ({"max_rank": 100_001}, "max_rank must be a whole number from 2 to 100,000"),
        ({"first_page": -1}, "first_page must be a whole number from 0"),
        ({"dedupe": True}, "dedupe needs the column that tells searches apart"),
        ({"dedupe": 1, "search": "sid"}, "dedupe must be true or false, not 1"),
        ({"where": ""}, "where is empty"),
        ({"doc": ("item", "q")}, "doc takes one column, not ['item', 'q']"),
        ({"same": 5}, "same takes the name of a column, not 5"),
        ({"shown_events": 5}, "shown_events takes names of events, not 5"),
        ({"layout": "list of docs"}, "No layout 'list of docs'."),
        ({"engine": "sparc"}, "No engine 'sparc'. Did you mean 'spark'?"),
        ({"engine": "spark", "memory": "1GB"}, "memory is for DuckDB"),
        ({"engine": "spark", "threads": 2}, "threads is for DuckDB"),
        ({"threads": -1}, "threads must be a whole number from 1 to 1,024, not -1."),
        ({"threads": 0}, "threads must be a whole number from 1 to 1,024, not 0."),
        ({"threads": "2"}, "threads must be a whole number from 1 to 1,024, not '2'."),
    ],
    ids=str,
)
def test_options_that_do_not(table, options, words):
    with pytest.raises(BadOption) as error:
        read_log(table, **options)
    assert words in str(error.value)


def test_every_option_may_come_from_a_file(table, tmp_path):
    options = {
        "query": ["q", "price"], "doc": "item", "rank": "pos", "click": "clicks", "day": "day",
        "search": "sid", "page": "part", "page_size": 10, "first_page": 0, "same": "price",
        "segment": ["price"], "layout": "long", "where": "price > 1", "max_rank": 30,
        "first_rank": 0, "time_zone": "UTC", "dedupe": True, "memory": "1GB", "threads": 1,
        "engine": "duckdb", "shown_events": ["a"], "click_events": "b",
    }  # fmt: skip
    lines = (f"{name} = {json.dumps(value)}" for name, value in options.items())
    (tmp_path / "log.toml").write_text("\n".join(lines))
    from_file = read_log(table, config=tmp_path / "log.toml")
    given = read_log(table, **options)
    assert (from_file.roles, from_file.rules) == (given.roles, given.rules)
    assert from_file.guessed == {}


def test_an_option_given_wins_over_the_file_even_if_it_is_empty(table, tmp_path):
    (tmp_path / "log.toml").write_text('day = "day"\nsame = ["price"]\ndedupe = true\n')
    log = read_log(table, config=tmp_path / "log.toml", day="", same=[], dedupe=False)
    assert (log.roles.day, log.roles.same, log.rules.dedupe) == (None, (), False)


def test_an_error_is_a_value_error(table):
    with pytest.raises(ValueError, match="no column"):
        read_log(table, doc="none")
    assert issubclass(BadOption, RankdriftError)
