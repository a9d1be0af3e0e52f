"""What a click model is: one interface.

Every probability of a model has a Beta prior at the mean of its kind, pooled over the log, with the
strength of `STRENGTH` results: what was never shown has that mean, what was shown often its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Bools, Floats

STRENGTH = 4.0
"""How many results the prior of a probability counts for."""
LEAST = 1e-10
"""Probabilities of what happened are no smaller, nor nearer to 1, so that logs are finite."""


class ClickModel(ABC):
    """How likely each result of a search is clicked. `fit` makes one from searches.

    name
        What it is called, in options and in tables.
    title
        Its name in full.
    says
        What users do, if it is right.
    use
        When to use it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    says: ClassVar[str]
    use: ClassVar[str]

    @classmethod
    @abstractmethod
    def fit(cls, searches: Searches, *, strength: float = STRENGTH) -> Self:
        """The model that makes the clicks of these searches likeliest, given the prior.

        Parameters
        ----------
        searches
            What to learn from.
        strength
            How many results the prior of a probability counts for.
        """

    @abstractmethod
    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        """(T,): how likely each result is clicked, given the clicks above it."""

    def click_probabilities(self, searches: Searches) -> Floats:
        """(T,): how likely each result is clicked, whatever is clicked above it."""
        return self.conditional_click_probabilities(searches)

    def sample(self, searches: Searches, rng: np.random.Generator) -> Searches:
        """The same lists, with clicks drawn from the model."""
        return searches.with_clicks(self.draw(searches, rng.random(searches.rows)))

    def draw(self, searches: Searches, chance: Floats) -> Bools:
        """(T,): the clicks that these numbers, even between 0 and 1, stand for."""
        return np.asarray(chance < self.conditional_click_probabilities(searches))

    @abstractmethod
    def relevance(self) -> Floats:
        """(P,): of every pair, from 0 to 1; of a model that knows none, all the same."""

    def looked_at(self, searches: Searches) -> Floats | None:
        """(T,): how likely each result was looked at, beside one at the top of a list.

        Of a result that was clicked, given the clicks above it; of another, given all clicks of its
        search, but not that it was passed over itself: as a function of its own relevance z, the
        likelihood is 1 - looked_at z. None of a model that does not tell looks from docs.
        """
        return None

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The few numbers that do not belong to pairs, as plain values."""


def log_likelihood(probability: Floats, click: Bools) -> Floats:
    """(T,): the natural logarithm of the probability of what happened."""
    happened = np.where(click, probability, 1.0 - probability)
    return np.asarray(np.log(np.clip(happened, LEAST, 1.0)))
