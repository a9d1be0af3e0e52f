"""The steps of a run after its days are counted. Each reads files and writes files, never what a
step before has in memory: so a run that goes on after a kill writes what one without it would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from rankdrift.core.artefacts import DRIFT_FILE
from rankdrift.core.digests import sealed
from rankdrift.core.errors import NotConverged, NotIdentified, NoUsablePairs
from rankdrift.core.files import write_text
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import figure, many
from rankdrift.counts.counts import Counts, merge
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.estimation import estimate
from rankdrift.estimation.periods import estimate_by_period
from rankdrift.judging.judging import judge
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.monitoring.days import DayFiles
from rankdrift.monitoring.drifting import REFERENCE, drift
from rankdrift.monitoring.record import Outcome, State
from rankdrift.propensities.drift import Drift
from rankdrift.propensities.periods import Period, steadiness
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import says_nothing
from rankdrift.report.page.headline import typical_rank
from rankdrift.report.page.report import render_report
from rankdrift.report.results import Findings, gather

COUNTS = "counts.parquet"
CURVE = "propensities.json"
DIAGNOSIS = "diagnosis.json"
JUDGMENTS = "judgments.parquet"
PAGE = "report.html"
# Ranks whose propensities go into the record and the metrics, as far as there are estimates.
TOLD_RANKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200)
UNFIT = (NoUsablePairs, NotIdentified, NotConverged)
"""Errors that say that the data will not do, rather than that the request was wrong."""


class Watch(Protocol):
    """Whoever looks on."""

    def say(self, step: str, message: str, **fields: Any) -> None:
        """Take note of a line, and of its numbers by name."""

    def reading(self, log: Log) -> AbstractContextManager[Progress]:
        """While the log is read day by day."""

    def outcome_of(self, error: BaseException) -> Outcome:
        """How a run ends that ends by this."""


@dataclass(frozen=True)
class Job:
    """What is asked for, by verb: each mapping has the keywords of the function of that name.

    Parameters
    ----------
    last
        The curve is of so many days up to the newest; None: of all that were counted.
    since
        Of none before this day, ISO; `drift` says so itself.
    shown_below
        Only pairs shown below this rank at least once.
    judge
        What judging takes; None: not asked for.
    publish
        "fit": `latest` leads only to results of runs whose outcome is good; "always": to any that
        have a curve.
    keep
        How many folders of results stay.
    wait
        Seconds to wait for another run.
    metrics
        Where metrics go besides the folder of all runs.
    mlflow
        The experiment of MLflow to log the run to; None: not asked for.
    """

    last: int | None = None
    since: str | None = None
    harvest: Mapping[str, Any] = field(default_factory=dict)
    estimate: Mapping[str, Any] = field(default_factory=dict)
    shown_below: int | None = None
    save: Mapping[str, Any] = field(default_factory=dict)
    diagnose: Mapping[str, Any] = field(default_factory=dict)
    judge: Mapping[str, Any] | None = None
    drift: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    publish: Literal["fit", "always"] = "fit"
    keep: int = 30
    wait: float = 600.0
    metrics: str | None = None
    mlflow: str | None = None

    def made_of(self) -> dict[str, Any]:
        """All that the results depend on besides the days, as plain values."""
        names = "harvest estimate shown_below save diagnose judge drift report".split()
        plain: dict[str, Any] = json.loads(json.dumps({n: _plain(getattr(self, n)) for n in names}))
        return plain


@dataclass(frozen=True)
class Night:
    """A run once its days are counted: where its files go, and what they are made of."""

    job: Job
    log: Log
    folder: Path
    days: DayFiles
    appearances: DayFiles | None = None

    def has(self, name: str) -> bool:
        """Whether a step before wrote this file."""
        return (self.folder / name).exists()

    @cached_property
    def drift(self) -> Drift | None:
        """By the files of days, whichever step asks first; None while there are too few."""
        days = _days_of(self)
        if len(days) <= self.job.drift.get("reference", REFERENCE):
            return None
        return drift(days, **self.job.drift)


@dataclass(frozen=True)
class Done:
    """What a step did: in words, the names of its files, numbers, and what it makes of the run."""

    words: str
    files: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.GOOD
    reason: str = ""
    state: State = State.DONE


def add_up(night: Night) -> Done:
    """The counts of all days used, in one file."""
    counts = merge(list(night.days.paths))
    if night.job.shown_below is not None:
        counts = counts.restrict(shown_below=night.job.shown_below)
    counts.save(night.folder / COUNTS)
    numbers = {"pairs": counts.n_pairs, "clicks": counts.n_clicks, "days": len(counts.days)}
    words = f"{many(counts.n_pairs, 'pair')} and {many(counts.n_clicks, 'click')} of "
    return Done(words + counts.many_days(), (COUNTS,), numbers)


def estimate_curve(night: Night) -> Done:
    """The propensities, unless the counts bear none."""
    counts = Counts.load(night.folder / COUNTS)
    try:
        found = estimate(counts, **night.job.estimate)
    except UNFIT as error:
        return _unfit(error)
    found.save(night.folder / CURVE, **night.job.save)
    useless = says_nothing(found)
    rank = typical_rank(found.ranks.tolist(), found.reference)
    worth = found.ratio(found.reference, rank)
    words = (
        f"a click at rank {rank} is worth {figure(worth.value)} ({figure(worth.low)}–"
        f"{figure(worth.high)}) at rank {found.reference}"
    )
    numbers = {"method": found.method, "reference": found.reference, "curve": _told(found)}
    outcome = Outcome.UNFIT if useless else Outcome.GOOD
    return Done(useless or words, (CURVE,), numbers, outcome, useless)


def diagnose_counts(night: Night) -> Done:
    """Whether to trust them."""
    try:
        found = diagnose(Counts.load(night.folder / COUNTS), **night.job.diagnose)
    except UNFIT as error:
        return _unfit(error)
    plain = {**found.to_dict(), "settings": dict(night.job.diagnose)}
    text = json.dumps(sealed(json.loads(json.dumps(plain, allow_nan=False))), indent=2)
    write_text(night.folder / DIAGNOSIS, text + "\n")
    serious = [check for check in found.checks if check.verdict == Verdict.SERIOUS]
    reason = " ".join(f"{check.name}: {check.words}" for check in serious)
    checks = {check.name: str(check.verdict) for check in found.checks}
    numbers = {"verdict": found.verdict.value, "checks": checks}
    unfit = found.verdict == Verdict.SERIOUS
    outcome = Outcome.UNFIT if unfit else Outcome.GOOD
    words = ": ".join([found.verdict.value, *filter(None, [reason])])
    return Done(words, (DIAGNOSIS,), numbers, outcome, reason if unfit else "")


def judge_docs(night: Night) -> Done:
    """How relevant each doc is, if that is asked for and there is a curve."""
    if night.job.judge is None:
        return Done("not asked for", state=State.SKIPPED)
    if not night.has(CURVE):
        return Done("there is no curve to judge by", state=State.SKIPPED)
    source = night.log if night.appearances is None else list(map(str, night.appearances.paths))
    found = judge(source, Propensities.load(night.folder / CURVE), **night.job.judge)
    found.save(night.folder / JUDGMENTS)
    numbers = {"pairs": len(found), "queries": len(found.queries)}
    words = f"{many(len(found), 'pair')} of {many(len(found.queries), 'query', 'queries')} judged"
    return Done(words, (JUDGMENTS,), numbers)


def look_for_drift(night: Night) -> Done:
    """Whether the newest days tell another curve than all before them: of every day there is, not
    only those of the curve, as what is compared with must not move from night to night."""
    try:
        found = night.drift
    except UNFIT as error:
        return _unfit(error)
    if found is None:
        since = night.job.drift.get("since")
        after = f" since {since}" if since else ""
        days = many(len(_days_of(night)), "day")
        takes = night.job.drift.get("reference", REFERENCE) + 1
        return Done(f"{days} with usable pairs{after}; it takes {takes}", state=State.SKIPPED)
    text = json.dumps(sealed(json.loads(json.dumps(found.to_dict(), allow_nan=False))), indent=2)
    write_text(night.folder / DRIFT_FILE, text + "\n")
    told = [one for one in found.segments if one.alarm]
    reason = " ".join(f"{one.name}: {one.words}" if one.segment else one.words for one in told)
    began = min((one.newest[0] for one in told if one.newest), default="")
    if began:
        reason += f' If you know why, say so under [run]: since = "{began}".'
    outcome = Outcome.DRIFT if found.alarm else Outcome.GOOD
    numbers = {"alarm": found.alarm, "segments": {one.name: one.alarm for one in found.segments}}
    return Done(found.words, (DRIFT_FILE,), numbers, outcome, reason)


def _days_of(night: Night) -> list[str]:
    since = night.job.drift.get("since") or ""
    return [str(path) for path in night.days.known if path.stem >= since]


def make_page(night: Night) -> Done:
    """The page on all of it; of a curve that there is not, it says why."""
    names = [name for name in (CURVE, DIAGNOSIS, JUDGMENTS) if night.has(name)]
    days = [str(path) for path in night.days.paths] if night.job.shown_below is None else []
    counted = days if len(days) > 1 else [str(night.folder / COUNTS)]
    given = gather([*counted, *(str(night.folder / name) for name in names)])
    main = next(iter(given.curves.values()), None)
    missing = "" if main else "These counts bear no estimate."
    periods: tuple[Period, ...] = ()
    steady = None
    if main and given.parts:
        periods = estimate_by_period(given.parts, reference=main.reference)
        steady = steadiness(periods, typical_rank(main.ranks.tolist(), main.reference))
    changed = night.drift if main else None
    found = Findings(
        given,
        given.curves,
        given.diagnosis,
        estimated=missing,
        undiagnosed="" if given.diagnosis else "There are too few pairs for a diagnosis.",
        periods=periods,
        steadiness=None if changed and changed.tested else steady,
        drift=changed,
    )
    page = render_report(found, **night.job.report)
    page.save(night.folder / PAGE)
    return Done(PAGE, (PAGE,))


STEPS: Mapping[str, Callable[[Night], Done]] = {
    "counts": add_up,
    "estimate": estimate_curve,
    "diagnose": diagnose_counts,
    "judge": judge_docs,
    "drift": look_for_drift,
    "report": make_page,
}
"""The steps in order. What each is made of is all files of those before it."""


def _unfit(error: Exception) -> Done:
    words = str(error)
    return Done(words, outcome=Outcome.UNFIT, reason=words, state=State.FAILED)


def _told(p: Propensities) -> list[dict[str, Any]]:
    """The curve at some ranks, with its intervals."""
    low, high = p.interval()
    table = zip(p.ranks.tolist(), p.values.tolist(), low.tolist(), high.tolist(), strict=True)
    return [
        {"rank": rank, "propensity": value, "low": least, "high": most if most < 1e300 else None}
        for rank, value, least, most in table
        if rank in TOLD_RANKS
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value
