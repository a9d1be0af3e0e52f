"""How far Spark is within a step, asked of Spark now and then while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankdrift.log.engines.engine import Progress

EVERY = 0.5  # seconds


class Watch:
    """Tells `progress` what share of the tasks that Spark knows of by now is done.

    A step is several jobs, and Spark plans the next when one ends: so the share is of what is
    known, and never goes back.
    """

    def __init__(self, context: Any, group: str, progress: Progress, step: str) -> None:
        self._tracker = context.statusTracker()
        self._group, self._progress, self._step = group, progress, step
        self._before: set[int] = set()
        self._done = 0.0
        self._over = threading.Event()

    def begin(self, step: str) -> None:
        """What follows is of this step."""
        self._before = set(self._tracker.getJobIdsForGroup(self._group))
        self._step, self._done = step, 0.0

    def look(self) -> None:
        """Ask once, and tell."""
        done = tasks = 0
        for job in set(self._tracker.getJobIdsForGroup(self._group)) - self._before:
            known = self._tracker.getJobInfo(job)
            for stage in known.stageIds if known else ():
                found = self._tracker.getStageInfo(stage)
                if found:
                    done, tasks = done + found.numCompletedTasks, tasks + found.numTasks
        self._done = max(self._done, done / tasks if tasks else 0.0)
        self._progress(self._step, self._done)

    def run(self) -> None:
        """Until it is over."""
        while not self._over.wait(EVERY):
            try:
                self.look()
            except Exception:  # a session that ends; nobody waits for this
                return

    def end(self) -> None:
        """No more asking."""
        self._over.set()


@contextmanager
def watched(
    context: Any, group: str, progress: Progress | None, step: str
) -> Iterator[Watch | None]:
    """A watch over the jobs of a group, in a thread of its own, from this step on.

    Parameters
    ----------
    context
        Spark's; None where it cannot be asked, as with Spark Connect.
    group
        Of jobs.
    progress
        Who wants to know, if anybody.
    step
        The first.
    """
    if context is None or progress is None:
        yield None
        return
    watch = Watch(context, group, progress, step)
    thread = threading.Thread(target=watch.run, name="rankdrift progress", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join(timeout=2 * EVERY)
