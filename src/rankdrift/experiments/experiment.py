"""An experiment: who takes part, how results are reordered, and what is then to be logged."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankdrift.core.artefacts import EXPERIMENT_KIND
from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadOption, RankdriftError
from rankdrift.core.files import read_text, write_text
from rankdrift.core.notebook import brief
from rankdrift.core.plain import entries, entry, items, number, parsed, text, whole
from rankdrift.core.version import __version__
from rankdrift.core.words import named_ranks, percent
from rankdrift.experiments import assigning
from rankdrift.experiments.designs import (
    DEEPEST,
    Design,
    checked,
    digits_sql,
    quoted,
    shown_sql,
    touched,
    words,
)

UNITS = ("search", "user")
_FIELDS = ("name", "salt", "design", "share", "unit", "never", "on")


@dataclass(frozen=True)
class Experiment:
    """Which searches take part, and in what order their results are shown: a pure function of the
    id of the search, or of the user, and a salt.

    Parameters
    ----------
    name
        What it is called; logged with every result that takes part.
    design
        How results are reordered: `swap(1, 5)`, `fairpairs(1, 10)`, `shuffle(1, 5)` …
    share
        Of searches, or of users, that take part.
    salt
        Another draws other searches. By default the name.
    unit
        "search": each is drawn by itself. "user": a user takes part with all searches and sees the
        same order each time; errors are then told by user.
    never
        Ranks that must stay as they are.
    on
        False lets nobody take part: the switch that ends it at once.
    about
        Where it came from; not used.
    """

    name: str
    design: Design
    share: float = 0.01
    salt: str = ""
    unit: str = "search"
    never: tuple[int, ...] = ()
    on: bool = True
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", checked(self.design))
        object.__setattr__(self, "salt", self.salt or self.name)
        object.__setattr__(self, "never", tuple(sorted(set(self.never))))
        if not self.name.strip():
            raise BadOption("An experiment needs a name, which is logged with what it shows.")
        if not 0 < self.share <= 1:
            raise BadOption(f"share is {self.share}: use a share of searches, above 0 and up to 1.")
        if self.unit not in UNITS:
            raise BadOption(f"unit is {self.unit!r}: use search or user.")
        if not all(1 <= rank <= DEEPEST for rank in self.never):
            raise BadOption(
                f"never takes ranks from 1 to {DEEPEST}, not "
                f"{', '.join(map(str, self.never))}. Rank 1 is the top."
            )
        moved = sorted(set(self.never) & set(touched(self.design)))
        if moved:
            raise BadOption(
                f"The design moves docs of {named_ranks(moved)}, which must never be touched. "
                "Choose a design of other ranks."
            )

    def __repr__(self) -> str:
        off = "" if self.on else "switched off"
        who = {"search": "searches", "user": "users"}[self.unit]
        return brief(self, self.name, words(self.design), f"{percent(self.share)} of {who}", off)

    # -- decide --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what a search service needs to know."""
        found = {name: getattr(self, name) for name in _FIELDS}
        return {**found, "never": list(self.never)}

    def assign(self, unit: str, size: int) -> tuple[int, ...] | None:
        """The ranks before, in the order in which to show them; None for a search that takes no
        part.

        Parameters
        ----------
        unit
            The id of the search, or of the user.
        size
            How many results there are.
        """
        return assigning.assign(self.to_dict(), unit, size)

    def arrange(self, unit: str, docs: Sequence[Any]) -> assigning.Arranged:
        """The docs in the order in which to show them, each one's rank before, and whether the
        search takes part.

        Parameters
        ----------
        unit
            The id of the search, or of the user.
        docs
            As the ranker has them, each once: the whole list, not one page of it.
        """
        if len(set(docs)) < len(docs):
            raise BadOption(
                f"{len(docs) - len(set(docs))} of {len(docs)} docs are there twice. A list shows "
                "each doc once: take repeats out before results are reordered."
            )
        return assigning.arrange(self.to_dict(), unit, docs)

    def sql(self, *, dialect: str = "duckdb", unit: str | None = None, rank: str = "rank") -> str:
        """The same decisions as columns of a SELECT: `randomised`, whether a search that is long
        enough takes part, and `shown`, the rank at which it then shows the doc.

        Parameters
        ----------
        dialect
            Of the SQL.
        unit
            The column with the id; by default `search`, or `user`.
        rank
            The column with the rank before, from 1.
        """
        d = find_dialect(dialect)
        taking_part, shown = self.expressions(
            dialect, d.text.format(d.quote(unit or self.unit)), d.quote(rank)
        )
        before = d.quote(rank)
        return (
            f"{taking_part} AS randomised,\n"
            f"CASE WHEN {taking_part} THEN {shown} ELSE {before} END AS shown"
        )

    def expressions(self, dialect: str, unit: str, rank: str) -> tuple[str, str]:
        """SQL: does a search take part that is long enough; and where would it show the doc?

        Parameters
        ----------
        dialect
            Of the SQL.
        unit, rank
            SQL of the id, as text, and of the rank before.
        """
        digits = digits_sql(find_dialect(dialect), self.salt, unit)
        top = assigning.below(self.share) if self.on else ""
        taking_part = f"({digits(quoted('in'))} < '{top}')"
        return taking_part, shown_sql(self.design, rank, digits)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, for rankdrift and for the search service, whole or not at all."""
        kept = sealed(_without_switch(self._document()))
        write_text(path, json.dumps({**kept, "on": self.on}, indent=1, ensure_ascii=False) + "\n")

    def _document(self) -> dict[str, Any]:
        return {
            "kind": EXPERIMENT_KIND,
            "version": __version__,
            **self.to_dict(),
            "about": dict(self.about),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experiment:
        """Read what `save` wrote. `on` may be edited by hand; what else was changed is told."""
        try:
            document = parsed(read_text(path))
        except OSError as error:
            raise BadOption(f"Cannot read {path}: {error.strerror or error}.") from None
        except ValueError as error:
            raise BadOption(f"{path} is no JSON: {error}.") from None
        try:
            return cls._of(document)
        except RankdriftError as error:
            raise BadOption(f"{path}: {error}") from None
        except ValueError as error:
            raise BadOption(f"{path} is no experiment: {error}.") from None

    @classmethod
    def _of(cls, document: Any) -> Experiment:
        given = entries(document, "the file")
        if given.get("kind") != EXPERIMENT_KIND:
            raise ValueError(
                "it does not say that it is one. `rankdrift experiment plan` makes one"
            )
        changed = what_changed(_without_switch(given))
        if changed:
            raise ValueError(changed.rstrip("."))
        on = entry(given, "on")
        if not isinstance(on, bool):
            raise ValueError(f"on is {on!r}, not true or false")
        return cls(
            name=text(entry(given, "name"), "name"),
            salt=text(entry(given, "salt"), "salt"),
            design=entry(given, "design"),
            share=number(entry(given, "share"), "share", 0, 1),
            unit=text(entry(given, "unit"), "unit"),
            never=tuple(
                whole(rank, "a rank of never", 1, DEEPEST)
                for rank in items(entry(given, "never"), "never")
            ),
            on=on,
            about=entries(given.get("about", {}), "about"),
        )

    def switched(self, on: bool) -> Experiment:
        """The same, switched on or off."""
        return replace(self, on=on)


def _without_switch(document: Mapping[str, Any]) -> dict[str, Any]:
    """All but the switch, which people turn by hand."""
    return {name: value for name, value in document.items() if name != "on"}
