"""The night job: from a log that grows to propensities that are up to date.

    days --counts--> estimate --> diagnose --> judge --> drift --> report    a folder a run

Only days that are new or changed are counted. If nothing is new, nothing is made anew. A run that
was killed goes on where it was with the next one. One run at a time has the folder.
"""

from __future__ import annotations

import datetime
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import RUN_RECORD
from rankdrift.core.digests import KEY as DIGEST
from rankdrift.core.digests import digest
from rankdrift.core.errors import Remark
from rankdrift.core.files import cannot_write, remove_leftovers, write_text
from rankdrift.core.lineage import made_by
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.log.engines.engine import Day
from rankdrift.log.log import Log
from rankdrift.monitoring.days import DayFiles, count_appearances, count_days, digest_of
from rankdrift.monitoring.lock import Busy, alone_in
from rankdrift.monitoring.metrics import METRICS, metrics_text
from rankdrift.monitoring.record import (
    Outcome,
    Record,
    State,
    Step,
    began,
    bytes_digest,
    file_record,
    new_id,
    now,
    stamp,
)
from rankdrift.monitoring.results import (
    UNFINISHED,
    Finished,
    all_finished,
    finish,
    is_whole,
    latest_name,
    prune,
    read_finished,
    read_sealed,
    switch_latest,
)
from rankdrift.monitoring.steps import CURVE, STEPS, Done, Job, Night, Watch

LAST = "last-run.json"
_PROGRESS = ".progress.json"
_TOO_OLD = datetime.timedelta(days=1)  # a run that was killed before that begins anew
HARVEST, APPEARANCES = "harvest", "appearances"


def run_job(
    job: Job, open_log: Callable[[], Log], names: Sequence[str], root: Path, watch: Watch
) -> Record:
    """Bring the results in a folder up to date with a log.

    Parameters
    ----------
    job
        What is asked for.
    open_log
        Opens the log, when the folder is ours.
    names
        What the log is called, for the record.
    root
        The folder of all runs.
    watch
        Is told what happens.

    Returns
    -------
    Record
        Also in `last-run.json`, and beside the results as `run.json`.

    Raises
    ------
    RankdriftError
        What `read_log`, `harvest` and the others raise; the record says so too. `Busy` if another
        run has the folder, which then has no word of this one.
    """
    record = Record(new_id(), Outcome.RUNNING, stamp(now()), log=tuple(names))
    record = replace(record, settings={**job.made_of(), "run": _of_run(job)})
    who: dict[str, object] = {"run": record.id, "pid": record.pid, "host": record.host}
    with alone_in(root, who, job.wait, lambda words: watch.say("lock", words)):
        progress = _Progress.load(root / UNFINISHED)
        if progress:
            record = replace(record, id=progress.run, attempts=progress.attempts + 1)
            watch.say("resume", f"going on with {record.id}, which came to no result")
        return _Run(job, open_log, root, watch).go(record, progress)


def busy_record(job: Job, names: Sequence[str], error: Busy) -> Record:
    """Of a run that another one kept from beginning."""
    moment = stamp(now())
    settings = {**job.made_of(), "run": _of_run(job)}
    return Record(
        new_id(), Outcome.BUSY, moment, reason=str(error), ended=moment, seconds=0.0,
        log=tuple(names), settings=settings,
    )  # fmt: skip


@dataclass(frozen=True)
class _Progress:
    """What a run has done so far, kept beside its files: by it the next one goes on."""

    run: str
    attempts: int
    key: str | None = None
    steps: tuple[Step, ...] = ()

    @classmethod
    def load(cls, staging: Path) -> _Progress | None:
        """Of a run that did not end; None if there is none, or it is of another day."""
        plain = read_sealed(staging / _PROGRESS)
        if plain:
            steps = tuple(map(Step.from_dict, plain["steps"]))
            found = cls(plain["run"], plain["attempts"], plain["key"], steps)
            if now() - began(found.run) < _TOO_OLD:
                return found
        return None

    def save(self, staging: Path) -> None:
        plain = json.loads(json.dumps(asdict(self)))
        write_text(staging / _PROGRESS, json.dumps({**plain, DIGEST: digest(plain)}, indent=1))


@dataclass(frozen=True)
class _Run:
    """One attempt, with the folder to itself."""

    job: Job
    open_log: Callable[[], Log]
    root: Path
    watch: Watch

    @property
    def staging(self) -> Path:
        return self.root / UNFINISHED

    def go(self, record: Record, before: _Progress | None) -> Record:
        """To the end, whatever that is; the record of it is written first and last."""
        clock = time.monotonic()
        remarks: list[str] = []
        if not before:
            shutil.rmtree(self.staging, ignore_errors=True)
        try:
            self.staging.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(self.staging, error) from error
        remove_leftovers(self.root)
        remove_leftovers(self.staging)
        progress = before or _Progress(record.id, 1)
        replace(progress, attempts=record.attempts).save(self.staging)
        record = replace(record, latest=latest_name(self.root))
        record.save(self.root / LAST)

        def ended(found: Record) -> Record:
            found = replace(
                found, ended=stamp(now()), seconds=round(time.monotonic() - clock, 3),
                remarks=tuple(dict.fromkeys(remarks)),
            )  # fmt: skip
            return found

        state = [record]  # as far as it came, for the record of what goes wrong
        try:
            with _noted(remarks):
                found = self._through(state, progress, ended)
        except BaseException as error:
            outcome = self.watch.outcome_of(error)
            with suppress(Exception):  # what went wrong first is to be told
                stopped = outcome is Outcome.STOPPED
                reason = "Ctrl-C" if stopped else str(error) or type(error).__name__
                self._write(ended(replace(state[0], outcome=outcome, reason=reason)))
            raise
        if self.job.mlflow is not None:
            found = ended(replace(found, steps=(*found.steps, self._to_mlflow(found))))
        self._write(found)
        return found

    def _write(self, record: Record) -> None:
        """The record of a run that ended, and its metrics."""
        record.save(self.root / LAST)
        latest = latest_name(self.root)
        text = metrics_text(record, read_finished(self.root / latest) if latest else None)
        for path in (self.root / METRICS, *([Path(self.job.metrics)] if self.job.metrics else [])):
            write_text(path, text)

    def _to_mlflow(self, record: Record) -> Step:
        """Tell MLflow. That it cannot be reached undoes nothing of what is done, and is told."""
        from rankdrift.monitoring.mlflow_run import log_run

        assert record.results and self.job.mlflow is not None
        start, clock = stamp(now()), time.monotonic()
        state, reason = State.DONE, ""
        try:
            made, words = log_run(self.job.mlflow, self.root / record.results)
            state = State.DONE if made else State.UNCHANGED
        except Exception as error:  # of MLflow's many, and those of what it talks to
            state, words = State.FAILED, f"MLflow did not take the run: {error}"
            reason = words
        self.watch.say("mlflow", words, state=str(state))
        seconds = round(time.monotonic() - clock, 3)
        return Step("mlflow", state, words, start, seconds, reason=reason)

    def _through(
        self, state: list[Record], progress: _Progress, ended: Callable[[Record], Record]
    ) -> Record:
        log = self.open_log()
        fingerprint = log.engine.fingerprint()
        state[0] = record = replace(state[0], fingerprint=fingerprint)
        of_log = {"log": fingerprint} if fingerprint else {}
        with made_by(record.id, of_log):
            step, days = self._timed(HARVEST, lambda: self._count(log))
            state[0] = record = replace(record, days=days.days, steps=(step,))
            appearances = None
            if self.job.judge is not None and not self.job.judge.get("features"):
                step, appearances = self._timed(APPEARANCES, lambda: self._count_judged(log))
                state[0] = record = replace(record, steps=(*record.steps, step))
        digests = [days.digest, appearances.digest if appearances else None]
        if self.job.judge is not None and not appearances:
            digests.append(fingerprint or record.id)  # judged from the log itself
        key = digest_of([__version__, *digests, self.job.made_of()])
        state[0] = record = replace(record, key=key)
        known = next(
            (f for f in all_finished(self.root) if f.record.get("key") == key and is_whole(f)), None
        )
        if known:
            return self._nothing_new(record, known, ended)
        if progress.key != key:  # what was done is of other days, or otherwise
            for path in self.staging.iterdir():
                path.unlink()
            progress = replace(progress, steps=())
        progress = replace(progress, attempts=record.attempts, key=key)
        progress.save(self.staging)
        inputs = {"days": days.digest, **of_log}
        if appearances:
            inputs["appearances"] = appearances.digest
        night = Night(self.job, log, self.staging, days, appearances)
        for name, make in STEPS.items():
            step = self._made(name, make, night, progress, inputs, record.id)
            progress = replace(progress, steps=(*_others(progress.steps, name), step))
            progress.save(self.staging)
            state[0] = record = replace(record, steps=(*record.steps, step))
            inputs |= {file.file: file.content for file in step.files if file.content}
        worst = next((s for s in record.steps if s.outcome != Outcome.GOOD), None)
        record = replace(
            record,
            outcome=worst.outcome if worst else Outcome.GOOD,
            reason=worst.reason if worst else "",
            results=record.id,
        )
        # Whether `latest` comes to lead here is told by its record: a kill may come between.
        named = replace(record, latest=record.id if self._may_lead(record) else record.latest)
        ended(named).save(self.staging / RUN_RECORD)
        (self.staging / _PROGRESS).unlink()
        finish(self.staging, self.root / record.id)
        return ended(self._published(record))

    def _nothing_new(
        self, record: Record, known: Finished, ended: Callable[[Record], Record]
    ) -> Record:
        """The results of the run before stand; also where it was killed before it said so."""
        shutil.rmtree(self.staging, ignore_errors=True)
        steps = tuple(
            replace(step, state=State.UNCHANGED, seconds=0.0)
            for step in known.steps
            if step.name in STEPS
        )
        self.watch.say("unchanged", f"nothing is new since {known.folder.name}")
        record = replace(
            record,
            outcome=known.outcome,
            reason=str(known.record["reason"]),
            unchanged=True,
            results=known.folder.name,
            steps=(*record.steps, *steps),
        )
        return ended(self._published(record))

    def _published(self, record: Record) -> Record:
        """Have `latest` lead to the results if they are fit for it, and remove old ones."""
        assert record.results
        if self._may_lead(record) and latest_name(self.root) != record.results:
            switch_latest(self.root, record.results)
        latest = latest_name(self.root)
        pruned = prune(self.root, self.job.keep, (latest, record.results))
        return replace(record, latest=latest, pruned=tuple(pruned))

    def _may_lead(self, record: Record) -> bool:
        has_curve = any(file.file == CURVE for step in record.steps for file in step.files)
        return has_curve and (record.outcome == Outcome.GOOD or self.job.publish == "always")

    # -- steps -------------------------------------------------------------------------------------

    def _made(
        self,
        name: str,
        make: Callable[[Night], Done],
        night: Night,
        progress: _Progress,
        inputs: Mapping[str, str],
        run: str,
    ) -> Step:
        """A step, or what a run before that was killed had made of it."""
        before = next((step for step in progress.steps if step.name == name), None)
        if before and _as_written(before, self.staging):
            self.watch.say(name, f"done before: {before.words}", state=str(State.RESUMED))
            return replace(before, state=State.RESUMED)
        start, clock = stamp(now()), time.monotonic()
        with made_by(run, inputs):
            done = make(night)
        step = Step(
            name, done.state, done.words, start, round(time.monotonic() - clock, 3),
            tuple(file_record(self.staging / file) for file in done.files),
            done.numbers, done.outcome, done.reason,
        )  # fmt: skip
        self.watch.say(name, step.words, state=str(step.state), seconds=step.seconds)
        return step

    def _timed(self, name: str, count: Callable[[], DayFiles]) -> tuple[Step, DayFiles]:
        start, clock = stamp(now()), time.monotonic()
        found = count()
        numbers = {n: getattr(found, n) for n in ("counted", "unchanged", "kept", "left_out")}
        words = [f"{many(found.counted, 'day')} counted", f"{found.unchanged} unchanged"]
        if found.kept:
            words.append(f"{found.kept} kept that the log has no more")
        if found.left_out:
            words.append(f"{found.left_out} left out: counted in another way")
        seconds = round(time.monotonic() - clock, 3)
        step = Step(name, State.DONE, ", ".join(words), start, seconds, numbers=numbers)
        self.watch.say(name, step.words, state=str(step.state), seconds=seconds, **numbers)
        return step, found

    def _count(self, log: Log) -> DayFiles:
        with self.watch.reading(log) as progress:
            each = self._each(HARVEST, progress)
            return count_days(
                log, self.root, self.job.harvest, self.job.last, self.job.since, progress, each
            )

    def _count_judged(self, log: Log) -> DayFiles:
        with self.watch.reading(log) as progress:
            return count_appearances(log, self.root, progress, self._each(APPEARANCES, progress))

    def _each(self, step: str, progress: Any) -> Callable[[Day, Path, bool], None]:
        def each(day: Day, path: Path, skipped: bool) -> None:
            if hasattr(progress, "day_done"):
                progress.day_done(day.rows)
            if not skipped:
                name = day.day or "undated"
                self.watch.say(step, f"{name}: {many(day.rows, 'row')}", day=name, rows=day.rows)

        return each


def _as_written(step: Step, staging: Path) -> bool:
    """Whether the files of a step are there, as it left them."""
    with suppress(OSError):
        return all(bytes_digest(staging / f.file) == f.sha256 for f in step.files)
    return False


def _others(steps: tuple[Step, ...], name: str) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.name != name)


def _of_run(job: Job) -> dict[str, Any]:
    names = ("last", "since", "publish", "keep", "wait", "metrics", "mlflow")
    return {name: getattr(job, name) for name in names}


@contextmanager
def _noted(remarks: list[str]) -> Iterator[None]:
    """Remarks go to whoever shows them, and into the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Remark)
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
            if issubclass(category, Remark):
                remarks.append(str(message))
            show(message, category, *more, **named)

        warnings.showwarning = note
        yield
