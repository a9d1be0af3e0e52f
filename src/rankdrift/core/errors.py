"""What can go wrong, said so that a person knows what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class RankdriftError(ValueError):
    """Anything rankdrift refuses to do; the message says why and what to do next."""


class Remark(UserWarning):
    """Something odd that was noticed and did not stop the work."""


class MissingColumns(RankdriftError):
    """A column that was asked for is not in the log."""


class BadLog(RankdriftError):
    """The log cannot be read, or what it says cannot be right."""


class BadOption(RankdriftError):
    """An option has a value that makes no sense here."""


class WrongName(BadOption, TypeError):
    """A function has no argument of this name."""


class NoUsablePairs(RankdriftError):
    """No pair was shown at two ranks and clicked, so there is nothing to learn from."""


class NotIdentified(RankdriftError):
    """The data cannot tell some propensities apart."""


class NotConverged(RankdriftError):
    """The maximum of the likelihood was not reached; carries what there was.

    partial: log p or the parameters of the last step; path: the likelihood by step, where kept.
    """

    partial: Any = None
    path: tuple[float, ...] = ()


class MissingExtra(RankdriftError):
    """An optional dependency is not installed."""


class BadCounts(RankdriftError):
    """Counts that cannot be read, contradict themselves, or cannot be merged."""


class BadPropensities(RankdriftError):
    """Propensities that cannot be read, or that contradict themselves."""


class BadJudgments(RankdriftError):
    """Judgments that cannot be read, or that contradict themselves."""


class CannotWrite(RankdriftError):
    """A file cannot be written; the one that was there before is unchanged."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A hint at the nearest of `choices`, to append to a message; empty when none is near."""
    by_folded = {choice.casefold(): choice for choice in choices}
    near = get_close_matches(word.casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[near[0]]!r}?" if near else ""
