"""The kinds of attempts: a function each, which is given chance and an empty folder, and says what
became of it: `right` (the result is the right one) or `refused` (a RankdriftError, in words).
Anything else is a failure, and so is an attempt that ends its process or does not end."""

from collections.abc import Callable
from dataclasses import dataclass

RIGHT, REFUSED = "right", "refused"


@dataclass(frozen=True)
class Kind:
    """What is tried.

    times: how often in an hour. together: how many share a process, one after the other.
    least: minutes that a run must last for this to be part of it. seconds: what one may take.
    memory: bytes that its process may map, or None. lasting: whether it leaves processes behind
    that the next attempt uses, whose processor time counts as well.
    """

    name: str
    says: str
    function: Callable
    times: int
    together: int = 20
    least: float = 0.0
    seconds: float = 30.0
    memory: int | None = 8 << 30
    lasting: bool = False


KINDS: dict[str, Kind] = {}


def kind(says, *, name=None, **more):
    """Register a function as a kind of attempt, under its own name unless given."""

    def register(function):
        called = name or function.__name__.replace("_", " ")
        KINDS[called] = Kind(called, says, function, **more)
        return function

    return register
