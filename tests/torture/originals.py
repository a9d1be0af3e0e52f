"""What attempts begin with, made once, by a process of its own: logs, counts, propensities, models,
what each verb writes when nothing disturbs it, and how long that takes."""

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import duckdb
from support import curve_example
from support.counts_example import by_device, with_comparisons
from support.harness import TYPES, random_log, write_parquet
from support.log_formats import WRITERS, plain_log
from support.results_example import made
from torture.apart import ended, forked

from rankdrift.cli import main
from rankdrift.cli import run as run_here
from rankdrift.core.digests import sealed
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.experiments.designs import swap
from rankdrift.experiments.experiment import Experiment
from rankdrift.harvesting.appearances import appearances_by_day
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.log.log import read_log
from rankdrift.ranking.training import train

PLACE = Path()
FORMATS = "formats"  # below it, a folder a way to write each
LOG = ["log-0.parquet", "log-1.parquet", "log-2.parquet", "--day", "on"]
# The verbs that write, into `out`.
VERBS = {
    "inspect": ["inspect", *LOG, "--html", "out/page.html"],
    "harvest": ["harvest", *LOG, "-o", "out/counts.parquet"],
    "harvest by day": ["harvest", *LOG, "--by", "day", "-o", "out"],
    "merge": ["merge", "days", "-o", "out/all.parquet"],
    "estimate": ["estimate", "counts.parquet", "--full", "-o", "out/p.json"],
    "estimate to a table": ["estimate", "counts.parquet", "-o", "out/p.parquet"],
    "compare": ["compare", *LOG, "--methods", "loglog,direct", "-o", "out"],
    "train": ["train", *LOG, "--trees", "3", "--threads", "1", "-o", "out/m.txt"],
    "evaluate": ["evaluate", *LOG, "--model", "lightgbm.txt", "--ranks", "1,2", "--bootstrap",
                 "10", "-o", "out/c.json"],
    "judge": ["judge", *LOG, "--propensities", "p.json", "--pool", "-o", "out/j.parquet"],
    "judge for others": ["judge", *LOG, "--propensities", "p.json", "--pool", "-o", "out/j.parquet",
                         "--export", "trec=out/qrels.txt"],
    "judge by day": ["judge", *LOG, "--by", "day", "-o", "out"],
    "report": ["report", "counts.parquet", "p.json", "-o", "out/page.html"],
    "export-training": ["export-training", *LOG, "-o", "out/t.tsv"],
    "init": ["init", *LOG, "--force", "-o", "out/rankdrift.toml"],
    "experiment plan": ["experiment", "plan", "counts.parquet", "--ratio", "5,1", "-o",
                        "out/swap.json"],
    "sql for dbt": ["sql", LOG[0], "--day", "on", "--table", "shop", "--dialect", "duckdb", "--dbt",
                    "out"],
    "run": ["run", *LOG, "-o", "out"],
    "import-counts": ["import-counts", "result.parquet", "-o", "out/c.parquet"],
    "simulate market": ["simulate", "market", "-o", "out", "--rows", "2000"],
    "simulate pairs": ["simulate", "pairs", "-o", "out/pairs.parquet", "--pairs", "500"],
    "simulate world": ["simulate", "world", "valid", "-o", "out", "--pairs", "500"],
    "demo": ["demo", "--rows", "600", "-o", "out"],
    "reproduce": ["reproduce", "figures", "-o", "out"],
}  # fmt: skip
DATED = "run"  # whose files tell when they were made
LONG = {"demo": 3.0, "reproduce": 2.0}  # seconds in which those are stopped that take long


@dataclass(frozen=True)
class Undisturbed:
    """A verb's exit code, the seconds it takes, and the digest of each file it writes."""

    code: int
    seconds: float
    digests: dict


def prepare(folder):
    """Make all of it in `folder`, then import here what that took, so that nobody waits for it,
    nor reads files of Python for it."""
    global PLACE
    PLACE = Path(folder)
    code, _ = ended(forked(_make, out=os.devnull, err=PLACE / "errors.txt"), seconds=600)
    if code:
        raise SystemExit((PLACE / "errors.txt").read_text())
    for name in json.loads((PLACE / "modules.json").read_text()):
        try:
            import_module(name)
        except Exception:  # parts of packages that are made up as they run
            continue


@cache
def undisturbed():
    """{verb: Undisturbed}"""
    found = json.loads((PLACE / "verbs.json").read_text())
    return {name: Undisturbed(**one) for name, one in found.items()}


def into(folder, *names):
    """Copy them, times of change included; without names, all that verbs read."""
    for name in names or ("log-0.parquet", "log-1.parquet", "log-2.parquet", "days", "p.json",
                          "counts.parquet", "lightgbm.txt", "lightgbm.txt.meta.json",
                          "result.parquet"):  # fmt: skip
        path = PLACE / name
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / name)


def digests(folder):
    """{path: digest} of the files below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run(words):
    """The command line, in this process: the forked one of `forked`."""
    main([*words, "--quiet"])


def _make():
    os.chdir(PLACE)
    rng = random.Random(0)
    for i in range(3):
        rows = [
            {**row, "f_1": rng.gauss(0, 1), "f_2": rng.gauss(0, 1) - row["rank"]}
            for row in random_log(i, searches=80)
        ]
        write_parquet(f"log-{i}.parquet", rows, f_1=TYPES["price"], f_2=TYPES["price"])
    log = read_log(LOG[:3], day="on")
    harvest_by_day(log, "days")
    shutil.copy2(appearances_by_day(log, "appearances by day")[0], "appearances.parquet")
    curve_example.small_counts(800).save("counts.parquet")
    with_comparisons().save("few.parquet")
    by_device().save("segments.parquet")
    for full in (False, True):
        for ending in ("json", "csv", "parquet"):
            name = f"p-full.{ending}" if full else f"p.{ending}"
            curve_example.by_device().save(name, full=full)
    documents = {"comparison": made().rankers, "methods": made().methods,
                 "models": made().click_models, "diagnosis": diagnose(made().counts)}  # fmt: skip
    plains = {name: value.to_dict() for name, value in documents.items()}
    for name, plain in {**plains, "truth": made().truth}.items():
        plain = json.loads(json.dumps(plain))
        Path(f"{name}.json").write_text(json.dumps(sealed(plain)))
    for backend, name in (("lightgbm", "lightgbm.txt"), ("xgboost", "xgboost.json")):
        train(log, trees=3, fixed=True, threads=1, min_rows=5, backend=backend).save(name)
    run_here(["judge", *LOG, "--propensities", "p.json", "--pool", "-o", "judgments.parquet"])
    Experiment("swap", swap(1, 5), share=0.5).save("experiment.json")
    _result()
    with plain_log(40) as database:
        for name, writer in ((name, each) for name, some in WRITERS.items() for each in some):
            folder = PLACE / FORMATS / f"{name} {writer.__name__}"
            folder.mkdir(parents=True)
            writer(database, folder)
    Path("verbs.json").write_text(
        json.dumps({name: vars(_once(name, words)) for name, words in VERBS.items()})
    )
    found = set(sys.modules)
    for path in Path(".").glob("modules-*.json"):
        found |= set(json.loads(path.read_text()))
    Path("modules.json").write_text(json.dumps(sorted(found)))


def _result():
    """What a warehouse would answer to `rankdrift sql`."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        run_here(
            ["sql", LOG[0], "--day", "on", "--dialect", "duckdb", "--table", "shop", "--quiet"]
        )
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW shop AS FROM '{LOG[0]}'")
        database.execute(f"COPY ({said.getvalue().strip().rstrip(';')}) TO 'result.parquet'")


def _once(name, words):
    """Run it, and see what it writes. Pages tell the time, so they are not compared."""
    if name in LONG:
        return Undisturbed(0, LONG[name], {})
    begun = time.monotonic()
    child = forked(lambda: _noting(name, words), out=os.devnull, err="said.txt")
    code, _ = ended(child, seconds=120)
    took = time.monotonic() - begun
    if code not in (0, 1):
        raise RuntimeError(f"{name}: {Path('said.txt').read_text()}")
    found = {p: d for p, d in digests(PLACE / "out").items() if not p.endswith(".html")}
    if name == DATED:
        shutil.copy2(next((PLACE / "out").glob("2*/run.json")), PLACE / "run.json")
        found = {}
    shutil.rmtree("out")
    return Undisturbed(code, took, found)


def _noting(name, words):
    """Run it, and note what it imported."""
    try:
        run(words)
    finally:
        Path(f"modules-{name}.json").write_text(json.dumps(sorted(set(sys.modules))))
