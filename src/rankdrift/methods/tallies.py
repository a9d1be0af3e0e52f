"""What the other estimators need of a log, counted inside its engine by bucket of queries.

Rows are read, and pairs told apart, as a harvest does it; buckets are the same ones, so that
curves of different estimators can be compared query by query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, MissingColumns, did_you_mean
from rankdrift.core.types import Ints, Ranks
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS
from rankdrift.harvesting import pairs as pair_steps
from rankdrift.harvesting.pairs import bucket_of, bucket_sql, same_pair
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import (
    CELLS,
    KNOWN,
    RESULT,
    RESULT_TABLE,
    ROWS_SHOWN,
    Plan,
    Planner,
    Step,
)
from rankdrift.log.sql.rows import DROP_CODES, rows_query
from rankdrift.methods.rank_times_stratum import Strata


@dataclass(frozen=True, eq=False)
class Tally:
    """impressions and clicked impressions (G, R) of ranks 1 to R, by bucket of queries."""

    impressions: Ints
    clicks: Ints

    @property
    def ranks(self) -> Ranks:
        """(R,): 1 to R."""
        return np.arange(1, self.clicks.shape[1] + 1, dtype=np.int32)


def tally(
    log: Log,
    *,
    randomised: str | None = None,
    buckets: int = BUCKETS,
    progress: Progress | None = None,
) -> Tally:
    """Count impressions and clicks by rank and bucket of queries, for `ctr` and `experiment`.

    Parameters
    ----------
    log
        From `read_log`.
    randomised
        A column that says yes or no; only rows where it says yes are counted.
    buckets
        Of queries, to tell errors by leaving out each.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    """
    keep = " AND rd_randomised" if randomised else ""

    def steps(p: Planner) -> list[Step]:
        return clicks_by_rank(p, buckets, keep)

    carry = {"rd_randomised": says_yes(log, randomised)} if randomised else {}
    found = collect(
        with_randomised(log) if randomised else log, steps, carry=carry, progress=progress
    )
    size = int(found["rank"].max(initial=0))
    impressions, clicks = (np.zeros((buckets, size), np.int64) for _ in range(2))
    place = (found["bucket"].astype(int), found["rank"].astype(int) - 1)
    impressions[place], clicks[place] = found["n"], found["c"]
    return Tally(impressions, clicks)


def clicked_pairs(
    log: Log,
    *,
    max_rank: int,
    buckets: int = BUCKETS,
    progress: Progress | None = None,
) -> Strata:
    """Count clicks and misses by rank of every pair with a click, for `em`.

    That is all that the model with a relevance for each pair can learn from, for a pair without a
    click has relevance 0 whatever the propensities. Pairs to which the same happened in one bucket
    are one stratum with a multiple of the clicks.

    Parameters
    ----------
    log
        From `read_log`.
    max_rank
        Deeper ranks are left out.
    buckets
        Of queries, to tell errors by leaving out each.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    """

    def steps(p: Planner) -> list[Step]:
        pair, top = ", ".join(p.pair), f"rank <= {max_rank}"
        what = p.dialect.collect.format("concat(rank, ':', n, ':', c)")
        return [
            *row_steps.steps(p)[:-1],
            *pair_steps.appearances(p, f"click > 0 AND ok AND {top}", also=top),
            Step(CELLS, pair_steps.cells(p)),
            Step(
                "happenings",
                f"SELECT {pair}, {what} AS happened FROM {CELLS} GROUP BY {pair} HAVING sum(c) > 0",
            ),
            Step(
                "strata",
                f"SELECT {bucket_sql(p, buckets)} AS bucket, happened FROM happenings\n"
                f"JOIN {KNOWN} ON {same_pair(p, 'happenings', KNOWN)}",
            ),
            Step(
                RESULT,
                "SELECT bucket, happened, count(*) AS pairs FROM strata GROUP BY bucket, happened",
            ),
        ]

    cells = (
        "SELECT stratum, CAST(bucket AS BIGINT) AS bucket, pairs,"
        " CAST(split_part(cell, ':', 1) AS BIGINT) AS rank,"
        " CAST(split_part(cell, ':', 2) AS BIGINT) AS n,"
        " CAST(split_part(cell, ':', 3) AS BIGINT) AS c\n"
        "FROM (SELECT row_number() OVER (ORDER BY bucket, happened) - 1 AS stratum, bucket, pairs,"
        f" unnest(string_split(happened, ' ')) AS cell FROM {RESULT_TABLE}) ORDER BY stratum, rank"
    )
    found = collect(log, steps, select=cells, progress=progress)
    ranks, rank = np.unique(found["rank"].astype(np.int32), return_inverse=True)
    many = found["pairs"].astype(float)
    clicks = many * found["c"]
    return Strata(
        ranks,
        found["stratum"].astype(np.intp),
        rank,
        found["bucket"].astype(np.intp),
        clicks,
        many * found["n"] - clicks,
        buckets,
    )


def clicks_by_rank(
    p: Planner, buckets: int, keep: str, *more: str, cluster: str | None = None
) -> list[Step]:
    """Steps whose result has impressions `n` and clicked ones `c` by bucket, `more` columns and
    rank, of usable rows that also meet `keep` (SQL that begins with AND, or nothing). Buckets are
    of queries, or of the texts in the column `cluster`."""
    # Fewer texts to hash: a query's rows at a rank are one.
    names, by = cluster or ", ".join(p.queries), ", ".join((*more, "rank"))
    bucket = bucket_of(p, cluster, buckets) if cluster else bucket_sql(p, buckets)
    return [
        *row_steps.steps(p)[:-1],
        Step(
            "by_query",
            f"SELECT {names}, {by}, count(*) AS n,"
            " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END) AS c\n"
            f"FROM {ROWS_SHOWN} WHERE ok{keep} GROUP BY {names}, {by}",
        ),
        Step(
            RESULT,
            f"SELECT {bucket} AS bucket, {by}, sum(n) AS n, sum(c) AS c\n"
            f"FROM by_query GROUP BY {bucket}, {by}",
        ),
    ]


def collect(
    log: Log,
    steps: Callable[[Planner], Sequence[Step]],
    *,
    carry: dict[str, str] | None = None,
    select: str = f"SELECT * FROM {RESULT_TABLE}",
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]:
    """Run a plan whose last step is `result`, and take what `select` makes of it."""
    probe(log)
    # When pairs were shown does not matter here.
    planner = log.planner(roles=replace(log.roles, time=None), carry=carry or {})
    _refuse_zeros(log, planner)
    connection = log.engine.run(Plan(tuple(steps(planner))), progress)
    found = connection.execute(select).fetchnumpy()
    return {name: np.ma.getdata(column) for name, column in found.items()}


def _refuse_zeros(log: Log, planner: Planner) -> None:
    if log.rules.first_rank == 0 or log.layout.rank_is_place:
        return
    code = DROP_CODES["rank_zero"]
    refuse_rank_zero(
        log,
        log.engine.query(
            rows_query(
                planner, f"SELECT count(*) FROM {ROWS_SHOWN} WHERE rank = 0 AND fate = {code}"
            )
        )[0][0],
    )


def says_yes(log: Log, column: str) -> str:
    """SQL: does this column say yes (true, 1, yes)? Missing is no."""
    columns = log.engine.columns
    if column not in columns:
        raise MissingColumns(
            f"The log has no column {column!r} that tells randomised rows."
            f"{did_you_mean(column, columns)} It has {', '.join(list(columns)[:20])}."
        )
    planner = log.planner()
    sql, kind = planner.column(column)
    _, bad = values.click(sql, kind, planner.dialect)
    if bad != "FALSE":
        shown = planner.dialect.text.format(sql)
        odd = log.engine.query(
            f"SELECT {shown}, count(*) FROM {planner.source} WHERE {bad} GROUP BY {shown}"
            " ORDER BY count(*) DESC LIMIT 5"
        )
        if odd:
            said = ", ".join(f"{text!r} ({many(n, 'row')})" for text, n in odd)
            raise BadOption(
                f"The column {column!r} must say yes or no of every row (true, 1 or yes), but it "
                f"says {said}. Make a column of that, or read only the randomised rows (--where)."
            )
    return values.says_yes(sql, kind, planner.dialect)


def with_randomised(log: Log) -> Log:
    """The log with its randomised rows, if they were to be kept apart."""
    return replace(log, rules=replace(log.rules, randomised_apart=False))
