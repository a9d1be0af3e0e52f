import os

import pytest
from support.harness import Harness


def pytest_collection_modifyitems(config, items):
    """Spark takes seconds where DuckDB takes milliseconds: of a test's many cases it runs the
    first, and all of them with RANKDRIFT_ALL_CASES=1."""
    if os.environ.get("RANKDRIFT_ALL_CASES"):
        return
    seen, kept, left = set(), [], []
    for item in items:
        callspec = getattr(item, "callspec", None)
        case = callspec and callspec.params.get("engine") == "spark" and item.originalname
        again = case and (item.path, case) in seen
        (left if again else kept).append(item)
        if case:
            seen.add((item.path, case))
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.fixture(
    params=[
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ]
)
def engine(request):
    """Every engine in turn: one suite, identical counts."""
    if request.param == "duckdb":
        return Harness("duckdb")
    spark = pytest.importorskip("support.spark_session", reason="needs the extra `spark`")
    return Harness("spark", spark.session())


@pytest.fixture
def duckdb_engine():
    return Harness("duckdb")
