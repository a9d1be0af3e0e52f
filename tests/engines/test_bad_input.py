"""Bad logs and bad options: an error that says what is wrong, or a plain result; never a crash."""

import gc
import gzip
import json
import os
import random
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.harness import random_log, write_parquet

from rankdrift.core.errors import BadLog, BadOption, MissingColumns, RankdriftError, Remark
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log
from rankdrift.log.probing import probe


@pytest.fixture
def log(tmp_path):
    return write_parquet(tmp_path / "log.parquet", random_log(1, searches=40))


def says(error, *facts):
    """The message has all these facts."""
    missing = [fact for fact in facts if fact not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


# -- columns: every engine -------------------------------------------------------------------------


def test_a_column_that_is_not_there(engine, log):
    with pytest.raises(MissingColumns) as error:
        engine.read(log, doc="zzz")
    says(error, "no column 'zzz'", "doc", "'query'", "'price'")


@pytest.mark.parametrize(
    ("asked", "meant"), [("quer", "query"), ("Query", "query"), ("PRICE", "price"), ("dco", "doc")]
)
def test_a_column_misspelt(engine, log, asked, meant):
    with pytest.raises(MissingColumns) as error:
        engine.read(log, same=asked)
    says(error, f"no column {asked!r}", "same", f"Did you mean {meant!r}?")


def test_columns_that_cannot_be_guessed(engine, tmp_path):
    rows = [{"a": "q", "b": "d", "position": 1, "clicked": 1}]
    types = {"position": pa.int8(), "clicked": pa.int8()}
    with pytest.raises(MissingColumns) as error:
        engine.read(write_parquet(tmp_path / "log.parquet", rows, **types))
    says(error, "'query'", "'doc'", "--query", "--doc", "'a', 'b', 'position', 'clicked'")


@pytest.mark.parametrize("name", ["rd_doc", "RD_Place"])
def test_a_column_named_like_one_of_ours(engine, tmp_path, name):
    rows = [{"query": "q", "results": "a,b", "picked": "a", name: "mine"}]
    with pytest.raises(BadLog) as error:
        engine.read(
            write_parquet(tmp_path / "log.parquet", rows), shown="results", clicked="picked"
        )
    says(error, repr(name), "Rename")


def test_no_rows(engine, tmp_path):
    path = write_parquet(tmp_path / "log.parquet", [])
    with pytest.raises(BadLog) as error:
        engine.harvest(path)
    says(error, "empty", "not a single row")


def test_ranks_that_start_at_zero(engine, tmp_path):
    rows = [{**row, "rank": row["rank"] - 1} for row in random_log(2)]
    zero = sum(row["rank"] == 0 for row in rows)
    path = write_parquet(tmp_path / "log.parquet", rows)
    with pytest.raises(BadLog) as error:
        engine.harvest(path)
    says(error, f"{zero:,} of {len(rows):,} rows", "rank 0", "--first-rank 0")
    assert engine.harvest(path, first_rank=0).funnel.dropped["low_rank"].rows == 0


def test_one_day_only(engine, tmp_path):
    rows = [{**row, "on": row["on"].replace(month=1, day=5)} for row in random_log(3)]
    counts = engine.harvest(write_parquet(tmp_path / "log.parquet", rows), day="on")
    assert counts.days == ("2024-01-05",) and counts.n_pairs > 0


def test_no_pair_at_two_ranks(engine, tmp_path):
    rows = [{**row, "rank": ord(row["doc"][-1]), "click": 1} for row in random_log(4)]
    counts = engine.harvest(write_parquet(tmp_path / "log.parquet", rows))
    assert counts.n_pairs == 0 and len(counts.pairs) == len(counts.rank_pairs) == 0
    assert counts.funnel.dropped["one_rank"].rows == len(rows)
    assert counts.by_rank.impressions.sum() == len(rows)


@pytest.mark.parametrize(
    "where",
    ["rank >", "(rank > 0", "rank > 0)", "nope = 1", "'abc'", "rank > 0;", "rank > 0 /*", "'",
     "count(*) > 1"],
)  # fmt: skip
def test_a_condition_that_is_not_one(engine, log, where):
    with pytest.raises(RankdriftError) as error:
        engine.harvest(log, where=where)
    says(error, "--where")


def test_a_condition_on_text_that_is_not_true_or_false(engine, log):
    with pytest.raises(RankdriftError) as error:
        engine.harvest(log, where="query")
    says(error, "--where")


@pytest.mark.parametrize("where", ["NULL", "1 = 0"])
def test_a_condition_that_nothing_meets(engine, log, where):
    counts = engine.harvest(log, where=where)
    assert counts.funnel.dropped["where"].rows == counts.funnel.rows > 0


def test_a_file_that_lacks_a_column(engine, tmp_path):
    rows = random_log(5, searches=5)
    write_parquet(tmp_path / "1.parquet", rows)
    less = [{name: value for name, value in row.items() if name != "rank"} for row in rows]
    write_parquet(tmp_path / "2.parquet", less)
    with pytest.raises(MissingColumns) as error:
        engine.harvest(tmp_path)
    says(error, "'rank'", "1 of 2", "2.parquet")


# -- options: no engine gets to see them -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"time_zone": "Europe/Berlni"}, ["'Europe/Berlni'", "Did you mean 'Europe/Berlin'?"]),
        ({"time_zone": "nowhere"}, ["'nowhere'", "UTC"]),
        ({"page": "rank", "rank": "rank"}, ["page_size", "missing"]),
        ({"page_size": 10}, ["page", "missing"]),
        ({"max_rank": 1}, ["max_rank", "2 to 100,000", "1"]),
        ({"max_rank": True}, ["max_rank", "True"]),
        ({"first_rank": -1}, ["first_rank", "-1"]),
        ({"page": "rank", "rank": "rank", "page_size": 0}, ["page_size", "0"]),
        ({"dedupe": True}, ["dedupe", "--search"]),
        ({"where": " "}, ["where is empty"]),
        ({"layout": "lang"}, ["'lang'", "Did you mean 'long'?"]),
        ({"layout": "long", "shown": "doc"}, ["shown", "list", "long"]),
        ({"layout": "long", "event": "doc"}, ["event", "events", "long"]),
        ({"layout": "events", "clicked": "doc"}, ["clicked", "list", "events"]),
        ({"engine": "duck"}, ["'duck'", "Did you mean 'duckdb'?"]),
        ({"format": "parket"}, ["'parket'", "Did you mean 'parquet'?"]),
        ({"table": "log"}, ["--table", "DuckDB"]),
        ({"memory": "lots"}, ["'lots'", "2GB"]),
        ({"threads": -1}, ["-1"]),
        ({"rank": ["rank", "price"]}, ["rank takes one column"]),
        ({"query": 5}, ["query takes the name of a column", "5"]),
    ],
    ids=str,
)
def test_options_that_make_no_sense(log, options, facts):
    with pytest.raises(BadOption) as error:
        read_log(log, **options)
    says(error, *facts)


@pytest.mark.parametrize(
    ("options", "fact"),
    [({"buckets": 48}, "power of two"), ({"buckets": 0}, "power of two"),
     ({"buckets": 8192}, "4096"), ({"max_shown": 1}, "2 to 16"), ({"max_shown": 17}, "2 to 16")],
    ids=str,
)  # fmt: skip
def test_sizes_that_make_no_sense(log, options, fact):
    with pytest.raises(BadOption, match=fact):
        harvest(read_log(log), **options)


def test_by_day_without_a_day(log, tmp_path):
    with pytest.raises(BadOption, match="--day"):
        harvest_by_day(read_log(log), tmp_path / "counts")


EXTENSION = ["--where needs DuckDB's extension {}, which is not installed", "INSTALL {}"]
STATEMENT = ["cannot be read with these columns and conditions", "Check --where"]


@pytest.mark.parametrize(
    ("where", "facts"),
    [
        ("st_point(1, 2) IS NULL", [fact.format("spatial") for fact in EXTENSION]),
        ("query IN (FROM 'https://localhost/x.csv')", [f.format("httpfs") for f in EXTENSION]),
        ("query IN (FROM 's3://bucket/x.csv')", [fact.format("httpfs") for fact in EXTENSION]),
        ("no_such(query)", [*STATEMENT, "no_such does not exist"]),
        ("no_such = 1", [*STATEMENT, "no_such"]),
        ("query = ", STATEMENT),
        ("json(query || '{') IS NULL", ["Malformed JSON", "or --where asks for what some row"]),
        ("1 // (rank - rank) = 1", ["Division by zero", "or --where asks for what some row"]),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "json", "duckdb"])
def test_conditions_that_cannot_be_worked_out(log, tmp_path, form, where, facts):
    path = tmp_path / f"log.{form}"
    if form == "duckdb":
        with duckdb.connect(str(path)) as con:
            con.execute(f"CREATE TABLE log AS FROM '{log}'")
        facts = [
            fact.replace("or --where asks for what some row", "Check --where") for fact in facts
        ]
    elif form == "json":
        duckdb.execute(f"COPY (FROM '{log}') TO '{path}'")
    with pytest.raises(BadLog) as error:
        harvest(read_log(path, where=where))
    says(error, *facts)


# -- options in a file -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("quer = 'a'", ["'quer'", "Did you mean 'query'?"]),
        ("nonsense = 1", ["'nonsense'", "Known are query, doc"]),
        ("session = 1", ["'session'"]),
        ("[log]\nrank = 'rank'", ["'log'"]),
        ("rank = = 5", ["not TOML", "line 1"]),
        ("\xff".encode("latin-1"), ["not TOML"]),
        ("where = true", ["where must be text", "True"]),
        ("time_zone = 5", ["time_zone must be text"]),
        ("layout = ['long']", ["layout must be text"]),
        ("format = 1", ["format must be text"]),
        ("memory = 5", ["memory must be text"]),
        ("max_rank = '10'", ["max_rank", "whole number", "'10'"]),
        ("max_rank = 10.0", ["max_rank", "whole number"]),
        ("rank = 5", ["rank takes the name of a column"]),
        ("query = [1]", ["query takes the name of a column"]),
        ("query = {a = 1}", ["query takes the name of a column"]),
        ("shown_events = 5", ["shown_events takes names of events"]),
        ("click_events = ['a', 1]", ["click_events takes names of events"]),
        ("dedupe = 'no'", ["dedupe must be true or false"]),
    ],
    ids=str,
)
def test_a_file_of_options_that_is_wrong(log, tmp_path, text, facts):
    config = tmp_path / "it's.toml"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadOption) as error:
        read_log(log, config=config)
    says(error, *facts)


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_file_of_options_that_cannot_be_read(log, tmp_path, name):
    with pytest.raises(BadOption, match="Cannot read the options"):
        read_log(log, config=tmp_path / name)


def test_options_given_win_over_those_in_the_file(log, tmp_path):
    config = tmp_path / "options.toml"
    config.write_text(
        "max_rank = 3\nday = 'on'\nsegment = ['device', 'price']\nwhere = \"device = 'web'\"\n"
    )
    read = read_log(log, config=config, max_rank=5, segment="device")
    assert (read.rules.max_rank, read.rules.where) == (5, "device = 'web'")
    assert (read.roles.day, read.roles.segment) == ("on", ("device",))


# -- files -----------------------------------------------------------------------------------------


def test_no_file(engine, tmp_path):
    with pytest.raises(BadLog) as error:
        engine.harvest(tmp_path / "log.parquet")
    says(error, "log.parquet")


def test_no_file_but_one_of_a_similar_name(log):
    with pytest.raises(BadLog) as error:
        read_log(log.with_name("logs.parquet"))
    says(error, "No file", "logs.parquet", "Did you mean 'log.parquet'?")
    with pytest.raises(BadLog, match="folder does not exist"):
        read_log(log.parent / "nowhere" / "log.parquet")


def test_an_empty_folder(engine, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "_SUCCESS").touch()
    with pytest.raises(BadLog) as error:
        engine.harvest(tmp_path / "logs")
    says(error, "logs")


def test_files_of_different_formats(log):
    log.with_name("more.csv").write_text("query,doc,rank,click\nq,d,1,1\n")
    with pytest.raises(BadLog) as error:
        read_log(log.parent)
    says(error, "different formats", "csv", "parquet", "more.csv", "log.parquet", "--format")
    assert harvest(read_log(log.parent / "*.parquet")).funnel.rows > 0


def test_a_file_of_unknown_format(log):
    """A name that does not tell is no matter where the file begins as one that we know."""
    named = log.rename(log.with_name("log.data"))
    whole = harvest(read_log(named))
    assert whole.funnel.rows > 0
    assert harvest(read_log(named, format="parquet")).equals(whole)
    named.write_bytes(b"\x00\x01 nothing that is known")
    with pytest.raises(BadLog) as error:
        read_log(named)
    says(error, "log.data", "--format")


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999])
def test_parquet_cut_short(engine, log, share):
    whole = log.read_bytes()
    log.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadLog) as error:
        engine.harvest(log)
    says(error, "log.parquet")


def test_one_of_many_files_cut_short(log):
    log.with_name("cut.parquet").write_bytes(log.read_bytes()[:-20])
    with pytest.raises(BadLog) as error:
        read_log(log.parent)
    says(error, "cut.parquet", "cut short")


def test_parquet_with_bits_flipped(log):
    """Whatever is read of a damaged file, nothing but our own errors comes of it."""
    rng = random.Random(6)
    whole = log.read_bytes()
    for _ in range(12):
        damaged = bytearray(whole)
        for place in rng.sample(range(len(whole)), 3):
            damaged[place] ^= 1 << rng.randrange(8)
        log.write_bytes(damaged)
        try:
            counts = harvest(read_log(log))
        except RankdriftError as error:
            assert str(error)
        else:
            counts.funnel.check()


@pytest.mark.parametrize("text", ["", "query,doc,rank,click\nq,d,1,1\n", "PAR1", "PAR1PAR1"])
def test_a_text_named_parquet(engine, tmp_path, text):
    (tmp_path / "log.parquet").write_text(text)
    with pytest.raises(BadLog) as error:
        engine.harvest(tmp_path / "log.parquet")
    says(error, "log.parquet")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", ""),
        ("log.csv", "\n\n"),
        ("log.csv", "query;doc\nq;d\n"),
        ("log.csv", "q,d,1,1\nq,d,2,0\n"),
        ("log.csv", "query,doc,rank,click\nq,d,1,1\nq,d,2,0,9,9\nq,d\n" * 9),
        ("log.csv", 'query,doc,rank,click\n"q,d,1,1\n' * 3),
        ("log.csv.gz", "query,doc,rank,click\nq,d,1,1\n"),
        ("log.csv.bz2", "\x00\x01\x02"),
        ("log.jsonl", ""),
        ("log.jsonl", "{"),
        ("log.jsonl", '{"query": "q"}\n{"query":\n'),
        ("log.jsonl", "[1, 2, 3]\n"),
        ("log.json", json.dumps([{"query": "q", "doc": "d", "rank": 1}] * 2, indent=1)[:-9]),
        ("log.duckdb", ""),
        ("log.duckdb", "not a database"),
    ],
)
def test_other_files_that_are_not_what_their_name_says(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(RankdriftError) as error:
        harvest(read_log(tmp_path / name))
    assert len(str(error.value)) > 20


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_no_json_is_named(tmp_path, packed):
    """By its file and its own number, with a way to look at it, though others are whole."""
    line = '{"query": "q", "doc": "d", "rank": 1, "click": 0}\n'
    (tmp_path / "a.jsonl").write_text(line * 9)
    name = "b.jsonl.gz" if packed else "b.jsonl"
    text = (line * 6 + line[:14] + "\n" + line * 2).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(BadLog) as error:
        harvest(read_log([tmp_path / "a.jsonl", tmp_path / name]))
    says(error, "Line 7 of", name, "sed -n 7p", "take it out")


def test_a_line_of_json_that_is_no_object(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"query": "q", "doc": "d", "rank": 1, "click": 0}\n3\n')
    with pytest.raises(BadLog, match=r"Not every line of '.*a.jsonl' is an object.*Take those"):
        read_log(tmp_path / "a.jsonl")


def test_a_csv_with_a_header_only(tmp_path):
    (tmp_path / "log.csv").write_text("query,doc,rank,click\n")
    with pytest.raises(BadLog, match="not a single row"):
        harvest(read_log(tmp_path / "log.csv"))


def test_a_table_that_is_not_there(tmp_path):
    with duckdb.connect(tmp_path / "logs.duckdb") as con:
        con.execute("CREATE TABLE impressions (query TEXT); CREATE TABLE other (x INT)")
    with pytest.raises(BadLog) as error:
        read_log(tmp_path / "logs.duckdb", table="impression")
    says(error, "'impression'", "Did you mean 'impressions'?", "other")
    with pytest.raises(BadLog, match=r"2 tables.*--table: impressions, other"):
        read_log(tmp_path / "logs.duckdb")


@pytest.mark.parametrize("source", [5, None, {"query": ["q"]}, [], [5], b"log.csv"], ids=repr)
def test_sources_that_are_none(source):
    with pytest.raises(BadOption):
        read_log(source)


def test_a_stream_that_can_be_read_only_once(log):
    stream = pa.parquet.ParquetFile(log).schema_arrow.empty_table().to_reader()
    with pytest.raises(RankdriftError):
        harvest(read_log(stream))


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_a_file_that_goes_away(tmp_path, name):
    path = tmp_path / name
    if name == "log.csv":
        path.write_text("query,doc,rank,click\nq,d,1,1\nq,d,2,0\n")
    else:
        write_parquet(path, random_log(7, searches=3))
    read = read_log(path)
    path.unlink()
    with pytest.raises(BadLog) as error:
        harvest(read)
    says(error, name)


@pytest.fixture
def unprivileged():
    """A folder of files, read without the rights of a superuser."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        write_parquet(Path(folder, "logs", "log.parquet"), random_log(8, searches=3))
        read_log(Path(folder, "logs"))  # what is imported on the way is imported now
        gc.collect()  # engines left over have folders of their own to remove
        superuser = os.geteuid() == 0
        if superuser:
            os.seteuid(65534)
        try:
            yield Path(folder, "logs")
        finally:
            if superuser:
                os.seteuid(0)


def test_a_folder_that_may_not_be_read(unprivileged):
    for mode in (0o000, 0o444):  # neither listed nor entered; listed, but not entered
        _as_owner(os.chmod, unprivileged, mode)
        with pytest.raises(RankdriftError) as error:
            read_log(unprivileged)
        says(error, "logs")


def test_a_folder_below_that_may_not_be_read(unprivileged):
    _as_owner(os.mkdir, unprivileged / "hidden", 0o000)
    with pytest.raises(BadLog) as error:
        read_log(unprivileged)
    says(error, "hidden", "Permission denied")


def test_a_file_that_may_not_be_read(unprivileged):
    _as_owner(os.chmod, unprivileged / "log.parquet", 0o000)
    with pytest.raises(BadLog) as error:
        read_log(unprivileged)
    says(error, "log.parquet")


def test_a_folder_that_may_not_be_written(unprivileged):
    log = read_log(unprivileged, day="on")
    _as_owner(os.chmod, unprivileged, 0o555)
    with pytest.raises(RankdriftError) as error:
        harvest_by_day(log, unprivileged / "counts")
    says(error, "counts")


def _as_owner(act, *arguments):
    user = os.geteuid()
    if os.getuid() == 0:
        os.seteuid(0)
    act(*arguments)
    if os.getuid() == 0:
        os.seteuid(user)


def test_bzip2_is_left_to_spark(tmp_path):
    import bz2

    path = tmp_path / "log.csv.bz2"
    path.write_bytes(bz2.compress(b"query,doc,rank,click\nq,d,1,1\nq,d,2,0\n"))
    with pytest.raises(BadLog) as error:
        read_log(path)
    says(error, "log.csv.bz2", "bunzip2", "--engine spark")


def test_what_is_odd_is_a_warning(tmp_path):
    rows = random_log(3, searches=40)
    path = write_parquet(tmp_path / "log.parquet", [*rows, *rows[:50]])
    with pytest.warns(Remark, match="repeat the search, doc and rank"):
        harvest(read_log(path, search="sid"))


@pytest.mark.parametrize(
    ("points", "sorted_by"),
    [
        ((0.9, 0.5, 0.5, 0.1), True),
        ((1, 2, 3, 9), True),  # the lower the better, such as a distance
        ((9, 8, 7, 6, 5, 4, 7), True),  # one of six is out of order: a paid result
        ((3, 1, 4, 1, 5), False),
        (("3", "1", None, "4", "1", "5"), False),
        ((7, 7, 7), True),  # tells nothing
    ],
)
def test_a_score_that_results_were_not_sorted_by_is_a_warning(points, sorted_by):
    rows = range(len(points))
    columns = {"search": [1] * len(points), "query": ["q"] * len(points), "doc": list(rows),
               "rank": [row + 1 for row in rows], "click": [0] * len(points),
               "score": list(points)}  # fmt: skip
    found = probe(read_log(pa.table(columns), score="score"))
    assert [text.split(":")[0] for text in found] == (
        [] if sorted_by else ["Results are not in the order of 'score'"]
    )


@pytest.mark.parametrize("column", [[1] * 4, [{"zzzz": 1}] * 4], ids=["of a column", "of a field"])
def test_a_name_that_is_no_text(tmp_path, column):
    path, name = tmp_path / "log.parquet", "zzzz" if column[0] == 1 else "s"
    shown = {"query": ["q"] * 4, "doc": ["d"] * 4, "rank": [1, 2, 1, 2], "click": [1, 0, 0, 1]}
    pq.write_table(pa.table({**shown, name: column}), path)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xf0zz"))
    with pytest.raises(BadLog, match=r"name of a column or field in .* is no text"):
        read_log(path)
