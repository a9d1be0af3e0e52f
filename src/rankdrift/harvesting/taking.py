"""What may be given where counts or a log are asked for: a value, or where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rankdrift.core.artefacts import looks_like_propensities
from rankdrift.core.errors import BadCounts, BadOption, RankdriftError
from rankdrift.counts.counts import Counts, merge
from rankdrift.counts.file import find_counts, read_metadata
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import Log, read_log

Given = Any
"""Counts, or a `Log`, or where either is: a path, a folder, a glob or several of them; of a log
also what `read_log` takes besides."""


def counts_files(source: Given) -> list[str]:
    """The files of counts that these names stand for; none if they are of a log, or no names."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, list | tuple) or not names:
        return []
    if not all(isinstance(name, str | os.PathLike) for name in names):
        return []
    try:
        paths = find_counts(names)
        read_metadata(paths[0])
        return paths
    except BadCounts:
        return []


def take_counts(
    source: Given, count: Callable[[Any], Counts] | None = None, *, trust: bool = False
) -> Counts:
    """The counts that were given, added up if they are many; a log is counted first.

    Parameters
    ----------
    source
        See `Given`.
    count
        How a log that was named is read and counted; by default as `read_log` and `harvest` do.
    trust
        Whether to count a log for trust, too.
    """
    if isinstance(source, Counts):
        return source
    if isinstance(source, Log):
        return harvest(source, trust=trust)
    paths = counts_files(source)
    if paths:
        return merge(paths)
    return count(source) if count else harvest(take_log(source), trust=trust)


def take(source: Given) -> Log | Counts:
    """What was given: the log, or its counts."""
    if isinstance(source, Counts):
        return source
    paths = counts_files(source)
    return merge(paths) if paths else take_log(source)


def take_log(source: Given) -> Log:
    """The log that was given; one that was named is read with columns guessed from their names."""
    if isinstance(source, Log):
        return source
    if isinstance(source, Counts) or counts_files(source):
        raise BadOption(
            "This needs the log itself, whose rows it looks at; these are counts. Give a path of "
            "the log, or what read_log gives."
        )
    try:
        return read_log(source)
    except RankdriftError as error:
        path = source if isinstance(source, str | os.PathLike) else ""
        if os.path.isfile(path) and looks_like_propensities(path):
            raise BadOption(
                f"{os.fspath(path)} is no log and no counts: it holds propensities, the result of "
                "an estimate. Read it with Propensities.load."
            ) from error
        raise
