"""Which ranker wins, from searches whose results were interleaved.

A search is won by the ranker with more credit. Δ = (wins + ties / 2) / searches - 1/2 is above 0
for the better one (Chapelle et al., 2012). Two intervals go with it: that of a test at an end fixed
beforehand, and one that may be looked at every day, wider, which holds Δ at all times together
(Robbins' mixture of normal likelihoods).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rankdrift.core.errors import BadOption, MissingColumns, NoUsablePairs
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats, Ints
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS
from rankdrift.harvesting.pairs import bucket_of
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import RESULT, ROWS_SHOWN, Planner, Step
from rankdrift.methods.tallies import collect
from rankdrift.propensities.intervals import Interval, check_level, t_quantile

MOST = 10  # rankers
POWER = 0.8
# The mixture is tightest about this many searches; elsewhere it is valid, and a little wider.
TIGHTEST = 10_000
FEWEST_GROUPS = 8


@dataclass(frozen=True, eq=False)
class Wins:
    """How one ranker fares against another.

    Parameters
    ----------
    first, second
        The rankers.
    won, lost, tied
        (G,): searches by group of queries, or of users, as the first has them.
    level
        Of the intervals.
    """

    first: str
    second: str
    won: Ints
    lost: Ints
    tied: Ints
    level: float = 0.95

    @property
    def searches(self) -> int:
        """All of them."""
        return int(self.won.sum() + self.lost.sum() + self.tied.sum())

    @property
    def delta(self) -> float:
        """(wins + ties / 2) / searches - 1/2: from -1/2 to 1/2."""
        return float(self.won.sum() - self.lost.sum()) / (2 * self.searches)

    @property
    def error(self) -> float:
        """The standard error of Δ, from how groups differ; that of independent searches where there
        are too few groups, or if it is larger."""
        size = self.searches
        difference = (self.won - self.lost).astype(float)
        shown = (self.won + self.lost + self.tied).astype(float)
        decided = float(self.won.sum() + self.lost.sum())
        alone = np.sqrt(max(decided / size - (2 * self.delta) ** 2, 1 / size) / size) / 2
        groups = int((shown > 0).sum())
        if groups < FEWEST_GROUPS:
            return float(alone)
        rest = difference - 2 * self.delta * shown
        between = np.sqrt(groups / (groups - 1) * (rest**2).sum()) / (2 * size)
        return float(max(alone, between))

    @property
    def interval(self) -> Interval:
        """Of Δ, for a look at an end that was fixed beforehand."""
        groups = int(((self.won + self.lost + self.tied) > 0).sum())
        reach = t_quantile(self.level, max(groups - 1, 1)) * self.error
        return Interval(self.delta, self.delta - reach, self.delta + reach, self.level)

    @property
    def anytime(self) -> Interval:
        """Of Δ, that may be looked at after every search: it holds Δ at all looks together."""
        n = self.searches
        one = self.error**2 * n  # the variance of a search
        tight = 1 / TIGHTEST
        grown = n * tight + 1
        reach = np.sqrt(
            2 * grown / (n**2 * tight) * np.log(np.sqrt(grown) / (1 - self.level)) * one
        )
        reach = float(reach)
        return Interval(self.delta, self.delta - reach, self.delta + reach, self.level)

    @property
    def smallest(self) -> float:
        """The smallest Δ that this many searches see with 80%, at an end fixed beforehand."""
        return _reach(self.level) * self.error

    def searches_for(self, delta: float) -> int:
        """How many searches it takes to see such a Δ with 80%.

        Parameters
        ----------
        delta
            To be seen, such as 0.01.
        """
        if not 0 < abs(delta) <= 0.5:
            raise BadOption(f"delta is {delta}: use a difference above 0 and up to 0.5.")
        return int(np.ceil(self.searches * (self.smallest / abs(delta)) ** 2))

    @property
    def words(self) -> str:
        """What may be said at any look."""
        bounds = self.anytime
        if bounds.low > 0:
            return f"{self.first} is better than {self.second}"
        if bounds.high < 0:
            return f"{self.second} is better than {self.first}"
        return f"{self.first} and {self.second} cannot be told apart yet"

    def __repr__(self) -> str:
        return brief(self, self.words, many(self.searches, "search", "searches"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        fixed, anytime = self.interval, self.anytime
        return {
            "first": self.first,
            "second": self.second,
            "searches": self.searches,
            "won": int(self.won.sum()),
            "lost": int(self.lost.sum()),
            "tied": int(self.tied.sum()),
            "delta": self.delta,
            "low": fixed.low,
            "high": fixed.high,
            "anytime_low": anytime.low,
            "anytime_high": anytime.high,
            "smallest": self.smallest,
            "words": self.words,
        }


def _reach(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2) + ndtri(POWER))


def count_wins(
    credits: Floats,
    *,
    names: Sequence[str] = ("A", "B"),
    groups: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Wins:
    """Count the searches that each of two rankers won.

    Parameters
    ----------
    credits
        (N, 2), from `credit`, a row a search.
    names
        Of the rankers.
    groups
        (N,), what belongs together, such as the query or the user; by default nothing does.
    level
        Of the intervals.
    """
    check_level(level)
    given = np.asarray(credits, dtype=float)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or not np.isfinite(given).all():
        raise BadOption("credits must have two numbers a search, and a search at least.")
    of = np.arange(len(given)) if groups is None else np.unique(groups, return_inverse=True)[1]
    difference = given[:, 0] - given[:, 1]
    near = 1e-9 * np.abs(given).max(initial=1.0)
    won, lost, tied = (
        np.bincount(of, such, minlength=int(of.max()) + 1).astype(np.int64)
        for such in (difference > near, difference < -near, np.abs(difference) <= near)
    )
    return Wins(names[0], names[1], won, lost, tied, level)


@names_checked
def wins(log: Log, *, level: float = 0.95, progress: Progress | None = None) -> list[Wins]:
    """Which ranker wins, from a log of results that teams of rankers added (team draft).

    Parameters
    ----------
    log
        From `read_log`; its column `ranker` says which ranker added a result, its column `search`
        which results were shown together. Searches are taken together by user, if the log has
        users, or else by query.
    level
        Of the intervals.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    list of Wins
        Of each two rankers.
    """
    check_level(level)
    for role, flag in ((log.roles.search, "search"), (log.roles.ranker, "ranker")):
        if not role:
            raise MissingColumns(
                f"The log has no column for the {flag}: which results were shown together, and "
                f"which ranker added each, must be known. Name it: --{flag} COLUMN."
            )
    p = log.planner()

    def text(name: object) -> str:
        return values.as_text(*p.column(str(name)), p.dialect)

    unit = text(log.roles.user) if log.roles.user else None
    carry = {"rd_search": text(log.roles.search), "rd_team": text(log.roles.ranker)}
    carry |= {"rd_user": f"coalesce({unit}, '~')"} if unit else {}

    def steps(p: Planner) -> list[Step]:
        group = "rd_user" if unit else "rd_search"
        bucket = bucket_of(p, f"min({group})", BUCKETS) if unit else _by_query(p)
        clicked = "sum(CASE WHEN click > 0 THEN 1 ELSE 0 END)"
        return [
            *row_steps.steps(p)[:-1],
            Step(
                "by_team",
                f"SELECT rd_search, rd_team, {bucket} AS bucket, {clicked} AS c FROM {ROWS_SHOWN}\n"
                "WHERE ok AND rd_search IS NOT NULL AND rd_team IS NOT NULL\n"
                "GROUP BY rd_search, rd_team",
            ),
            Step(RESULT, _pairs_sql()),
        ]

    found = collect(log, steps, carry=carry, progress=progress)
    names = sorted({*found["a"].tolist(), *found["b"].tolist()})
    if len(names) < 2:
        raise NoUsablePairs(
            f"No search has results of two rankers: {log.roles.ranker!r} must say of each result "
            "which ranker added it. For whole searches by one ranker (an A/B test), compare the "
            "rankers with --adjust ranker, or their clicks."
        )
    if len(names) > MOST:
        raise BadOption(
            f"{log.roles.ranker!r} has {many(len(names), 'value')}; at most {MOST} are compared."
        )
    return [_of_two(found, a, b, level) for a, b in combinations(names, 2)]


def _by_query(p: Planner) -> str:
    d = p.dialect
    joined = ", '|', ".join(f"coalesce({d.text.format(f'min({q})')}, '~')" for q in p.queries)
    return bucket_of(p, f"concat({joined}, '')", BUCKETS)


def _pairs_sql() -> str:
    """Searches that both of two rankers took part in, by who won."""
    return (
        "SELECT x.rd_team AS a, y.rd_team AS b, x.bucket AS bucket,\n"
        "  sum(CASE WHEN x.c > y.c THEN 1 ELSE 0 END) AS won,\n"
        "  sum(CASE WHEN x.c < y.c THEN 1 ELSE 0 END) AS lost,\n"
        "  sum(CASE WHEN x.c = y.c THEN 1 ELSE 0 END) AS tied\n"
        "FROM by_team AS x JOIN by_team AS y\n"
        "  ON x.rd_search = y.rd_search AND x.rd_team < y.rd_team\n"
        "GROUP BY x.rd_team, y.rd_team, x.bucket"
    )


def _of_two(found: Any, a: str, b: str, level: float) -> Wins:
    these = (found["a"] == a) & (found["b"] == b)
    if not these.any():
        raise NoUsablePairs(f"No search has results of both {a!r} and {b!r}.")
    bucket = found["bucket"][these].astype(np.int64)
    won, lost, tied = (
        np.bincount(bucket, found[name][these].astype(float), minlength=BUCKETS).astype(np.int64)
        for name in ("won", "lost", "tied")
    )
    return Wins(a, b, won, lost, tied, level)
