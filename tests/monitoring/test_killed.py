"""A run that is killed at any moment leaves `latest` whole, and the next one ends as if nothing had
been: with the same bytes, but for its name and the time. RANKDRIFT_KILLS asks for more kills."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from rankdrift.monitoring.record import RECORD_SCHEMA, bytes_digest, stored_document

KILLS = int(os.environ.get("RANKDRIFT_KILLS", "3"))
SEED = int(os.environ.get("RANKDRIFT_KILL_SEED", "1"))
FILES = (
    "counts.parquet", "propensities.json", "diagnosis.json", "judgments.parquet", "report.html",
)  # fmt: skip


def start(root):
    words = [sys.executable, "-m", "rankdrift.cli", "run", "log/*.parquet", "--judge", "-q"]
    words += ["-o", str(root)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(root):
    run = start(root)
    _, told = run.communicate(timeout=120)
    assert run.returncode == 0, told
    return (root / "latest").readlink().name


def check_whole(folder):
    record = json.loads((folder / "run.json").read_text())
    jsonschema.validate(record, RECORD_SCHEMA)
    written = {f["file"]: f["sha256"] for step in record["steps"] for f in step["files"]}
    assert set(written) == set(FILES)
    assert {name: bytes_digest(folder / name) for name in written} == written


def without_names(folder, name):
    """The bytes of a file but for the run, the digest that covers it, and the time."""
    path = folder / name
    text = path.read_bytes().replace(folder.name.encode(), b"RUN")
    digest = stored_document(path).get("digest")
    text = text.replace(digest.encode(), b"DIGEST") if digest else text
    return re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"TIME", text)


@pytest.mark.slow
def test_kills_at_any_moment(log, tmp_path):
    new_day = log / "world-2024-01-03.parquet"
    shutil.move(new_day, tmp_path)
    before = finished(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "other", symlinks=True)
    shutil.move(tmp_path / new_day.name, new_day)
    began = time.monotonic()
    calm = finished(tmp_path / "one")
    takes = time.monotonic() - began
    root, draw = tmp_path / "other", random.Random(SEED)
    for _ in range(KILLS):
        run = start(root)
        time.sleep(draw.uniform(0, takes))
        run.send_signal(signal.SIGKILL)
        run.communicate()
        check_whole(root / "latest")
        for folder in root.glob("20*"):
            check_whole(folder)
    name = finished(root)
    assert name not in (before, calm)
    check_whole(root / "latest")
    for file in FILES:
        there, here = tmp_path / "one" / calm, root / name
        assert without_names(here, file) == without_names(there, file), file
    assert {path.name for path in (root / name).iterdir()} == {*FILES, "run.json"}
    # What kills leave is tidied up.
    assert {path.name for path in root.iterdir()} == {
        ".lock", "appearances", "days", "latest", "last-run.json", "metrics.prom", before, name,
    }  # fmt: skip
