"""One small Spark session for all tests of a worker."""

from functools import cache

from pyspark.sql import SparkSession

from rankdrift.log.engines.java import java

SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "2g",
    # Logs here have a few hundred rows: compiling code for them would take all the time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "America/Los_Angeles",  # must make no difference
}


@cache
def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]")
    for name, value in SMALL.items():
        builder = builder.config(name, value)
    with java():
        return builder.getOrCreate()
