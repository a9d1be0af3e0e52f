"""One small Spark session for all tests of a worker."""

from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from rankdrift.log.engines.java import java

# What every Java here needs: one core at a time, as other workers have the rest. That Spark's own
# classes are sound needs no proof.
PLAIN = (
    "-XX:ReservedCodeCacheSize=512m -XX:MetaspaceSize=512m -XX:+UseSerialGC -Xmn500m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# The quick compiler alone comes with room for so little code that Java spends its time on throwing
# code away and making it again; in a session of a hundred logs the thorough one pays.
QUICK = f"-XX:TieredStopAtLevel=1 {PLAIN}"
SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "2g",
    "spark.buffer.pageSize": "1m",  # else every sum and every sort begins by clearing 32 MB
    # Logs here have a few hundred rows: compiling code for them would take all the time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.sql.ui.retainedExecutions": "1",  # what pages of a UI would show, which is not there
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "America/Los_Angeles",  # must make no difference
}


@cache
def session(java_options: str = QUICK) -> SparkSession:
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**SMALL, "spark.driver.extraJavaOptions": java_options}.items():
        builder = builder.config(name, value)
    with java():
        return builder.getOrCreate()


def small(conf: Path) -> dict[str, str]:
    """A folder of settings, and what has every Spark of a process of its own start with them."""
    conf.mkdir()
    lines = (f"{name} {value}\n" for name, value in SMALL.items())
    (conf / "spark-defaults.conf").write_text("".join(lines))
    return {"SPARK_CONF_DIR": str(conf)}
