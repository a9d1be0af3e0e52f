"""The axis of a picture on a page."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers laid on a stretch of the picture, evenly or by logarithms."""

    first: float
    last: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        """Where a number is in the picture; one beyond an end is at that end."""
        value = min(max(value, self.first), self.last)
        if self.log:
            share = math.log(value / self.first) / math.log(self.last / self.first)
        else:
            share = (value - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Few round numbers inside it."""
        if self.log:
            powers = range(math.floor(math.log10(self.first)), math.ceil(math.log10(self.last)) + 1)
            found = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        else:
            size = self.last - self.first
            power = 10.0 ** math.floor(math.log10(size))
            step = next(m * power for m in (0.1, 0.2, 0.5, 1.0, 2.0) if size / (m * power) <= 6)
            first = math.ceil(self.first / step)
            found = [i * step for i in range(first, first + 8)]
        return [t for t in found if self.first <= t <= self.last]
