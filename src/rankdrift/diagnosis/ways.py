"""Other ways to read the same log, tried: what each would give, and what it assumes.

What makes a pair is a choice: one query and doc on one day, or in one week; at one price, or at
any. A log that gives few pairs one way may give many another way. So each is counted, on a sample
of queries where the log is large, and a curve estimated from it.
"""

import datetime
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdrift.core.errors import RankdriftError, Remark
from rankdrift.core.words import typed_word
from rankdrift.counts.counts import Counts
from rankdrift.estimation.estimating import estimate
from rankdrift.harvesting.counting import count
from rankdrift.harvesting.plan import Sizes
from rankdrift.log.columns import EXTRAS, Roles, plain
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.propensities.summary import WIDEST, says_nothing

# A comparison of two ranks by n clicks has a standard error of at least 2/sqrt(n) in the log of
# the ratio: with fewer clicks than these it is at best ±86%, ±22% and ±6% at 95%.
TOO_FEW = 40
FEW = 400
THIN = 4_000
"""Other ways are tried where there are fewer comparisons than this."""
MOST_ROWS = 2_000_000  # that every way is tried on: a second or two each
MOST_WAYS = 8
EMPTY = '""'  # what is typed to say that there is no such column
WINDOWS = {7: "a week", 28: "four weeks"}
DEEPEST = 10  # the rank that is compared with the first, or the deepest known above it
NARROWER = 0.75  # of the width: less is not worth another assumption
PRICES = ("price", "price_usd", "item_price", "unit_price", "cost", "rate", "offer_price")
"""Names of columns that change what a doc is worth to its users."""


@dataclass(frozen=True)
class Way:
    """A way to read a log, and what it gives.

    Parameters
    ----------
    words
        What it is: "within a week".
    assumes
        What it takes for granted, in a few words.
    options
        The options of `read_log` that it changes, with their values.
    pairs, clicks
        Usable pairs and their clicks; of a sample, scaled up.
    comparisons
        What those clicks are worth: as in the inspection's table of support.
    rank
        The rank whose propensity beside that of rank 1 is told; None where there is no curve.
    propensity, low, high
        That propensity, and its interval at 95%, as wide as the whole log would make it.
    says_nothing
        Whether `estimate` would say so of the curve: most clicks are at ranks whose intervals are
        too wide to be of use.
    refused
        Why `estimate` refuses, if it does.
    """

    words: str
    assumes: str
    options: Mapping[str, Any]
    pairs: int = 0
    clicks: int = 0
    comparisons: float = 0.0
    rank: int | None = None
    propensity: float | None = None
    low: float | None = None
    high: float | None = None
    says_nothing: bool = False
    refused: str = ""

    @property
    def width(self) -> float:
        """Of the interval of the log; infinite where there is none."""
        return math.log(self.high / self.low) if self.low and self.high else math.inf

    @property
    def wide(self) -> bool:
        """Is there a curve, but too wide an interval to be of use?"""
        return self.rank is not None and self.width > math.log(WIDEST)

    @property
    def enough(self) -> bool:
        """Does it give a curve worth drawing?"""
        return self.comparisons >= FEW and self.rank is not None and not self.wide

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {**vars(self), "options": dict(self.options)}


@dataclass(frozen=True)
class Ways:
    """The ways that were tried, the one that was asked for first.

    Parameters
    ----------
    tried
        All of them, after the first by how much they assume.
    best
        The one to take instead of the first, or None if none is much better.
    sample
        One in so many queries was looked at.
    """

    tried: tuple[Way, ...] = ()
    best: Way | None = None
    sample: int = 1

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "tried": [way.to_dict() for way in self.tried],
            "best": self.tried.index(self.best) if self.best else None,
            "sample": self.sample,
        }


def as_asked(log: Log, counts: Counts) -> Way:
    """The way that was asked for, and what it gives.

    Parameters
    ----------
    log
        As it was read.
    counts
        Its harvest.
    """
    return _filled(Way("as asked", _asked(log), {}), counts, 1)


def try_ways(
    log: Log,
    counts: Counts,
    asked: Way,
    days: tuple[str, str] | None,
    progress: Progress | None = None,
) -> Ways:
    """Try other ways to read a log.

    Parameters
    ----------
    log
        As it was asked for.
    counts
        Its harvest.
    asked
        What that gives.
    days
        The first and the last of the log, if it has days.
    progress
        As for `harvest`.
    """
    others = list(_others(log, days))[:MOST_WAYS]
    if not others:
        return Ways((asked,))
    share = max(1, math.ceil(counts.funnel.rows / MOST_ROWS))
    tried = [asked]
    for done, way in enumerate(others):
        if progress:
            progress(f"trying {way.words}", done / len(others))
        tried.append(_try(log, way, share))
    best = _best(tried)
    price = _price(log)
    if best and price:
        same = [*log.roles.same, price]
        kept = Way(
            f"{best.words}, at one {price}",
            f"{best.assumes}, while its {price} is the same",
            {**best.options, "same": same},
        )
        kept = _try(log, kept, share)
        tried.insert(tried.index(best), kept)
        best = kept if kept.enough else best
    return Ways(tuple(tried), best, share)


def _asked(log: Log) -> str:
    if not log.roles.day:
        return "a doc is as good for a query throughout"
    window = log.rules.window
    known = WINDOWS.get(window, f"{window} days")
    return f"a doc is as good for a query all {'day' if window == 1 else known.split(' ', 1)[1]}"


def _others(log: Log, days: tuple[str, str] | None) -> Iterator[Way]:
    """Ways to find more pairs, those that assume least first."""
    roles = log.roles
    if roles.day and days and days[0] != days[1]:
        first, last = map(datetime.date.fromisoformat, days)
        span = (last - first).days + 1
        for window, words in WINDOWS.items():
            if log.rules.window < window < span:
                yield Way(
                    f"within {words}",
                    f"a doc is as good for a query for {words}",
                    {"window": f"{window}d"},
                )
        yield Way(
            "over the whole log",
            f"a doc is as good for a query for {span:,} days",
            {"day": "", **({"window": None} if log.rules.window > 1 else {})},
        )
    for role in ("same", "segment", "query"):
        names = getattr(roles, role)
        for name in names if role != "query" or len(names) > 1 else ():
            rest = [other for other in names if other != name]
            yield Way(f"whatever {name}", _indifferent(role, name), {role: rest})


def _indifferent(role: str, name: str) -> str:
    if role == "segment":
        return f"ranks are looked at alike for every {name}"
    return f"{name} does not change how good a doc is"


def _price(log: Log) -> str | None:
    """A column that is not in use and may well change what a doc is worth."""
    free = {plain(name): name for name in log.engine.columns if name not in log.roles.used()}
    return next((free[plain(name)] for name in PRICES if plain(name) in free), None)


def _try(log: Log, way: Way, share: int) -> Way:
    """The same way with what it gives."""
    return _filled(way, count(changed(log, way.options, share), Sizes()), share)


def changed(log: Log, options: Mapping[str, Any], share: int = 1) -> Log:
    """A log read in another way, without what only checks look at.

    Parameters
    ----------
    log
        As it was read before.
    options
        Those of a `Way`.
    share
        Read one in so many queries.
    """
    columns: dict[str, Any] = {**log.roles.to_dict(), **options}
    window = columns.pop("window", f"{log.rules.window}d") or "1d"
    dropped = {"time", *EXTRAS} - {"randomised"}
    roles = Roles.of({role: c for role, c in columns.items() if c and role not in dropped})
    rules = replace(log.rules, outcome_at_least=None, window=int(window.removesuffix("d")))
    if share > 1:
        planner = log.planner()
        query = ", ".join(planner.column(name)[0] for name in log.roles.query)
        some = f"mod({log.engine.dialect.hash.format(query)}, {share}) = 0"
        where = f"({rules.where}\n) AND {some}" if rules.where else some
        rules = replace(rules, where=where)
    return replace(log, roles=roles, rules=rules)


def _filled(way: Way, counts: Counts, share: int) -> Way:
    counts = counts.pool()
    weight = float(counts.choices("every").weight.sum())
    found = replace(
        way,
        pairs=counts.n_pairs * share,
        clicks=counts.n_clicks * share,
        comparisons=weight * share,
    )
    try:
        curve = estimate(counts, reference=1)
    except RankdriftError:
        return replace(found, refused=_refused(counts))
    place = int(np.searchsorted(curve.ranks, DEEPEST, side="right")) - 1
    rank = int(curve.ranks[place])
    if rank <= curve.reference:
        return found
    low, high = (float(side[place]) for side in curve.interval())
    value = float(curve.values[place])
    # Of all queries instead of one in so many the interval is narrower by the root of it.
    low, high = (value * (side / value) ** (1 / math.sqrt(share)) for side in (low, high))
    # What `estimate` gives may be relative to another rank, if rank 1 is thin.
    nothing = high > WIDEST * low and _says_nothing(counts)
    return replace(found, rank=rank, propensity=value, low=low, high=high, says_nothing=nothing)


def _says_nothing(counts: Counts) -> bool:
    """Whether the curve is of no use, beside whatever rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)  # as `estimate` itself will tell
        return bool(says_nothing(estimate(counts)))


def _refused(counts: Counts) -> str:
    """Why there is no curve, beside whatever rank; empty if there is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Remark)
            estimate(counts)
    except RankdriftError as error:
        return str(error)
    return ""


def flags(options: Mapping[str, Any]) -> str:
    """The options of a way as one types them."""
    values = {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in options.items()
        if value is not None
    }
    return " ".join(
        f"--{name} {typed_word(str(value)) if value else EMPTY}" for name, value in values.items()
    )


def _best(tried: list[Way]) -> Way | None:
    """The first that gives enough, unless what was asked for does; else the one that gives most,
    if that is much more and an interval that is of use."""
    asked, *others = tried
    if asked.enough:
        return None
    better = [way for way in others if way.width < NARROWER * asked.width]
    enough = [way for way in better if way.enough]
    if enough:
        return enough[0]
    return min((w for w in better if not w.wide), key=lambda way: way.width, default=None)
