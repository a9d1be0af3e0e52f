"""The distributed engine: Spark reduces the log to counts where it lies; only those come home."""

import datetime
import hashlib
import re
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import duckdb

from rankdrift.columns import Column
from rankdrift.dialects import SPARK, Dialect
from rankdrift.engines import Day, Progress
from rankdrift.engines.spark_files import read_files
from rankdrift.errors import BadLog, BadOption, MissingExtra
from rankdrift.plan import Plan, Step
from rankdrift.sources import Files, find

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
