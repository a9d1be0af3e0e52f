"""Spark: the logs of the other attempts in one long session, and a worker that is killed."""

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import duckdb
from support.harness import Harness
from torture.kinds import RIGHT, kind
from torture.logs import any_form, strange_values


def _engine():
    from support.spark_session import PLAIN, session

    return Harness("spark", session(PLAIN))


@kind("logs of any form and with strange values, on Spark, in one session: the oracle's counts",
      times=200, together=200, least=10.0, seconds=300.0, memory=None, lasting=True)  # fmt: skip
def a_log_on_Spark(rng, folder):
    which = any_form if rng.random() < 0.6 else strange_values
    return which(rng, folder, _engine(), most=20)


LOG = """
    COPY (
        SELECT s AS search, 'q' || (s % 97) AS query, 'd' || ((r * 7 + s) % 30) AS doc, r AS rank,
            CAST((r * 13 + s * 7) % (4 + r) = 0 AS INTEGER) AS click, DATE '2024-05-01' AS day
        FROM range(1, 10000) AS a(s), range(1, 21) AS b(r)
    ) TO '{path}' (ROW_GROUP_SIZE 10000)"""


@kind("a cluster of two workers, one of which is killed half-way: the same counts, or an error",
      times=4, together=1, least=10.0, seconds=600.0, memory=None, lasting=True)  # fmt: skip
def a_Spark_worker_killed(rng, folder):
    import pyspark
    from pyspark.sql import SparkSession
    from support.spark_session import QUICK

    from rankdrift import harvest, read_log
    from rankdrift.log.engines.java import java

    path = folder / "log.parquet"
    with duckdb.connect() as database:
        database.execute(LOG.format(path=path))
    os.environ |= {
        "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    with java():
        spark = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.driver.extraJavaOptions", QUICK)
            .config("spark.executor.extraJavaOptions", QUICK).getOrCreate()
        )  # fmt: skip
    log = read_log(str(path), engine="spark", session=spark)
    begun = time.monotonic()
    expected = harvest(log)  # by both
    took = time.monotonic() - begun  # the second time takes half as long
    killed = []
    killer = threading.Timer(rng.uniform(0.05, 0.4) * took, lambda: killed.append(_kill_one(rng)))
    killer.start()
    try:
        counts = harvest(log)
    finally:
        killer.cancel()
        killer.join()
    assert counts.equals(expected), "other counts"
    assert harvest(read_log(str(path))).equals(expected), "other counts than DuckDB"
    return RIGHT, f"killed {killed}" if killed else "it had ended before"


def _kill_one(rng: random.Random):
    """Kill an executor of this process's cluster; its number."""
    mine = [pid for pid in _executors() if os.getsid(pid) == os.getsid(0)]
    chosen = rng.choice(sorted(mine))
    os.kill(chosen, signal.SIGKILL)
    return chosen


def _executors():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"CoarseGrainedExecutorBackend" in path.read_bytes():
                yield int(path.parent.name)
