"""Which kind of file is this? What rankdrift writes is marked, and the marks are stated here."""

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from rankdrift.core.errors import BadOption, did_you_mean

# Keys of the metadata of Parquet files.
COUNTS_KEY = "rankdrift"
PROPENSITIES_KEY = "rankdrift_propensities"
JUDGMENTS_KEY = "rankdrift_judgments"
APPEARANCES_KEY = "rankdrift_stamp"
PARQUET_KEYS = (COUNTS_KEY, PROPENSITIES_KEY, JUDGMENTS_KEY)
# `kind` in JSON, and the first line of CSV.
PROPENSITIES_KIND = "rankdrift propensities"
EXPERIMENT_KIND = "rankdrift experiment"
BESIDE = ".meta.json"
"""How the file beside a model ends that has what is known about it."""
RUN_KIND = "rankdrift run"
RUN_RECORD, DRIFT_FILE = "run.json", "drift.json"
"""What a run writes about itself, and about how days differ, beside its results."""
CHART_ENDINGS = (".png", ".svg", ".html")
PROPENSITIES_COLUMNS = tuple(
    "segment rank propensity low high std_error pairs clicks supported".split()
)


def looks_like_propensities(path: str | os.PathLike[str]) -> bool:
    """Whether a text file begins as JSON or CSV of propensities; nothing more of it is read."""
    with open(path, "rb") as file:
        start = file.read(1000)
    return start.startswith(",".join(PROPENSITIES_COLUMNS).encode()) or (
        start.startswith(b"{") and json.dumps(PROPENSITIES_KIND).encode() in start
    )


def chart_ending(path: str | os.PathLike[str]) -> str:
    """How the name of a chart's file ends; BadOption if no chart is written so."""
    ending = Path(path).suffix.lower()
    if ending not in CHART_ENDINGS:
        raise BadOption(
            f"No chart can be written as {ending or 'a file without an ending'!r}."
            f"{did_you_mean(ending, CHART_ENDINGS)} Use {', '.join(CHART_ENDINGS)}."
        )
    return ending


class ResultKind(StrEnum):
    """What a result of rankdrift's is, as a file or in memory; in words, as messages name it."""

    COUNTS = "counts"
    PROPENSITIES = "propensities"
    METHODS = "comparison of methods"
    RANKERS = "comparison of rankers"
    CLICK_MODELS = "comparison of click models"
    DIAGNOSIS = "diagnosis"
    TRUTH = "truth"
    JUDGMENTS = "judgments"
    RANKER = "ranker"
    PRINTED_ESTIMATE = "what `estimate --json` prints"


RESULT_ENDINGS = (".parquet", ".json", ".csv")
# Keys of each kind of JSON that no kind above it has together; results in memory are such
# mappings too.
_KEYS: tuple[tuple[ResultKind, tuple[str, ...]], ...] = (
    (ResultKind.RANKER, ("backend", "features", "model")),
    (ResultKind.METHODS, ("table", "distances", "left_out", "level")),
    (ResultKind.RANKERS, ("models", "baselines", "table", "verdicts")),
    (ResultKind.CLICK_MODELS, ("models", "best", "reference", "words")),
    (ResultKind.DIAGNOSIS, ("verdict", "checks")),
    (ResultKind.TRUTH, ("truth",)),
    (ResultKind.TRUTH, ("propensities", "options")),
    (ResultKind.PRINTED_ESTIMATE, ("table", "summary")),
)


REPORTED = (
    ResultKind.METHODS,
    ResultKind.RANKERS,
    ResultKind.CLICK_MODELS,
    ResultKind.DIAGNOSIS,
)
"""Kinds that verbs print as JSON and `report` reads."""


def kind_of_json(document: object) -> ResultKind | None:
    """The kind of result that a document is, by its keys; None if it is none that we know."""
    if not isinstance(document, Mapping):
        return None
    if document.get("kind") == PROPENSITIES_KIND:
        return ResultKind.PROPENSITIES
    return next((kind for kind, keys in _KEYS if all(key in document for key in keys)), None)
