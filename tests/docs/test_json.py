"""The keys that docs/reference/json.md names are those that the verbs print, no more, no less."""

import json
import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from rankdrift.cli import rankdrift
from rankdrift.simulate import market

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
LOG = ["--query", "keywords,category,aspects", "--segment", "platform", "--max-rank", "20"]


def documented() -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for verbs, key in re.findall(r"^\| ([a-z, -]+) \| `(\w+)` \|", PAGE.read_text(), re.M):
        for verb in verbs.split(", "):
            keys.setdefault(verb, set()).add(key)
    return keys


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    market(folder / "log", rows=40_000, queries=20, days=2, click_rate=0.3)
    return folder


def test_keys(folder, monkeypatch):
    monkeypatch.chdir(folder)
    log = "log/*.parquet"
    commands = {
        "inspect": [log, *LOG],
        "harvest": [log, *LOG, "-o", "counts.parquet"],
        "merge": ["counts.parquet", "-o", "all.parquet"],
        "counts": ["counts.parquet"],
        "estimate": ["counts.parquet", "-o", "propensities.json"],
        "diagnose": ["counts.parquet"],
        "compare": [log, *LOG, "--methods", "loglog,ctr"],
        "train": [log, *LOG, "--trees", "2", "-o", "model.txt"],
        "evaluate": [log, *LOG, "--model", "model.txt", "--ranks", "1,2", "--bootstrap", "10"],
        "report": ["counts.parquet", "-o", "report.html"],
        "export-training": [log, *LOG, "-o", "training.txt"],
        "sql": [log, *LOG, "--dialect", "duckdb", "--table", "shop"],
        "import-counts": ["result.parquet", "-o", "imported.parquet"],
        "simulate market": ["-o", "market", "--rows", "2000"],
        "simulate pairs": ["-o", "pairs.parquet", "--pairs", "1000"],
        "simulate like": ["counts.parquet", "--replays", "2"],
    }
    assert commands.keys() == documented().keys()
    for verb, words in commands.items():
        done = CliRunner().invoke(rankdrift, [*verb.split(), *words, "--json", "--quiet"])
        assert done.exit_code in (0, 1), f"{verb}: {done.output}"
        printed = json.loads(done.stdout)
        assert set(printed) == documented()[verb], verb
        if verb == "sql":
            with duckdb.connect() as database:
                database.execute(f"CREATE VIEW shop AS FROM '{log}'")
                database.execute(f"COPY ({printed['sql']}) TO 'result.parquet'")
