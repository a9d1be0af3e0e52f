"""inspect: can this log support an estimate, and if not, what would help?"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.rank_blocks import ONE_TWO_FIVE
from rankdrift.core.verdicts import Fitness
from rankdrift.core.words import figure, many, margin, named_ranks, ranges, share, verb
from rankdrift.counts.connection import Connection, connection
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.advice import (
    how_to_get_pairs,
    what_more,
    why_no_pairs,
    worth_segmenting,
)
from rankdrift.diagnosis.ways import FEW, THIN, TOO_FEW, Way, Ways, as_asked, flags, try_ways
from rankdrift.harvesting.counting import count
from rankdrift.harvesting.plan import Sizes
from rankdrift.harvesting.taking import take_log
from rankdrift.log.columns import EXTRAS, TEXT_KINDS, ColumnKind
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import ROWS_SHOWN
from rankdrift.log.sql.rows import rows_query

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

WORTH_LOGGING = {
    "score": "the ranker's score of each result: tells whether docs moved because they got better",
    "ranker": "its version or the arm of a test: an A/B test of rankers tells the bias itself",
    "user": "who searched: tells ranks that differ from users that differ",
    "outcome": "what came of a click, such as a purchase: tells relevance from trust in the rank",
}
"""Columns that make more checks possible, and why."""

SPARK_PAYS = 100_000_000
"""Rows: below, DuckDB on one machine is faster (docs/benchmarks.md has both)."""


@dataclass(frozen=True)
class Support:
    """Clicks that compare the ranks `first` to `last` with others."""

    first: int
    last: int
    impressions: int
    clicks: int
    compared: float

    @property
    def ctr(self) -> float | None:
        """Clicks per impression."""
        return self.clicks / self.impressions if self.impressions else None


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found.

    Parameters
    ----------
    columns
        The kind of each column, by name.
    roles
        The layout, and which column plays which part.
    guessed
        Roles that were guessed: role -> column.
    days_meaning
        What a day is, in words.
    sizes
        How much there is of everything; of queries, docs and searches about so many.
    counts
        The harvest.
    connection
        Which ranks can be compared.
    support
        How many clicks compare them, by blocks of ranks.
    ways
        What the log gives as it was read, and other ways to read it, tried where that gives few
        pairs or too wide an interval.
    remarks
        What is odd about the log.
    verdict
        "good", "weak" or "unfit".
    reasons
        Why.
    advice
        What would help.
    worth_logging
        Columns that the log does not have and that would make more checks possible: role -> why.
    worth_segmenting
        Columns by which curves may differ, and that are not segments yet: name -> what they hold.
    origins
        Of a log in a known format, the fields that its columns come from.
    """

    columns: Mapping[str, ColumnKind]
    roles: Mapping[str, Any]
    guessed: Mapping[str, str]
    days_meaning: str
    sizes: Mapping[str, int | str | None]
    counts: Counts
    connection: Connection
    support: tuple[Support, ...]
    ways: Ways
    remarks: tuple[str, ...]
    verdict: Fitness
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    worth_logging: Mapping[str, str]
    worth_segmenting: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def plot(self, **options: Any) -> "Figure":
        """How often each rank is clicked; its `save` writes .png, .svg or .html."""
        return self.counts.plot(**options)

    def __repr__(self) -> str:
        sizes = [
            f"{value:,} {name}" for name, value in self.sizes.items() if isinstance(value, int)
        ]
        return brief(self, f"{self.verdict}", ", ".join(sizes), *self.reasons[:1])

    def _repr_html_(self) -> str:
        words = " ".join([f"This log is {self.verdict}.", *self.reasons, *self.advice])
        return html_table(["", "how many"], self.sizes.items(), words)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        by_rank = self.counts.pool().by_rank
        return {
            "columns": dict(self.columns),
            "roles": dict(self.roles),
            "guessed": dict(self.guessed),
            "day": self.days_meaning,
            "sizes": dict(self.sizes),
            "funnel": self.counts.funnel.to_dict(),
            "ctr": [
                {"rank": int(r), "impressions": int(n), "clicks": int(c)}
                for r, n, c in zip(by_rank.rank, by_rank.impressions, by_rank.clicks, strict=True)
            ],
            "support": [{**vars(s), "ctr": s.ctr} for s in self.support],
            "ways": self.ways.to_dict(),
            "connected": [list(block) for block in self.connection.blocks],
            "unconnected": list(self.connection.alone),
            "remarks": list(self.remarks),
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "advice": list(self.advice),
            "worth_logging": dict(self.worth_logging),
            "worth_segmenting": dict(self.worth_segmenting),
            "origins": dict(self.origins),
        }


@names_checked
def inspect(
    log: Log | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    progress: Progress | None = None,
) -> Inspection:
    """Look a log over: its columns, its size, what it could compare, and a verdict.

    Parameters
    ----------
    log
        From `read_log`, or a path of it, whose columns have usual names.
    progress
        Called now and then with the name of the step and the fraction of it that is done.
    """
    log = take_log(log)
    remarks = probe(log)
    counts = count(log, Sizes(), progress)
    linked = connection(counts)
    sizes = _sizes(log, counts)
    ways = _ways(log, counts, sizes, progress)
    queries = sizes["queries"]
    verdict, reasons, advice = _judge(
        log, counts, linked, ways, queries if isinstance(queries, int) else None
    )
    empty = _empty(log)
    return Inspection(
        columns={name: column.kind for name, column in log.engine.columns.items()},
        roles={
            **({"format": log.format.name} if log.format else {}),
            "layout": log.layout.name,
            **log.roles.to_dict(),
        },
        guessed=log.guessed,
        days_meaning=log.days,
        sizes=sizes,
        counts=counts,
        connection=linked,
        support=_support(counts),
        ways=ways,
        remarks=(*log.remarks, *remarks, *_asides(log, counts, empty)),
        verdict=verdict,
        reasons=tuple(reasons),
        advice=tuple(advice),
        worth_logging={
            role: why
            for role, why in WORTH_LOGGING.items()
            if not getattr(log.roles, role) or role in empty
        },
        worth_segmenting=worth_segmenting(log),
        origins=log.format.origins if log.format else {},
    )


def _empty(log: Log) -> list[str]:
    """The roles that only checks look at whose column holds nothing."""
    planner = log.planner()
    roles = [role for role in EXTRAS if getattr(log.roles, role)]
    if not roles:
        return []
    columns = (planner.column(getattr(log.roles, role))[0] for role in roles)
    counted = ", ".join(f"count({column})" for column in columns)
    [found] = log.engine.query(f"SELECT {counted} FROM {planner.source}")
    return [role for role, rows in zip(roles, found, strict=True) if not rows]


def _asides(log: Log, counts: Counts, empty: list[str]) -> Iterator[str]:
    """What else is worth knowing of this log."""
    for role in empty:
        yield f"The column {getattr(log.roles, role)!r} ({role}) is empty in every row."
    score = log.roles.score
    if score and "score" not in empty and log.engine.columns[score].kind in TEXT_KINDS:
        planner = log.planner()
        number = values.number(*planner.column(score), planner.dialect)
        [(read, sample)] = log.engine.query(
            f"SELECT count({number}), max({planner.column(score)[0]}) FROM {planner.source}"
        )
        if not read:
            yield (
                f"The column {score!r} (score) holds no number that can be read, but for example "
                f"{str(sample)[:20]!r}. Write numbers with a point, as 3.50."
            )
    strays = counts.funnel.dropped["stray_click"].clicks
    if log.format and strays:
        yield (
            f"{strays:,} of {many(counts.funnel.clicks, 'click')} {verb(strays, 'is', 'are')} on a "
            "result that the log never shows: its impression was not logged, or the click does not "
            f"name its search. {verb(strays, 'It is', 'They are')} left out."
        )
    column, rows = log.roles.randomised, counts.funnel.rows
    if column and "randomised" not in empty and not log.rules.randomised_apart:
        planner = log.planner()
        yes = values.says_yes(*planner.column(column), planner.dialect)
        [(drawn,)] = log.engine.query(f"SELECT count(*) FROM {planner.source} WHERE {yes}")
        if drawn:
            yield (
                f"{many(drawn, 'row')} ({share(drawn, rows)}) {verb(drawn, 'is', 'are')} in random "
                f"order, as {column!r} says: an experiment. `rankdrift compare LOG "
                "--randomised-apart --methods auto,experiment,combined` makes use of it."
            )
    if log.engine.dialect.distributed and rows < SPARK_PAYS:
        yield (
            f"{many(rows, 'row')} {verb(rows, 'is', 'are')} few for Spark: DuckDB, the default "
            "engine, reads so many on one machine in seconds or minutes."
        )


def _ways(log: Log, counts: Counts, sizes: Mapping[str, Any], progress: Progress | None) -> Ways:
    """What it gives as asked; other ways, tried where it may help: nothing does without clicks, or
    where all ranks are the same."""
    by_rank = counts.pool().by_rank
    if not by_rank.clicks.any() or len(by_rank.rank) < 2:
        return Ways()
    asked = as_asked(log, counts)
    if asked.comparisons >= THIN and not asked.wide:
        return Ways((asked,))
    days = (sizes["first_day"], sizes["last_day"]) if sizes["first_day"] else None
    return try_ways(log, counts, asked, days, progress)


def _sizes(log: Log, counts: Counts) -> dict[str, int | str | None]:
    """How much there is of everything; distinct values are estimates (HyperLogLog)."""
    planner = log.planner(rules=replace(log.rules, window=1))
    query = log.engine.dialect.hash.format(", ".join(planner.queries))
    searches = "approx_count_distinct(search)" if log.roles.search else "NULL"
    day = log.engine.dialect.text.format("day")
    days = (f"count(DISTINCT {day})", f"min({day})", f"max({day})")
    n_days, first, last = days if log.roles.day else ("NULL",) * 3
    found = log.engine.query(
        rows_query(
            planner,
            f"SELECT {searches}, approx_count_distinct({query}), approx_count_distinct(doc),"
            f" {n_days}, {first}, {last} FROM {ROWS_SHOWN} WHERE ok",
        )
    )[0]
    names = ("searches", "queries", "docs", "days", "first_day", "last_day")
    sizes = {"rows": counts.funnel.rows, "clicks": counts.funnel.clicks}
    return {**sizes, **dict(zip(names, found, strict=True))}


def _support(counts: Counts) -> tuple[Support, ...]:
    by_rank = counts.pool().by_rank
    choices = counts.choices("every")
    compared = np.bincount(choices.clicked, weights=choices.weight, minlength=counts.max_rank + 1)
    blocks = [(a, min(b, counts.max_rank)) for a, b in ONE_TWO_FIVE if a <= counts.max_rank]
    if counts.max_rank > ONE_TWO_FIVE[-1][1]:
        blocks.append((ONE_TWO_FIVE[-1][1] + 1, counts.max_rank))
    found = []
    for first, last in blocks:
        inside = (by_rank.rank >= first) & (by_rank.rank <= last)
        if inside.any():
            found.append(
                Support(
                    first,
                    last,
                    int(by_rank.impressions[inside].sum()),
                    int(by_rank.clicks[inside].sum()),
                    float(compared[first : last + 1].sum()),
                )
            )
    return tuple(found)


def _judge(
    log: Log, counts: Counts, linked: Connection, ways: Ways, queries: int | None
) -> tuple[Fitness, list[str], list[str]]:
    """Verdict, why, and what to do next."""
    funnel = counts.funnel
    better = _better(ways)
    if funnel.used.pairs == 0:
        return Fitness.UNFIT, [why_no_pairs(counts)], better + how_to_get_pairs(log, counts)
    if not linked.blocks:
        reason = (
            f"{many(counts.n_pairs, 'pair')} moved and got a click, but no two ranks each won a "
            "click over the other, so no two can be compared."
        )
        return Fitness.UNFIT, [reason], better + how_to_get_pairs(log, counts)
    advice: list[str] = []
    more = what_more(counts, queries)
    main, clicks = linked.main, float(counts.choices("every").weight.sum())
    reasons = [
        f"{many(counts.n_pairs, 'pair')} moved between ranks and got "
        f"{many(funnel.used.clicks, 'click')}; these compare {named_ranks(main)}."
    ]
    verdict = Fitness.GOOD
    if len(linked.blocks) > 1:
        others = "; ".join(ranges(block) for block in linked.blocks[1:4])
        reasons.append(f"Other ranks compare only among themselves: {others}.")
    if linked.alone:
        alone, one = linked.alone, len(linked.alone) == 1
        reasons.append(
            f"{many(len(alone), 'rank')} ({ranges(alone)}) never won a click over those, or never "
            f"lost one: by {'itself it' if one else 'themselves they'} cannot be estimated."
        )
    if len(linked.blocks) > 1 or linked.alone:
        advice.append(
            "The default curve joins ranks by its shape; for each rank by itself (--curve direct) "
            f"{more}{_shallower(counts, linked)}."
        )
    unmoved = _unmoved(counts, linked)
    if unmoved:
        one = len(unmoved) == 1
        reasons.append(
            f"{'Rank' if one else 'Ranks'} {ranges(unmoved)} {'was' if one else 'were'} shown, but "
            f"no clicked pair moved to or from {'it' if one else 'them'}."
        )
    worth = (
        f"That is worth {many(round(clicks), 'comparison')}: the ratio of two ranks has a margin "
        f"of {margin(at_best(clicks))} at best"
    )
    if clicks < TOO_FEW:
        verdict = Fitness.UNFIT
        reasons.append(f"{worth}.")
    elif clicks < FEW or len(linked.alone) > len(main):
        verdict = Fitness.WEAK
        reasons.append(f"{worth}, each rank of a curve a wider one.")
    asked = next(iter(ways.tried), None)
    if asked and asked.refused and verdict != Fitness.UNFIT:
        verdict = Fitness.UNFIT
        reasons.append(asked.refused)
    elif asked and asked.rank:
        reasons.append(_expected(asked))
        if asked.wide and verdict == Fitness.GOOD:
            verdict = Fitness.WEAK
        if asked.says_nothing:
            verdict = Fitness.UNFIT
    if verdict != Fitness.GOOD:
        advice = better + advice + how_to_get_pairs(log, counts, queries)
    if not log.roles.day and not log.format:
        advice.append(
            "There is no day column, so a doc's appearances are compared over the whole log; "
            "name one with --day if relevance may change over time."
        )
    elif len(counts.days) == 1 and log.rules.window == 1:
        advice.append("This is one day only; counts of more days add up (rankdrift merge).")
    return verdict, reasons, list(dict.fromkeys(advice))


def _expected(asked: Way) -> str:
    """How well the curve would be known."""
    where = f"{figure(asked.low)} to {figure(asked.high)} for rank {asked.rank} beside rank 1"
    if not asked.wide:
        return f"Expected is an interval of {where}, at 95%."
    rest = "" if asked.says_nothing else " Other ranks can be compared better, as estimate will."
    return f"Too wide to be of use: expected is an interval of {where}, at 95%.{rest}"


def _better(ways: Ways) -> list[str]:
    """What the other ways that were tried come to."""
    asked, best = next(iter(ways.tried), None), ways.best
    if best and asked:
        between = f"{figure(best.low)}–{figure(best.high)}"
        rank = f"rank {best.rank} would be known to {between} of rank 1"
        return [
            f"Read it with {flags(best.options)}: about {many(best.pairs, 'pair')} instead of "
            f"{asked.pairs:,}, and {rank}, if {best.assumes}."
        ]
    if len(ways.tried) > 1 and not any(way.pairs for way in ways.tried):
        return [
            "However it is read, no doc that got a click was shown at two ranks for one query. "
            "Check --query and --doc: ids that are new in every search would do that."
        ]
    if len(ways.tried) > 1:
        return ["Other ways to read it were tried, and give no better curve (see the table)."]
    return []


def _unmoved(counts: Counts, linked: Connection) -> list[int]:
    """Ranks with impressions but without any comparison, down to the deepest that has one."""
    compared = {rank for block in linked.blocks for rank in block} | set(linked.alone)
    shown = counts.by_rank.rank[counts.by_rank.impressions > 0]
    return sorted(set(shown[shown <= max(compared)].tolist()) - compared)


def at_best(clicks: float) -> float:
    """Half width of the 95% interval of a ratio, at best."""
    return float(np.expm1(1.96 * 2 / np.sqrt(clicks)))


def _shallower(counts: Counts, linked: Connection) -> str:
    """The --max-rank that leaves only ranks that can be compared, if that was tried and does."""
    last = _unbroken(linked.main)
    if linked.main[0] != 1 or last < 3:
        return ""
    kept = counts.restrict(max_rank=last)
    found = connection(kept)
    enough = float(kept.choices("every").weight.sum()) >= FEW
    whole = found.main == tuple(range(1, last + 1)) and not found.alone
    return f", or stop at --max-rank {last}" if whole and enough else ""


def _unbroken(main: tuple[int, ...]) -> int:
    """The last rank up to which the main block has no gap."""
    last = main[0]
    for rank in main:
        if rank > last + 1:
            break
        last = rank
    return last


def column_roles(
    found: Inspection,
) -> tuple[list[tuple[str, str, str, str]], list[tuple[str, str]]]:
    """Columns in use as (name, kind, roles, "guessed" or "named"); the others as (name, kind)."""
    roles: dict[str, list[str]] = {}
    for role, value in found.roles.items():
        if role not in ("layout", "format"):
            for name in value if isinstance(value, list) else [value]:
                roles.setdefault(str(name), []).append(role)
    used = [
        (
            name,
            found.columns.get(name, ""),
            ", ".join(of_column),
            found.origins.get(name) or ("guessed" if name in found.guessed.values() else "named"),
        )
        for name, of_column in roles.items()
    ]
    return used, [(name, kind) for name, kind in found.columns.items() if name not in roles]
