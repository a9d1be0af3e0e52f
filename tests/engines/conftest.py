import pytest
from engines.compare import Harness


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
    spark = pytest.importorskip("engines.spark_session", reason="needs the extra `spark`")
    return Harness("spark", spark.session())


@pytest.fixture
def duckdb_engine():
    return Harness("duckdb")
