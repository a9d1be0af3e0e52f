"""Matters of Spark alone: clusters, sessions, sources, and what reaches the driver."""

import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

import duckdb
from pyspark.errors import PySparkException
from support.spark_session import session, small

import rankdrift
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.log.engines.spark import _LOST, SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
PLAN = "spark.sql.maxPlanStringLength"


@pytest.fixture
def log(tmp_path):
    """Two files; enough repeats that some pairs become comparisons."""
    for day in (1, 2):
        duckdb.sql(f"""
            COPY (
                SELECT s AS search, 'q' || (s % 7) AS query, 'd' || ((r * 7 + s) % 30) AS doc,
                    r AS rank, CAST((r * 13 + s * 7 + {day}) % (4 + r) = 0 AS INTEGER) AS click,
                    DATE '2024-05-0{day}' AS day, s % 2 = 0 AS web
                FROM range(1, 120) AS a(s), range(1, 21) AS b(r)
            ) TO '{tmp_path}/{day}.parquet'""")
    return tmp_path


@contextmanager
def set_by_the_user(spark):
    """What we set for a while is then as it was."""
    before = spark.conf.get(PLAN)
    spark.conf.set(PLAN, "123456")
    try:
        yield
        assert spark.conf.get(PLAN) == "123456"
    finally:
        spark.conf.set(PLAN, before)


def test_what_is_lost_is_made_again(log, monkeypatch):
    """When a worker dies with the only copy of a step, all is counted anew, and nothing is left to
    one copy: the same counts. (Here the loss is made up; the next test kills workers.)"""
    run, tried = SparkEngine._run, []

    def lose(engine, plan, progress, checkpoints):
        tried.append(checkpoints)
        if checkpoints:
            raise PySparkException(f"[{_LOST}] Checkpoint block rdd_7_0 not found!")
        return run(engine, plan, progress, checkpoints)

    monkeypatch.setattr(SparkEngine, "_run", lose)
    found = rankdrift.harvest(
        rankdrift.read_log(str(log), engine="spark", session=session(), segment="web")
    )
    assert tried == [True, False]
    assert found.equals(rankdrift.harvest(rankdrift.read_log(str(log), segment="web")))


@pytest.mark.skipif(not os.environ.get("RANKDRIFT_ALL_CASES"), reason="`make torture` kills some")
def test_two_workers_that_are_killed_count_the_same(log):
    """A cluster of two worker processes: what one task keeps to itself would show, and what those
    have made that are killed is made again by those that take their place."""
    script = textwrap.dedent(f"""
        import os, signal, subprocess
        from pyspark.sql import SparkSession
        import rankdrift
        from rankdrift.log.engines.java import java
        from support.spark_session import SMALL

        builder = SparkSession.builder.master("local-cluster[2,1,1024]")
        quick = {{"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}}
        for name, value in {{**SMALL, "spark.sql.shuffle.partitions": "4", **quick}}.items():
            builder = builder.config(name, value)
        with java():
            spark = builder.getOrCreate()
        workers = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
        mine = f"CoarseGrainedExecutorBackend.*{{spark.sparkContext.applicationId}}"
        steps = []

        def kill(step, share):
            steps.append(step)
            if step == "candidates" and steps.count(step) == 1:
                assert workers().size() == 3  # and the driver
                found = subprocess.run(["pgrep", "-f", mine], capture_output=True, text=True)
                for process in found.stdout.split():
                    os.kill(int(process), signal.SIGKILL)

        log = rankdrift.read_log({str(log)!r}, engine="spark", session=spark, segment="web")
        rankdrift.harvest(log, progress=kill).save({str(log / "cluster.counts")!r})
        assert steps.count("tally") == 2, steps
        spark.stop()
    """)
    import pyspark

    env = os.environ | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        cwd=log,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Lost executor" in done.stderr
    files = [str(log / "1.parquet"), str(log / "2.parquet")]
    expected = rankdrift.harvest(rankdrift.read_log(files, segment="web"))
    assert len(expected.rank_pairs) and len(expected.pairs)
    assert rankdrift.Counts.load(log / "cluster.counts").equals(expected)


def test_frames_and_tables_are_one_and_views_of_the_user_survive(log):
    spark = session()
    frame = spark.read.parquet(str(log))
    frame.limit(3).createOrReplaceTempView("pairs")  # a name that the plan uses too
    frame.createOrReplaceTempView("shown")
    expected = rankdrift.harvest(rankdrift.read_log(str(log)))
    with set_by_the_user(spark):
        for source in (frame, "shown"):
            counts = rankdrift.harvest(rankdrift.read_log(source, session=spark, engine="spark"))
            assert counts.equals(expected)
    assert spark.table("pairs").count() == 3
    names = [row.viewName for row in spark.sql("SHOW VIEWS").collect()]
    assert "pairs" in names and not [name for name in names if name.startswith("rankdrift")]
    assert not spark._jsparkSession.sharedState().cacheManager().cachedData().nonEmpty()


def test_settings_of_the_user_survive_an_interrupt(log, monkeypatch):
    spark, meanwhile = session(), []
    harvested = rankdrift.read_log(str(log), engine="spark", session=spark)

    def interrupt(result):
        meanwhile.append(spark.conf.get(PLAN))
        raise KeyboardInterrupt

    monkeypatch.setattr("rankdrift.log.engines.spark._in_duckdb", interrupt)
    with set_by_the_user(spark), pytest.raises(KeyboardInterrupt):
        rankdrift.harvest(harvested)
    assert meanwhile == ["2000"]


def test_errors_are_ours(log):
    spark = session()
    with pytest.raises(BadLog, match="--where"):
        rankdrift.harvest(
            rankdrift.read_log(str(log), engine="spark", session=spark, where="nonesuch > 1")
        )
    with pytest.raises(BadOption, match="createDataFrame"):
        rankdrift.read_log(
            duckdb.sql("SELECT 1 AS a").to_arrow_table(), engine="spark", session=spark
        )
    with pytest.raises(BadOption, match="for DuckDB"):
        rankdrift.read_log(str(log), engine="spark", session=spark, memory="1GB")


def test_the_statement_for_a_warehouse_gives_the_same_counts(log, tmp_path_factory):
    result = tmp_path_factory.mktemp("result") / "result.csv"
    spark = session()
    spark.read.parquet(str(log)).createOrReplaceTempView("events")
    names = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "day": "day"}
    statement = rankdrift.warehouse_sql(
        "events", dialect="spark", search="search", types={"doc": "text"}, **names
    )
    with duckdb.connect() as con:
        con.register("counts", spark.sql(statement).toArrow())
        con.sql("FROM counts").write_csv(str(result))
    counts = rankdrift.import_counts(result)
    assert counts.equals(rankdrift.harvest(rankdrift.read_log(str(log), search="search", **names)))


@pytest.mark.slow
def test_a_harvest_can_be_submitted_as_a_job(log, tmp_path):
    """With Spark's own command, in a process of its own, as on a cluster."""
    import pyspark

    from rankdrift.log.engines.java import java

    where = [sys.executable, "-m", "rankdrift.cli.spark_job"]
    job = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    settings = small(tmp_path / "conf")
    with java():
        done = subprocess.run(
            [
                Path(pyspark.__file__).parent / "bin" / "spark-submit",
                *("--master", "local[1]", job),
                *(f"{log}/*.parquet", "--segment", "web", "-o", tmp_path / "made" / "counts"),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, **settings, "PYSPARK_PYTHON": sys.executable},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    here = rankdrift.harvest(rankdrift.read_log(f"{log}/*.parquet", segment="web"))
    assert rankdrift.Counts.load(tmp_path / "made" / "counts").equals(here)


def test_cells_whose_columns_differ_in_order_and_number(tmp_path):
    """Spark goes by the order of the first file; a log of several days has more than one."""
    (tmp_path / "1.csv").write_text("query,doc,rank,click\na,x,1,1\na,x,2,0\n")
    (tmp_path / "2.csv").write_text("click,new,rank,doc,query\n1,n,3,x,a\n0,n,1,y,a\n")
    columns = {"query": "query", "doc": "doc", "rank": "rank", "click": "click"}
    read = [
        rankdrift.harvest(rankdrift.read_log(str(tmp_path), **columns, **engine))
        for engine in ({"engine": "spark", "session": session()}, {})
    ]
    assert read[0].equals(read[1]) and read[0].n_pairs == 1


def test_times_that_spark_does_not_read_are_told(tmp_path):
    rows = "SELECT 'a' AS query, 'x' AS doc, 1 AS rank, 1 AS click, now()::TIMESTAMP_NS AS day"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 'log.parquet'}'")
    with pytest.raises(BadLog, match=r"to the nanosecond.*Write them to the microsecond"):
        rankdrift.read_log(str(tmp_path / "log.parquet"), engine="spark", session=session())


def test_what_lies_behind_an_error_is_told(tmp_path):
    rows = "SELECT 'a' AS query, 'x' AS doc, 1 AS rank, 1 AS click"
    path = tmp_path / "log.parquet"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (COMPRESSION brotli)")
    log = rankdrift.read_log(str(path), engine="spark", session=session())
    with pytest.raises(BadLog, match="BrotliCodec"):
        rankdrift.harvest(log)


def test_a_line_that_is_no_json_is_told_with_its_number(tmp_path):
    """Spark makes a row without a rank of it, which would be counted as such."""
    line = '{"query": "a", "doc": "x", "rank": 1, "click": 1}\n'
    (tmp_path / "1.json").write_text(line)
    (tmp_path / "a b.json").write_text(line * 2 + line[:20] + "\n" + line)
    with pytest.raises(BadLog, match=r"Line 3 of '.*a b\.json' is no JSON.*sed -n 3p"):
        rankdrift.read_log(str(tmp_path), engine="spark", session=session())
