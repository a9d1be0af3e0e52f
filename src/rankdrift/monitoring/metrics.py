"""A run in numbers, as Prometheus reads them from a text file: what a dashboard shows, and what an
alarm is set on."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankdrift.monitoring.record import Outcome, Record
from rankdrift.monitoring.results import Finished

METRICS = "metrics.prom"
_VERDICTS = ("good", "caution", "serious", "cannot tell")
Sample = tuple[Mapping[str, str], float]


def metrics_text(record: Record, latest: Finished | None) -> str:
    """The text exposition format: every metric is a gauge.

    Parameters
    ----------
    record
        Of the run that just ended.
    latest
        What `latest` leads to, if anything.
    """
    lines: list[str] = []
    for name, told, samples in _metrics(record, latest):
        found = [f"rankdrift_{name}{_labels(labels)} {float(value)!r}" for labels, value in samples]
        if found:
            lines += [f"# HELP rankdrift_{name} {told}", f"# TYPE rankdrift_{name} gauge", *found]
    return "\n".join(lines) + "\n"


def _metrics(
    record: Record, latest: Finished | None
) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    """(name, what it is, samples)"""
    plain = record.to_dict()
    ended = [o for o in Outcome if o is not Outcome.RUNNING]
    yield (
        "run_outcome",
        "1 of how the last run ended, 0 of every other way.",
        [({"outcome": str(o)}, float(o is record.outcome)) for o in ended],
    )
    yield "run_exit_code", "Exit code of the last run.", _known(record.exit_code)
    yield "run_timestamp_seconds", "When the last run ended.", _known(_seconds(record.ended))
    yield "run_duration_seconds", "How long it took.", _known(record.seconds)
    yield "run_unchanged", "1 if nothing was new.", [({}, float(record.unchanged))]
    yield (
        "run_step_seconds",
        "How long its steps took.",
        [({"step": step.name}, step.seconds) for step in record.steps],
    )
    states = ("counted", "unchanged", "kept", "left out")
    yield (
        "days",
        "Days by what became of them in the last run.",
        [({"state": s}, sum(day.state == s for day in record.days)) for s in states],
    )
    for name in ("rows", "pairs", "clicks"):
        yield name, f"{name.capitalize()} of the days used in the last run.", [({}, plain[name])]
    if latest is None:
        return
    ended_at = _seconds(latest.record["ended"])
    yield "latest_timestamp_seconds", "When what latest leads to was made.", _known(ended_at)
    found = {step.name: step.numbers for step in latest.steps}
    verdict = found.get("diagnose", {}).get("verdict")
    yield (
        "latest_verdict",
        "1 of what the diagnosis of latest found.",
        [({"verdict": v}, float(v == verdict)) for v in _VERDICTS] if verdict else [],
    )
    curve = found.get("estimate", {}).get("curve", [])
    for name, told in (
        ("propensity", "Propensity of a rank, by latest."),
        ("low", "Lower end of its interval."),
        ("high", "Upper end of its interval."),
    ):
        full = name if name == "propensity" else f"propensity_{name}"
        samples = [({"rank": str(at["rank"])}, at[name]) for at in curve if at[name] is not None]
        yield full, told, samples


def _known(value: float | None) -> list[Sample]:
    return [] if value is None else [({}, float(value))]


def _seconds(moment: Any) -> float | None:
    """A time of a record, as Prometheus counts it."""
    if not moment:
        return None
    return float(calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")))


def _labels(labels: Mapping[str, str]) -> str:
    each = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{each}}}" if each else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
