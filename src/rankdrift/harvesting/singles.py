"""Pairs that were shown at one rank only, clicked or not: how many, by rank, by how often they were
shown and clicked, and by what was known of their relevance before.

There are many more of them than of pairs that moved, and none is told from another: the table has
no more rows than max_rank × groups × 561, however long the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rankdrift.core.errors import BadOption
from rankdrift.counts.tables import MOST_CUTS, MOST_SHOWN
from rankdrift.harvesting.ranks import double, reached
from rankdrift.log.columns import ColumnKind, resolve
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import ROWS_SHOWN, Planner, Step

SINGLES = "singles"
OPTION = "singles"
"""The name of what was asked for among the options of counts."""
_PRIOR = "prior"  # the column, in rows


@dataclass(frozen=True)
class Singles:
    """What to count of pairs shown at one rank; BadOption for cuts that are none.

    prior: the column that tells of their relevance, if any; cuts: numbers, ascending, at which its
    groups begin. A pair is of the lowest group among its appearances, or of none.
    """

    prior: str | None = None
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if (self.prior is None) != (not self.cuts):
            raise BadOption(
                "--prior, a column of numbers that tells of relevance, and --prior-cuts, where its "
                "groups begin, go together: for example --prior old_score --prior-cuts 0.1,0.2,0.5."
            )
        if len(self.cuts) > MOST_CUTS:
            raise BadOption(f"prior_cuts has {len(self.cuts)} numbers. Use at most {MOST_CUTS}.")
        if any(not isfinite(cut) for cut in self.cuts) or sorted({*self.cuts}) != [*self.cuts]:
            raise BadOption(
                f"prior_cuts is {', '.join(map(str, self.cuts))}. Give numbers that ascend."
            )

    def described(self) -> dict[str, Any]:
        """As plain values, which counts keep."""
        return {"prior": self.prior, "cuts": list(self.cuts)}


def check(wanted: Singles | None, columns: Mapping[str, Any]) -> None:
    """Raise MissingColumns if the log does not have the column."""
    if wanted and wanted.prior:
        resolve(wanted.prior, columns, _PRIOR)


def carried(p: Planner, wanted: Singles | None) -> dict[str, str]:
    """What rows carry along: name -> SQL on `shown_source`."""
    if not wanted or not wanted.prior:
        return {}
    return {_PRIOR: _column(p, wanted.prior)[0]}


def _column(p: Planner, name: str) -> tuple[str, ColumnKind]:
    sql, kind = p.column(name)
    if not p.layout.by_place(kind):
        return sql, kind
    return p.dialect.element.format(p.dialect.text_list.format(sql), "rd_place"), "text"


def steps(p: Planner, wanted: Singles | None) -> list[Step]:
    """The step from `rows_shown` to the table; none if it was not asked for.

    A doc twice in one search tells nothing of the one that would have been clicked: its pair is
    left out, as are all rows of it from pairs that moved.
    """
    if not wanted:
        return []
    group = "0"
    if wanted.prior:
        number = values.number(_PRIOR, _column(p, wanted.prior)[1], p.dialect)
        bin_ = reached(number, [double(p, repr(cut)) for cut in wanted.cuts])
        group = f"coalesce(min(CASE WHEN {number} IS NOT NULL THEN 1 + {bin_} END), 0)"
    once = " AND count(search) = count(DISTINCT search)" if p.has_search else ""
    clicked = "sum(CASE WHEN click > 0 THEN 1 ELSE 0 END)"
    names = [*p.segments, "rank", "often", "clicked", "known"]
    of_pair = (
        f"SELECT {', '.join([*p.segments, ''])}min(fate) AS rank, count(*) AS often,"
        f" {clicked} AS clicked, {group} AS known\n"
        f"FROM {ROWS_SHOWN} WHERE ok GROUP BY {', '.join(p.keys)}"
        f" HAVING min(fate) = max(fate){once}"
    )
    # Those shown more often are told by their number alone.
    few = {name: f"CASE WHEN often > {MOST_SHOWN} THEN 0 ELSE {name} END" for name in names[-3:-1]}
    picks = [*names[:-3], *(f"{sql} AS {name}" for name, sql in few.items()), "known"]
    counted = (
        f"SELECT {', '.join(names)}, count(*) AS n\n"
        f"FROM (SELECT {', '.join(picks)} FROM ({of_pair}) AS of_pair) AS few_shown\n"
        f"GROUP BY {', '.join(names)}"
    )
    return [Step(SINGLES, counted, keep=True, adds=True)]
