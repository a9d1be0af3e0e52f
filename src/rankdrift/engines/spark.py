"""The distributed engine: Spark reduces the log to counts where it lies; only those come home."""

import warnings

from rankdrift.errors import MissingExtra

with warnings.catch_warnings():  # whether it likes our user's pandas, which we do not use
    warnings.simplefilter("ignore")
    try:
        from py4j.protocol import Py4JError
        from pyspark import SparkContext
        from pyspark.errors import (
            AnalysisException,
            IllegalArgumentException,
            ParseException,
            PySparkException,
        )
        from pyspark.sql import SparkSession
        from pyspark.sql import types as spark_types
    except ImportError as error:
        raise MissingExtra(
            f"Spark is not installed ({error}). Install it: pip install 'rankdrift[spark]'"
        ) from None
