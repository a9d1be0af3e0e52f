"""FairPairs: which of two neighbours users prefer, whatever rank does to a click.

Two docs that stand next to each other are swapped half of the time. Whichever is the lower one, a
click on it is a vote for it over the one above, and both stand below equally often: the doc that is
clicked more often when it is below is the better one (Radlinski and Joachims, AAAI 2006).
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.dialects import dialect
from rankdrift.core.errors import BadOption, MissingColumns, NoUsablePairs
from rankdrift.core.files import replacing
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats, Ints
from rankdrift.core.words import cell, many
from rankdrift.experiments.analysing import ORIGINAL, RANDOMISED, unit_column
from rankdrift.experiments.designs import digits_sql, pair_sql
from rankdrift.experiments.experiment import Experiment
from rankdrift.log.log import Log
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import RESULT, ROWS_SHOWN, Planner, Step
from rankdrift.methods.tallies import collect, says_yes, with_randomised

PRIOR = 2.0  # appearances at the common rate that each doc is given to begin with
SURE = 0.95
_NUMBERS = ("shown_below", "clicks", "other_shown_below", "other_clicks")


@dataclass(frozen=True, eq=False)
class Preferences:
    """Pairs of docs that stood next to each other, the preferred one first, the surest above.

    queries (N, Q); doc, other (N,); shown_below, clicks, other_shown_below, other_clicks (N,): how
    often each was the lower one, and clicked there; probability (N,), that `doc` is the better one.
    """

    query_columns: tuple[str, ...]
    queries: NDArray[Any]
    doc: NDArray[Any]
    other: NDArray[Any]
    shown_below: Ints
    clicks: Ints
    other_shown_below: Ints
    other_clicks: Ints
    probability: Floats

    @property
    def sure(self) -> int:
        """How many are likelier than 95%."""
        return int((self.probability > SURE).sum())

    def __repr__(self) -> str:
        return brief(
            self, many(len(self.doc), "pair") + " of docs", f"{self.sure:,} beyond {SURE:.0%}"
        )

    def to_dict(self) -> dict[str, Any]:
        """How many there are, for JSON."""
        return {"pairs": len(self.doc), "sure": self.sure}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .csv, whole or not at all; what would be a formula has a backslash before it."""
        if not os.fspath(path).endswith(".csv"):
            raise BadOption(f"Preferences are written as .csv, not {path}.")
        numbers = [getattr(self, name).tolist() for name in _NUMBERS]
        rows = zip(
            self.queries.tolist(),
            self.doc.tolist(),
            self.other.tolist(),
            self.probability.round(4).tolist(),
            *numbers,
            strict=True,
        )
        with replacing(path) as part, open(part, "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([*map(cell, self.query_columns), "doc", "other", "probability", *_NUMBERS])
            for query, doc, other, *rest in rows:
                texts = ("" if text is None else cell(str(text)) for text in (*query, doc, other))
                out.writerow([*texts, *rest])


@names_checked
def prefer(
    log: Log, experiment: Experiment, *, original: str = ORIGINAL, randomised: str = RANDOMISED
) -> Preferences:
    """Which of two neighbours users prefer, from the log of an experiment with FairPairs.

    Parameters
    ----------
    log
        As for `analyse`; it must tell searches apart.
    experiment
        As it was planned.
    original, randomised
        The columns with the rank before, and with what took part.
    """
    if experiment.design["kind"] != "fairpairs":
        raise BadOption(
            f"Preferences come from FairPairs, and {experiment.name!r} is another design "
            f"({experiment.design['kind']})."
        )
    if not log.roles.search:
        raise MissingColumns(
            "Preferences compare results of one search, and the log has no column that tells "
            "searches apart. Name it: --search COLUMN."
        )
    unit = unit_column(log, experiment)
    log = with_randomised(log)
    p = log.planner()
    before, _ = values.rank(*p.column(original), p.dialect)
    place = f"(CAST({before} AS BIGINT) + {1 - log.rules.first_rank})"
    ids = values.as_text(*p.column(unit), p.dialect)
    digits = digits_sql(dialect(p.dialect.name), experiment.salt, ids)
    carry = {
        "rd_start": pair_sql(experiment.design, place, digits),
        "rd_flagged": says_yes(log, randomised),
        "rd_search": values.as_text(*p.column(str(log.roles.search)), p.dialect),
    }
    found = collect(log, _steps, carry=carry)
    if not len(found["n_a"]):
        raise NoUsablePairs("No two neighbours that took part are both in the log.")
    a, b = ((found[f"n_{x}"].astype(float), found[f"c_{x}"].astype(float)) for x in "ab")
    rate = (a[1].sum() + b[1].sum() + 0.5) / (a[0].sum() + b[0].sum() + 1)
    better = _probability(a, b, float(rate))
    turned = better < 0.5
    sure = np.where(turned, 1 - better, better)
    order = np.argsort(-sure, kind="stable")
    queries = np.stack([found[name].astype(object) for name in p.queries], axis=1)

    def pick(first: str, second: str) -> NDArray[Any]:
        return np.asarray(np.where(turned, found[second], found[first])[order])

    return Preferences(
        tuple(log.roles.query),
        queries[order],
        pick("a", "b"),
        pick("b", "a"),
        pick("n_a", "n_b").astype(np.int64),
        pick("c_a", "c_b").astype(np.int64),
        pick("n_b", "n_a").astype(np.int64),
        pick("c_b", "c_a").astype(np.int64),
        sure[order],
    )


def _steps(p: Planner) -> list[Step]:
    names = ", ".join(p.queries)
    first = "CASE WHEN upper_doc < lower_doc THEN upper_doc ELSE lower_doc END"
    second = "CASE WHEN upper_doc < lower_doc THEN lower_doc ELSE upper_doc END"
    below_a, below_b = "lower_doc < upper_doc", "lower_doc > upper_doc"

    def count(condition: str) -> str:
        return f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)"

    return [
        *row_steps.steps(p)[:-1],
        Step(
            "neighbours",
            f"SELECT {names}, rd_search, rd_start,\n"
            "  max(CASE WHEN rank = rd_start THEN doc END) AS upper_doc,\n"
            "  max(CASE WHEN rank = rd_start + 1 THEN doc END) AS lower_doc,\n"
            "  max(CASE WHEN rank = rd_start + 1 AND click > 0 THEN 1 ELSE 0 END) AS clicked\n"
            f"FROM {ROWS_SHOWN} WHERE ok AND rd_flagged AND rd_start IS NOT NULL\n"
            f"GROUP BY {names}, rd_search, rd_start HAVING count(*) = 2",
        ),
        Step(
            RESULT,
            f"SELECT {names}, {first} AS a, {second} AS b,\n"
            f"  {count(below_a)} AS n_a, {count(f'{below_a} AND clicked = 1')} AS c_a,\n"
            f"  {count(below_b)} AS n_b, {count(f'{below_b} AND clicked = 1')} AS c_b\n"
            "FROM neighbours WHERE upper_doc IS NOT NULL AND lower_doc IS NOT NULL\n"
            f"GROUP BY {names}, {first}, {second}",
        ),
    ]


def _probability(a: tuple[Floats, Floats], b: tuple[Floats, Floats], rate: float) -> Floats:
    """(N,), that the first is clicked more often below than the second: Beta with the common rate
    as its mean, the difference taken as normal."""
    from scipy.special import ndtr

    means, spreads = [], []
    for shown, clicked in (a, b):
        won, lost = clicked + PRIOR * rate, shown - clicked + PRIOR * (1 - rate)
        total = won + lost
        means.append(won / total)
        spreads.append(won * lost / (total**2 * (total + 1)))
    return np.asarray(ndtr((means[0] - means[1]) / np.sqrt(spreads[0] + spreads[1])))
