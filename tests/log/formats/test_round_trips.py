"""A plain log, written as each format has it, gives the counts of the plain log."""

import threading
from functools import cache

import pytest
from support.log_formats import WRITERS, plain_log

from rankdrift import harvest, read_log
from rankdrift.log.formats import FORMATS

SEARCHES = 240
CASES = [(name, writer) for name, writers in WRITERS.items() for writer in writers]
# What a format leaves out of the plain log, and what it calls things.
PLAIN = {
    "meilisearch": {"user": ""},
    "yandex": {"day": "", "user": "", "words": "replace(query, 'words ', '')"},
    "clax": {"day": "", "user": "", "search": "", "words": "replace(query, 'words ', '')"},
    "baidu-ultr": {"day": "", "user": ""},
    "tiangong-st": {"day": "", "user": "", "words": "replace(query, 'words ', 'q')"},
    "mind": {"words": "doc", "clicks": "least(clicks, 1)", "time": ""},
    "open-bandit": {"words": "substr(doc, 2)", "user": "", "search": ""},
}


@pytest.fixture(scope="module")
def plain():
    with plain_log(SEARCHES) as con:
        yield con


@cache
def expected(con, name):
    options = {"words": "query", "clicks": "clicks"} | PLAIN.get(name, {})
    table = con.sql(
        f"SELECT search, {options.pop('words')} AS query, doc, rank, {options.pop('clicks')} AS"
        ' click, seen AS day, person AS "user", price FROM plain'
    ).to_arrow_table()
    return harvest(read_log(table, **options))


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
@pytest.mark.parametrize(("name", "writer"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_counts_are_those_of_the_plain_log(plain, name, writer, tmp_path):
    paths = [str(path) for path in writer(plain, tmp_path)]
    log = read_log(paths)
    assert log.format and log.format.name == name
    counts, wanted = harvest(log), expected(plain, name if name in PLAIN else "")
    assert wanted.n_pairs
    for table, rows in wanted.tables.items():
        assert counts.tables[table].equals(rows), table
    funnel = counts.funnel
    funnel.check()
    assert funnel.used == wanted.funnel.used and funnel.clicks == wanted.funnel.clicks
    # Every click is an event of its own where results are shown by another, and a page view is one.
    apart = funnel.dropped["click_event"].rows + funnel.dropped["other_event"].rows
    assert funnel.rows == wanted.funnel.rows + apart
    assert funnel.dropped["click_event"].rows == (wanted.funnel.clicks if log.roles.event else 0)


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
def test_a_log_longer_than_the_rows_looked_at_first_is_read_to_its_end(tmp_path):
    """Put in order as a whole, these sessions kept DuckDB 2.0 waiting for itself without an end."""
    with plain_log(searches=14_000, queries=1_000, docs="16 * q + r") as con:
        [path] = WRITERS["yandex"][0](con, tmp_path)
    log = read_log(path)
    stopped = threading.Timer(120, log.engine.connection.interrupt)
    stopped.start()
    try:
        assert harvest(log).n_pairs
    except KeyboardInterrupt:
        pytest.fail("It had not ended after two minutes.")
    finally:
        stopped.cancel()


def test_every_format_has_a_writer():
    assert set(WRITERS) == set(FORMATS.names)


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
def test_a_format_can_be_forced(plain, tmp_path):
    [path] = WRITERS["metarank"][0](plain, tmp_path)
    renamed = path.rename(tmp_path / "events.log")
    assert read_log(renamed).format.name == "metarank"
    assert harvest(read_log(renamed, format="metarank")).n_pairs
