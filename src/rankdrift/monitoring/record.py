"""What a run leaves in writing: its steps, times, rows, versions, and digests of what went in and
came out. `RECORD_SCHEMA` says what such a record may be, for programs that read it."""

from __future__ import annotations

import datetime
import glob
import hashlib
import json
import os
import platform
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import PARQUET_KEYS, RUN_KIND
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.digests import KEY as DIGEST
from rankdrift.core.digests import digest
from rankdrift.core.files import write_text
from rankdrift.core.lineage import KEY as LINEAGE
from rankdrift.core.version import __version__

FORMAT = 1
LIBRARIES = ("duckdb", "numpy", "scipy")
ID = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}Z-[0-9a-f]{6}")
"""What a run is called, and the folder of its results: when it began, and a draw."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_TIME_IN_ID = "%Y-%m-%dT%H%M%SZ"


class Outcome(StrEnum):
    """How a run ended; each has its exit code."""

    RUNNING = "running"
    """It has not ended, or was killed: then its process is gone, and the lock is free."""
    GOOD = "good"
    UNFIT = "unfit"
    """It ran, and the data will not do."""
    DRIFT = "drift"
    """It ran, and the curve is another than it was."""
    WRONG = "wrong"
    """The request could not be met as it was."""
    BUSY = "busy"
    """Another run had the folder for longer than this one was to wait."""
    STOPPED = "stopped"
    """By Ctrl-C."""
    BROKEN = "broken"
    """A defect of rankdrift's own."""


EXIT_CODES: Mapping[Outcome, int | None] = {
    Outcome.RUNNING: None,
    Outcome.GOOD: 0,
    Outcome.UNFIT: 1,
    Outcome.DRIFT: 1,
    Outcome.WRONG: 2,
    Outcome.BUSY: 2,
    Outcome.STOPPED: 130,
    Outcome.BROKEN: 70,
}


class State(StrEnum):
    """What became of a step."""

    DONE = "done"
    RESUMED = "resumed"
    """A run before that was killed had done it."""
    UNCHANGED = "unchanged"
    """Nothing is new, so an earlier run's results stand."""
    SKIPPED = "skipped"
    """Not asked for, or there is nothing to do it with."""
    FAILED = "failed"


@dataclass(frozen=True)
class File:
    """A file that a step wrote. `sha256` is of its bytes; `content` of what it says, whichever run
    wrote it, where it keeps that."""

    file: str
    bytes: int
    sha256: str
    content: str | None


@dataclass(frozen=True)
class Step:
    """A step of a run, in a sentence and in numbers. `outcome` is what it makes of the whole run,
    and `reason` why that is not good."""

    name: str
    state: State
    words: str
    started: str
    seconds: float
    files: tuple[File, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.GOOD
    reason: str = ""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Step:
        """Of what `asdict` gave."""
        files = tuple(File(**each) for each in plain["files"])
        kinds = {"state": State(plain["state"]), "outcome": Outcome(plain["outcome"])}
        return cls(**{**plain, **kinds, "files": files})


@dataclass(frozen=True)
class DayRecord:
    """A day of the log, or a window of days: its file of counts, and what is in it.

    state: counted now, unchanged, kept though the log has it no more, or left out because it was
    counted in another way. rows, pairs, clicks: of its counts. digest: of its file's content. used:
    whether the curve is of it."""

    day: str | None
    file: str
    state: str
    used: bool
    rows: int
    pairs: int
    clicks: int
    digest: str | None


@dataclass(frozen=True)
class Record:
    """One run. `results` is the folder of its results, of an earlier run if nothing is new;
    `latest` the one that `latest` leads to after it. `key` tells its inputs and settings from all
    others; `attempts` counts how often it was begun."""

    id: str
    outcome: Outcome
    started: str
    reason: str = ""
    unchanged: bool = False
    results: str | None = None
    latest: str | None = None
    ended: str | None = None
    seconds: float | None = None
    attempts: int = 1
    key: str | None = None
    log: tuple[str, ...] = ()
    fingerprint: str | None = None
    days: tuple[DayRecord, ...] = ()
    steps: tuple[Step, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    pruned: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    host: str = field(default_factory=platform.node)
    pid: int = field(default_factory=os.getpid)

    @property
    def exit_code(self) -> int | None:
        """For whoever started it; None while it runs."""
        return EXIT_CODES[self.outcome]

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; `RECORD_SCHEMA` describes them."""
        used = [day for day in self.days if day.used]
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        inputs = {name: plain.pop(name) for name in ("log", "fingerprint", "days")}
        told = {
            "kind": RUN_KIND,
            "format": FORMAT,
            "id": plain.pop("id"),
            "outcome": plain.pop("outcome"),
            "exit_code": self.exit_code,
            **plain,
            "rows": sum(day.rows for day in used),
            "pairs": sum(day.pairs for day in used),
            "clicks": sum(day.clicks for day in used),
            "inputs": inputs,
            "versions": versions(),
        }
        return {**told, DIGEST: digest(told)}

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")


def versions() -> dict[str, str]:
    """Of rankdrift, Python and what the numbers come from."""
    found = {"rankdrift": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # put on the path by hand
            found[name] = "unknown"
    return found


def now() -> datetime.datetime:
    """The time, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def stamp(moment: datetime.datetime) -> str:
    """A time as records have it."""
    return moment.strftime(_TIME)


def new_id() -> str:
    """A name for a run that begins now: names are in the order of time."""
    return f"{now().strftime(_TIME_IN_ID)}-{secrets.token_hex(3)}"


def began(run: str) -> datetime.datetime:
    """When the run of this name was first begun."""
    text = run.rpartition("-")[0]
    return datetime.datetime.strptime(text, _TIME_IN_ID).replace(tzinfo=datetime.UTC)


def file_record(path: Path) -> File:
    """What a record says of a file that was written."""
    content = content_digest(stored_document(path))
    return File(path.name, path.stat().st_size, bytes_digest(path), content)


def bytes_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stored_document(path: Path) -> Mapping[str, Any]:
    """The plain values of a file of rankdrift's; none of a page."""
    if path.suffix == ".json":
        found = json.loads(path.read_text("utf-8"))
        return found if isinstance(found, dict) else {}
    if path.suffix != ".parquet":
        return {}
    from rankdrift.core.database import connect

    name = DUCKDB.literal(glob.escape(str(path)))
    with connect() as con:
        stored = con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall()
    texts = [value for key, value in stored if bytes(key).decode() in PARQUET_KEYS]
    return dict(json.loads(texts[0])) if texts else {}


def content_digest(document: Mapping[str, Any]) -> str | None:
    """The digest of what a file says, whichever run wrote it."""
    made = document.get(LINEAGE) or {}
    return made.get("content") or document.get(DIGEST)


# -- the schema ------------------------------------------------------------------------------------

_TEXT: dict[str, Any] = {"type": "string"}
_MOMENT = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_NAME = {"type": "string", "pattern": f"^{ID.pattern}$"}
_CONTENT = {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def _maybe(kind: Mapping[str, Any]) -> dict[str, Any]:
    return {**kind, "type": [kind["type"], "null"]}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _said(description: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, **kind}


_FILE = _object(
    "A file that the step wrote.",
    file=_said("Its name in the folder of results.", _TEXT),
    bytes=_COUNT,
    sha256=_said("Of its bytes.", {"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    content=_said(
        "Digest of what it says, the same whichever run wrote it; null of a page.", _maybe(_CONTENT)
    ),
)
_STEP = _object(
    "A step, in the order of the run.",
    name=_TEXT,
    state={"enum": [str(state) for state in State]},
    words=_said("What was done, in a sentence.", _TEXT),
    started=_MOMENT,
    seconds=_SECONDS,
    files=_list(_FILE),
    numbers=_said("What it found, plain values by name.", {"type": "object"}),
    outcome={"enum": [str(o) for o in Outcome if o is not Outcome.RUNNING]},
    reason=_said("Why the outcome is not good.", _TEXT),
)
_DAY = _object(
    "A day of the log, or a window of days, by its first.",
    day=_said("null: rows without a readable day.", _maybe(_TEXT)),
    file=_said("Its counts, below the folder of all runs.", _TEXT),
    state={"enum": ["counted", "unchanged", "kept", "left out"]},
    used=_said("Whether the curve is of it.", {"type": "boolean"}),
    rows=_COUNT,
    pairs=_COUNT,
    clicks=_COUNT,
    digest=_said("Of the content of its counts.", _maybe(_CONTENT)),
)
RECORD_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Record of a run of rankdrift",
    **_object(
        "What `rankdrift run` writes as run.json beside its results and as last-run.json.",
        kind={"const": RUN_KIND},
        format={"const": FORMAT},
        id=_said("When the run began, in UTC, and a draw.", _NAME),
        outcome=_said(
            "good: 0. unfit, drift: 1. wrong, busy: 2. broken: 70. stopped: 130. running: not yet "
            "ended, or killed.",
            {"enum": [str(outcome) for outcome in Outcome]},
        ),
        exit_code=_said("null while it runs.", {"enum": [*dict.fromkeys(EXIT_CODES.values())]}),
        started=_MOMENT,
        reason=_said("Why the outcome is not good.", _TEXT),
        unchanged=_said(
            "true: nothing was new, and the results are of an earlier run.", {"type": "boolean"}
        ),
        results=_said("The folder of the results, if there are any.", _maybe(_NAME)),
        latest=_said("Where `latest` leads after this run.", _maybe(_NAME)),
        ended=_maybe(_MOMENT),
        seconds=_maybe(_SECONDS),
        attempts=_said(
            "How often it was begun: again after a kill or an error.", {**_COUNT, "minimum": 1}
        ),
        key=_said("Digest of all inputs and settings.", _maybe(_CONTENT)),
        steps=_list(_STEP),
        settings=_said("What was in force, by verb.", {"type": "object"}),
        pruned=_said("Folders of results that were removed.", _list(_NAME)),
        remarks=_list(_TEXT),
        host=_TEXT,
        pid=_COUNT,
        rows=_said("Rows of the days used.", _COUNT),
        pairs=_COUNT,
        clicks=_COUNT,
        inputs=_object(
            "What it read.",
            log=_said("As it was named, without passwords.", _list(_TEXT)),
            fingerprint=_said("Of all of the log, where it has one.", _maybe(_TEXT)),
            days=_list(_DAY),
        ),
        versions={
            "type": "object",
            "properties": dict.fromkeys(("rankdrift", "python", *LIBRARIES), _TEXT),
            "required": ["rankdrift", "python", *LIBRARIES],
            "additionalProperties": False,
        },
        digest=_said("Of all the rest: a record that was changed is none.", _CONTENT),
    ),
}
"""JSON Schema of a record."""
