"""Which run made a file, and of what: said once, and every file that is written then says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

KEY = "lineage"
"""Under which a document keeps it."""


@dataclass(frozen=True)
class Lineage:
    """A run, and the digests of what it makes its next files of, by name."""

    run: str
    inputs: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """As plain values for JSON."""
        return {"run": self.run, "inputs": dict(self.inputs)}


_now: ContextVar[Lineage | None] = ContextVar("lineage", default=None)


@contextmanager
def made_by(run: str, inputs: Mapping[str, str]) -> Iterator[None]:
    """Files written inside say that this run made them, of these inputs."""
    token = _now.set(Lineage(run, inputs))
    try:
        yield
    finally:
        _now.reset(token)


def lineage() -> Lineage | None:
    """What files that are written now are to say; None outside of a run."""
    return _now.get()
