"""A harvest as a job for Spark, which decides where it runs: the words are those of
`rankdrift harvest`.

    spark-submit --master yarn "$(python -m rankdrift.cli.spark_job)" \\
        's3a://shop/searches/' --query keywords -o counts.parquet

All of it is Spark's SQL: only the driver, which writes the counts, needs rankdrift. Run by Python
without words, it says where it is.
"""

import os
import sys
from collections.abc import Sequence


def submit(words: Sequence[str]) -> int:
    """Harvest in the session that the job was submitted to; gives back the exit code.

    Parameters
    ----------
    words
        Of `rankdrift harvest`, but for the engine.
    """
    from pyspark.sql import SparkSession

    from rankdrift.cli import run

    session = SparkSession.builder.appName("rankdrift harvest").getOrCreate()
    try:
        return run(["harvest", *words, "--engine", "spark"])
    finally:
        session.stop()


if __name__ == "__main__":
    # A script's folder comes first for imports, and this one has an `inspect` that is not Python's.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    if len(sys.argv) == 1:
        print(__file__)
    else:
        sys.exit(submit(sys.argv[1:]))
