"""The funnel: every row and click of a log is used, or dropped for a reason that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankdrift.core.errors import BadCounts, did_you_mean
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.words import many

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

REASONS: dict[str, str] = {
    "other_event": "events that are neither a result shown nor a click",
    "click_event": "click events, joined to the result that was shown",
    "where": "left out by the row condition",
    "randomised": "in random order, kept apart",
    "duplicate": "the same row logged twice",
    "no_rank": "not shown: rank missing",
    "bad_rank": "rank not a whole number",
    "low_rank": "not shown: rank below the first",
    "deep_rank": "rank deeper than max_rank",
    "no_doc": "doc missing",
    "no_query": "query missing or blank",
    "no_day": "day missing or unreadable",
    "no_same": "a must-be-equal column, such as the price, missing",
    "bad_click": "click unreadable",
    "other_day": "on other days than those asked for",
    "no_propensity": "at a rank without a propensity",
    "no_search": "search missing",
    "not_drawn": "of queries that were not drawn",
    "same_rank": "at a rank that its search has twice",
    "stray_click": "clicks on results that were not shown",
    "repeat_click": "further clicks on one result shown",
    "doc_twice": "doc shown twice in one search",
    "never_clicked": "pair never got a click",
    "one_rank": "pair appeared at one rank only",
}
"""Stable name -> words for people, in the order in which rows are dropped."""

NOTES: dict[str, str] = {
    "null_query_part": "kept with a query column missing, read as: no such constraint",
    "null_segment": "kept with a segment column missing, a segment of its own",
    "null_click": "kept with the click missing, read as: not clicked",
    "rank_zero": "dropped with rank 0: a log that counts from 0 needs first_rank 0",
}
"""Stable name -> words, for rows read in a way worth knowing."""

INPUT, USED = "input", "used"
_WORDS = {INPUT: "in the log", USED: "used"}
_ROWS_ONLY = ("click_event",)
_CLICKS_ONLY = ("stray_click", "repeat_click")
_PAIRS_KNOWN = ("one_rank",)


@dataclass(frozen=True)
class Dropped:
    """What one reason dropped; `pairs` is None where pairs were never formed."""

    rows: int = 0
    clicks: int = 0
    pairs: int | None = None


@dataclass(frozen=True)
class Used:
    """What was left: the appearances and clicks of the pairs that are counted."""

    rows: int = 0
    clicks: int = 0
    pairs: int = 0


@dataclass(frozen=True)
class Funnel:
    """Where the rows and clicks of a log went: dropped, by reason, or used. It adds up exactly.

    Funnels of several days add with `+`; `plot` draws one, and `to_dict` is for JSON. `dropped` and
    `notes` have every name of REASONS and NOTES, in that order; names not given are zero. `check`
    raises when the numbers do not add up.
    """

    rows: int = 0
    clicks: int = 0
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    used: Used = field(default_factory=Used)
    notes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_unknown(self.dropped, REASONS, "reason")
        _refuse_unknown(self.notes, NOTES, "note")
        dropped = {name: _normal(name, self.dropped.get(name, Dropped())) for name in REASONS}
        object.__setattr__(self, "dropped", dropped)
        object.__setattr__(self, "notes", {name: self.notes.get(name, 0) for name in NOTES})

    def __add__(self, other: Funnel) -> Funnel:
        return Funnel(
            rows=self.rows + other.rows,
            clicks=self.clicks + other.clicks,
            dropped={name: _add(self.dropped[name], other.dropped[name]) for name in REASONS},
            used=Used(
                self.used.rows + other.used.rows,
                self.used.clicks + other.used.clicks,
                self.used.pairs + other.used.pairs,
            ),
            notes={name: self.notes[name] + other.notes[name] for name in NOTES},
        )

    def check(self) -> None:
        """Raise BadCounts, with the difference, unless every row and click is accounted for."""
        for name, _, rows, clicks, pairs in self.lines():
            if min(rows, clicks, pairs or 0) < 0:
                raise BadCounts(f"The funnel has a negative number at {name!r}. Count again.")
        for name in _ROWS_ONLY:
            if self.dropped[name].clicks:
                raise BadCounts(
                    f"The funnel has {many(self.dropped[name].clicks, 'click')} at {name!r}, which "
                    "drops rows only: count each click where the result it joined went."
                )
        for name in _CLICKS_ONLY:
            if self.dropped[name].rows:
                raise BadCounts(
                    f"The funnel has {many(self.dropped[name].rows, 'row')} at {name!r}, which "
                    "drops clicks only: count each row where it went."
                )
        for unit, total, used in (
            ("rows", self.rows, self.used.rows),
            ("clicks", self.clicks, self.used.clicks),
        ):
            dropped = sum(int(getattr(what, unit)) for what in self.dropped.values())
            if total != dropped + used:
                raise BadCounts(
                    f"The funnel does not add up: {total:,} {unit} in the log, but {dropped:,} "
                    f"dropped and {used:,} used, a difference of {total - dropped - used:,}. "
                    f"Every one of the {unit} must be dropped for one reason or used: count again."
                )
        for name, rows in self.notes.items():
            if not 0 <= rows <= self.rows:
                raise BadCounts(
                    f"The funnel notes {many(rows, 'row')} as {name!r}, of {self.rows:,} in the "
                    "log. Count again."
                )

    def lines(self) -> Iterator[tuple[str, str, int, int, int | None]]:
        """(name, words, rows, clicks, pairs): the input, each reason that dropped, the used."""
        yield INPUT, _WORDS[INPUT], self.rows, self.clicks, None
        for name, what in self.dropped.items():
            if what.rows or what.clicks or what.pairs:
                yield name, REASONS[name], what.rows, what.clicks, what.pairs
        yield USED, _WORDS[USED], self.used.rows, self.used.clicks, self.used.pairs

    def note_words(self) -> list[str]:
        """How many rows were read in a way worth knowing, a sentence for each way."""
        return [f"{many(rows, 'row')} {NOTES[name]}." for name, rows in self.notes.items() if rows]

    def plot(self) -> Figure:
        """Shares of the log, by reason; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.funnel import funnel_chart
        from rankdrift.charts.style import Figure

        return Figure(funnel_chart(self))

    def __repr__(self) -> str:
        return brief(
            self,
            f"{self.used.rows:,} of {many(self.rows, 'row')} used",
            f"{self.used.clicks:,} of {many(self.clicks, 'click')}",
            many(self.used.pairs, "pair"),
        )

    def _repr_html_(self) -> str:
        return html_table(
            ["", "rows", "clicks", "pairs"], ((words, *n) for _, words, *n in self.lines())
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; reasons and notes that are zero are left out."""
        lines = {
            name: {"rows": rows, "clicks": clicks} | ({} if pairs is None else {"pairs": pairs})
            for name, _, rows, clicks, pairs in self.lines()
        }
        return {
            INPUT: lines.pop(INPUT),
            "dropped": {name: line for name, line in lines.items() if name != USED},
            USED: lines[USED],
            "notes": {name: rows for name, rows in self.notes.items() if rows},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Funnel:
        """The inverse of `to_dict`."""
        try:
            return cls(
                **plain[INPUT],
                dropped={name: Dropped(**what) for name, what in plain["dropped"].items()},
                used=Used(**plain[USED]),
                notes=dict(plain["notes"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BadCounts(f"This is not a funnel ({error}). Count again.") from error


def _add(a: Dropped, b: Dropped) -> Dropped:
    pairs = None if a.pairs is None or b.pairs is None else a.pairs + b.pairs
    return Dropped(a.rows + b.rows, a.clicks + b.clicks, pairs)


def _normal(name: str, what: Dropped) -> Dropped:
    if name in _PAIRS_KNOWN:
        return Dropped(what.rows, what.clicks, what.pairs or 0)
    if what.pairs:
        raise BadCounts(
            f"The funnel has {many(what.pairs, 'pair')} at {name!r}, where pairs are not counted. "
            f"Leave them empty except at {', '.join(_PAIRS_KNOWN)} and {USED}."
        )
    return Dropped(what.rows, what.clicks)


def _refuse_unknown(names: Mapping[str, object], known: Mapping[str, str], kind: str) -> None:
    for name in names:
        if name not in known:
            raise BadCounts(
                f"The funnel has an unknown {kind} {name!r}.{did_you_mean(name, known)} "
                f"The names are: {', '.join(known)}."
            )


def waterfall(totals: Mapping[str, tuple[int, int, int]]) -> dict[str, Dropped]:
    """The lines of a funnel, `input` and `used` included, from the (rows, clicks, pairs) at each
    stage of a harvest.

    Stages: what rows were dropped for, by reason; `good` rows; `candidates`, rows of clicked pairs;
    then pairs without rows of docs that were shown twice in one search: `unclicked`, `unmoved` and
    `used`.
    """

    def at(name: str) -> tuple[int, int, int]:
        return totals.get(name, (0, 0, 0))

    good, candidates = at("good"), at("candidates")
    unclicked, unmoved, used = at("unclicked"), at("unmoved"), at("used")
    lines = {name: Dropped(*at(name)[:2]) for name in REASONS if name in totals}
    zero, low = at("rank_zero"), at("low_rank")
    lines["low_rank"] = Dropped(low[0] + zero[0], low[1] + zero[1])
    lines["repeat_click"] = Dropped(0, good[1] - candidates[1])
    lines["never_clicked"] = Dropped(good[0] - candidates[0] + unclicked[0], 0)
    lines["one_rank"] = Dropped(*unmoved)
    twice = lines.get("doc_twice", Dropped(0, 0))
    in_pairs = [sum(kind) for kind in zip(unclicked, unmoved, used, strict=True)]
    lines["doc_twice"] = Dropped(
        twice.rows + candidates[0] - in_pairs[0], twice.clicks + candidates[1] - in_pairs[1]
    )
    read = [name for name in (*REASONS, "rank_zero", "good") if name in totals]
    lines[INPUT] = Dropped(sum(at(name)[0] for name in read), sum(at(name)[1] for name in read))
    lines[USED] = Dropped(*used)
    return lines
