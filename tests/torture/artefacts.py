"""Damaged and edited artefacts: each loads as what it was, or is refused."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
from torture import originals
from torture.apart import ended, forked
from torture.damage import damaged, edited
from torture.kinds import RIGHT, kind

from rankdrift import Counts, Propensities, make_report
from rankdrift.core.errors import RankdriftError
from rankdrift.experiments.experiment import Experiment
from rankdrift.harvesting.appearances import open_appearances
from rankdrift.judging.judgments import Judgments
from rankdrift.monitoring.metrics import metrics_text
from rankdrift.monitoring.record import Record
from rankdrift.monitoring.results import Finished, read_finished
from rankdrift.ranking import trying
from rankdrift.ranking.ranker import Ranker

TIMES = 2_000  # of each in an hour
NAMES = 0.1  # of files that are damaged, in how many the name of the digest is as well
NAME = re.compile(rb'(?<="diges)t(?=")|(?<=rankdrift_stam)p')
APART = 200  # of so many models one is tried in a process that is begun from nothing


def _page(path):
    return make_report([path]).html.replace("\r", "").split("This page")[0]


def _record(path):
    """Of a run, as the next one reads it."""
    found = read_finished(path.parent)
    if not found:
        raise RankdriftError("no record")
    return found


def _appearances(path):
    found = open_appearances(path)
    return found.metas, found.engine.query(f"FROM {found.engine.source} ORDER BY ALL")


def _same_record(a, b):
    return a.record == b.record


def _same_ranker(a, b):
    return {**vars(a), "booster": None} == {**vars(b), "booster": None}


def _plain(judgments):
    arrays = {name: value for name, value in vars(judgments).items() if hasattr(value, "tolist")}
    return {name: value.tolist() for name, value in arrays.items()}


def _use(loaded):
    """What an edited file holds is used as any other."""
    repr(loaded)
    if isinstance(loaded, Propensities):
        loaded.table()
        assert not np.isnan(loaded.weights(loaded.ranks)).any(), "a weight is not a number"
        loaded.save("again.json")
        assert Propensities.load("again.json").equals(Propensities.load("again.json"))
    elif isinstance(loaded, Ranker):
        scores = loaded.predict(np.zeros((3, len(loaded.features))))
        assert np.isfinite(scores).all(), "a score is not a number"
    elif isinstance(loaded, Experiment):
        assert loaded.assign("search 1", 20) is None or loaded.share > 0
        loaded.sql()
    elif isinstance(loaded, Finished):
        metrics_text(Record("a", loaded.outcome, ""), loaded)


# How each is loaded, and whether two of them are the same.
ARTEFACTS = {
    "few.parquet": ("counts", Counts.load, Counts.equals),
    "segments.parquet": ("counts by segment", Counts.load, Counts.equals),
    "p.json": ("propensities, JSON", Propensities.load, Propensities.equals),
    "p-full.json": ("propensities, JSON, full", Propensities.load, Propensities.equals),
    "p.parquet": ("propensities, Parquet", Propensities.load, Propensities.equals),
    "p-full.parquet": ("propensities, Parquet, full", Propensities.load, Propensities.equals),
    # Tables for other tools, without a digest: what can be read is taken.
    "p.csv": ("propensities, CSV", Propensities.load, None),
    "p-full.csv": ("propensities, CSV, full", Propensities.load, None),
    "comparison.json": ("comparison of rankers", _page, str.__eq__),
    "methods.json": ("comparison of methods", _page, str.__eq__),
    "diagnosis.json": ("diagnosis", _page, str.__eq__),
    "models.json": ("comparison of click models", _page, str.__eq__),
    "truth.json": ("truth", _page, str.__eq__),
    "judgments.parquet": ("judgments", Judgments.load, lambda a, b: _plain(a) == _plain(b)),
    "appearances.parquet": ("appearances", _appearances, tuple.__eq__),
    "experiment.json": ("experiment", Experiment.load, lambda a, b: a.to_dict() == b.to_dict()),
    "run.json": ("record of a run", _record, _same_record),
    "lightgbm.txt": ("LightGBM model with its record", Ranker.load, _same_ranker),
    "xgboost.json": ("XGBoost model with its record", Ranker.load, _same_ranker),
    "lightgbm.txt.meta.json": ("record of a LightGBM model", None, _same_ranker),
    "xgboost.json.meta.json": ("record of an XGBoost model", None, _same_ranker),
}  # fmt: skip


def _attempt(name, load, same):
    model = name.removesuffix(".meta.json")

    def loaded(folder):
        return (load or Ranker.load)(folder / model)

    @cache
    def whole():
        return loaded(originals.PLACE)

    def function(rng, folder):
        originals.into(folder, name)
        if model.startswith(("lightgbm", "xgboost")):
            originals.into(folder, model if name != model else f"{model}.meta.json")
        path = folder / name
        content = path.read_bytes()
        edit = path.suffix == ".json" and name != "xgboost.json" and rng.random() < 0.4
        if not edit and rng.random() < NAMES:
            content = NAME.sub(b"x", content)
        path.write_bytes(edited(rng, content) if edit else damaged(rng, content))
        found = loaded(folder)
        if edit or same is None:
            _use(found)
        else:
            assert same(found, whole()), f"{name} loads as something else"
        return RIGHT

    return function


for _name, (_called, _load, _same) in ARTEFACTS.items():
    _model = _name in ("lightgbm.txt", "xgboost.json")
    _also = "" if _model or not _name.endswith(".json") else ", or what somebody edited is checked"
    kind(f"it loads as what it was, or is refused{_also}", name=_called, times=TIMES,
         together=100)(_attempt(_name, _load, _same))  # fmt: skip


def _forked_run(command, *, input, timeout, **options):
    """As `subprocess.run` in ranking/trying.py, in a process forked from this one: the same code,
    without waiting for the library to be imported."""
    name = command[-1].split("'")[1]
    Path("model").write_bytes(input)

    def child():
        with open("model", encoding="utf-8") as sys.stdin:
            trying.main(name)

    code, _ = ended(forked(child, out="said", err="errors"), seconds=timeout)
    return subprocess.CompletedProcess(command, code, Path("said").read_bytes(), b"")


def _without_record(name):
    def function(rng, folder):
        originals.into(folder, name)
        path = folder / name
        content = path.read_bytes()
        path.write_bytes(_turned(rng, content) if rng.random() < 0.5 else damaged(rng, content))
        before = subprocess.run
        if rng.randrange(APART):
            trying.subprocess.run = _forked_run
        try:
            child = forked(lambda: _load_and_use(path), err="ended")
            code, _ = ended(child)
        finally:
            subprocess.run = before
        said = Path("ended").read_text()
        assert code in (0, 2), f"exit code {code}: {said}"
        return (RIGHT, "") if code == 0 else ("refused", said[:200])

    return function


def _load_and_use(path):
    try:
        _use(Ranker.load(path))
    except RankdriftError as error:
        os.write(2, str(error).encode())
        return 2


def _turned(rng, content):
    """A number or two of the model changed: still whole, as far as its format shows."""
    if content.startswith(b"{"):
        return edited(rng, content)
    for _ in range(rng.randint(1, 3)):
        digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
        at = rng.choice(digits)
        content = content[:at] + str(rng.randrange(10)).encode() + content[at + 1 :]
    return content


for _name, _called in (("lightgbm.txt", "LightGBM"), ("xgboost.json", "XGBoost")):
    kind("it is tried in another process: it scores by finite numbers, or is refused",
         name=f"{_called} model without its record", times=TIMES, together=50,
         memory=None)(_without_record(_name))  # fmt: skip
