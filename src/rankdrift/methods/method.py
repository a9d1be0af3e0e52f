"""What a method of `compare` is: what the user is told of it, what it assumes, and how it is run.

Each is a `Method` in the registry `METHODS`, which the files in `estimators` fill. Nothing heavy is
imported here or there before a method is run, for the command line lists them in its help.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rankdrift.core.errors import RankdriftError, Remark
from rankdrift.core.registry import Registry

if TYPE_CHECKING:
    from rankdrift.core.types import Floats
    from rankdrift.counts.counts import Counts
    from rankdrift.log.engines.engine import Progress
    from rankdrift.log.log import Log
    from rankdrift.propensities.propensities import Propensities

T = TypeVar("T")


class Kind(StrEnum):
    """What a method learns from, in the order of how little it assumes: the first assume least."""

    EXPERIMENT = "experiment"
    COMBINED = "experiment and drift"
    DRIFT = "drift"
    INTERVENTIONS = "interventions"
    FEATURES = "features"
    PAIRS = "pairs"
    CLICK_RATES = "click rates"

    @property
    def place(self) -> int:
        """Among all kinds, from 0."""
        return list(Kind).index(self)

    @property
    def same_relevance(self) -> bool:
        """Whether it takes a pair's relevance to be the same wherever it is shown."""
        return self in (Kind.COMBINED, Kind.DRIFT, Kind.INTERVENTIONS, Kind.PAIRS)


@dataclass(frozen=True)
class Option:
    """An option of `compare` that a method cannot do without, and what to do if it is missing."""

    name: Literal["features", "randomised", "original"]
    advice: str


@dataclass(frozen=True, eq=False)
class Inputs:
    """What methods are given: the log, or its counts for those that need no more, and the options
    of `compare`. What several of them need is read once. asked: the reference that was asked for,
    None for the best supported."""

    source: Log | Counts
    asked: int | None = None
    features: str | Sequence[str] | None = None
    randomised: str | None = None
    original: str | None = None
    bootstrap: int = 10
    seed: int = 0
    progress: Progress | None = None
    say: Callable[[str], None] | None = None
    _read: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def log(self) -> Log:
        """The log itself, for methods that are not `of_counts`."""
        from rankdrift.log.log import Log

        assert isinstance(self.source, Log)  # compare sees to it
        return self.source

    @cached_property
    def counts(self) -> Counts:
        """The log harvested, all segments together."""
        from rankdrift.counts.counts import Counts
        from rankdrift.harvesting.counting import harvest

        if isinstance(self.source, Counts):
            return self.source.pool()
        return harvest(self.source, progress=self.progress).pool()

    @cached_property
    def reference(self) -> int:
        """The rank whose propensity is 1 in every curve; where rank 1 is thin, another, with a
        remark, as `estimate` has it."""
        from rankdrift.estimation.identification import THIN_REFERENCE, best_reference

        if self.asked is not None:
            return self.asked
        try:
            found = best_reference(self.counts)
        except RankdriftError:  # told by the methods that cannot do without
            return 1
        if found != 1:
            warnings.warn(THIN_REFERENCE.format(found), Remark, stacklevel=2)
        return found

    def once(self, read: Callable[[Inputs], T]) -> T:
        """What `read` makes of this: read for the first method that asks, and kept for others."""
        if read not in self._read:
            self._read[read] = read(self)
        found: T = self._read[read]
        return found


@dataclass(frozen=True, eq=False)
class Estimate:
    """A curve by name, the kind of its method, and how it changes with the data.

    by_bucket (R, G): deviations whose column g belongs to bucket g of queries; drawn (R, S): those
    of a bootstrap whose sample s weighted buckets by weights (S, G). Either or both may be None.
    """

    name: str
    kind: Kind
    curve: Propensities
    by_bucket: Floats | None = None
    drawn: Floats | None = None
    weights: Floats | None = None


@dataclass(frozen=True)
class Method:
    """A way to a curve of propensities, as `compare` knows it.

    Attributes
    ----------
    name
        By which it is asked for.
    label
        What the user is told of it, in a few words.
    family
        Methods of one family are listed together.
    kind
        What it learns from, which decides what a disagreement with another usually means.
    assumes, needs, fails
        What it assumes, what the log must have, and when it fails, in words that complete a row of
        a table.
    run
        The estimator. Where its errors come from leaving out buckets of queries, it ends with
        `method.made(curve, by_bucket=curve.deviations)`.
    option
        The option of `compare` that it cannot do without.
    default
        Whether `compare` runs it unless told otherwise.
    of_counts
        Whether counts are enough for it; others look at rows of the log.

    Examples
    --------
    >>> METHODS.register(Method("mine", "my own estimator", "mine", Kind.DRIFT, "…", "…", "…", run))
    ... # doctest: +SKIP
    """

    name: str
    label: str
    family: str
    kind: Kind
    assumes: str
    needs: str
    fails: str
    run: Callable[[Method, Inputs], Estimate]
    option: Option | None = None
    default: bool = False
    of_counts: bool = False

    def estimate(self, inputs: Inputs) -> Estimate:
        """The curve by this method, after saying what is being done."""
        if inputs.say:
            inputs.say(f"{self.name}: {self.label} …")
        return self.run(self, inputs)

    def made(
        self,
        curve: Propensities,
        *,
        by_bucket: Floats | None = None,
        drawn: Floats | None = None,
        weights: Floats | None = None,
    ) -> Estimate:
        """The estimate that `curve` is, with how it changes with the data: see `Estimate`."""
        return Estimate(self.name, self.kind, curve, by_bucket, drawn, weights)


METHODS: Registry[Method] = Registry("method")
