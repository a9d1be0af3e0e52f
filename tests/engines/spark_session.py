"""One small Spark session for all tests of a worker."""

from functools import cache

from pyspark.sql import SparkSession


@cache
def session() -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.memory", "2g")
        # Logs here have a few hundred rows: compiling code for them would take all the time.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.default.parallelism", "1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "America/Los_Angeles")  # must make no difference
        .getOrCreate()
    )
