"""Log + click model -> what is known of every pair.

A model that is fitted to the searches of a log says of each result how likely it was looked at, in
the search it was in: less, for one, below a click that may have ended it. Summed over a pair's
appearances that is its exposure, and all else is as with a curve. Queries are dealt into parts, a
model is fitted to each, and only sums are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankdrift.clickmodels.model import ClickModel
from rankdrift.clickmodels.models import MODELS, judging_models
from rankdrift.clickmodels.reading import MOST_SEARCHES, Part, Parts
from rankdrift.core.database import connect
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.types import Floats
from rankdrift.core.words import many
from rankdrift.judging.exposures import UNIT, Exposures
from rankdrift.judging.statistics import Statistics
from rankdrift.judging.summing import SHARE_UNIT, Shown, fetch_sums
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql.plan import RESULT_TABLE, SCHEMA

_SEEN = 1e-6  # a result that was looked at less likely than this was not
_SUMS = ("n", "c", "p", "p2", "share")


def read_modelled(
    log: Log, model: str, *, searches: int = MOST_SEARCHES, progress: Progress | None = None
) -> Statistics:
    """Fit a click model, and add up what it says of every pair.

    Parameters
    ----------
    log
        From `read_log`; it must tell searches apart.
    model
        The name of one of `rankdrift.clickmodels.models.MODELS` that tells looks from docs.
    searches
        About how many to fit it to at once.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    """
    kind = MODELS.get(model)
    if model not in judging_models():
        raise BadOption(
            f"The model {model} does not tell what users look at from what they want, so it tells "
            f"no relevance. Take one of {', '.join(judging_models())}."
        )
    parts = Parts(log, searches, progress)
    queries = [f"q{i + 1}" for i in range(len(log.roles.query))]
    impossible = 0
    with connect(threads=1) as con:
        con.execute(f"CREATE SCHEMA {SCHEMA}")
        texts = ", ".join(f"{name} VARCHAR" for name in (*queries, "doc"))
        numbers = ", ".join(f"{name} DOUBLE" for name in _SUMS)
        con.execute(f"CREATE TABLE {RESULT_TABLE} (pairs BIGINT, {texts}, {numbers})")
        for part in parts:
            sums, lost = _sums(kind, part)
            impossible += lost
            shown = sums["n"] > 0
            con.register("rd_part", {n: x[shown] for n, x in {**part.names, **sums}.items()})
            listed = ", ".join((*queries, "doc", *_SUMS))
            con.execute(f"INSERT INTO {RESULT_TABLE} SELECT 1, {listed} FROM rd_part")
            con.unregister("rd_part")
        columns = Shown((), queries, (), {}, log.engine.dialect)
        found = fetch_sums(con, columns, Exposures((), (), 0, False))
    if not found.clicks.any():
        raise BadLog(
            f"None of the {parts.funnel.used.rows:,} results shown was clicked where the model "
            f"{model} takes it for seen, so nothing tells docs apart. Take another model."
        )
    return replace(
        found, funnel=parts.funnel, remarks=_left_out(model, impossible) if impossible else ()
    )


def _sums(kind: type[ClickModel], part: Part) -> tuple[dict[str, Floats], int]:
    """The sums of every pair, and how many clicks were on what nobody looked at."""
    searches = part.searches
    looked = kind.fit(searches).looked_at(searches)
    assert looked is not None
    seen = looked > _SEEN
    pair, look = searches.pair[seen], looked[seen]

    def total(weights: Floats) -> Floats:
        return np.bincount(pair, weights, searches.pairs).astype(float)

    clicks, shown = total(searches.click[seen].astype(float)), searches.by_pair[1]
    # As whole units, which is how sums come home from an engine.
    units = {"n": shown, "c": clicks, "p": total(look), "p2": total(look**2)}
    sums = {name: np.maximum(np.rint(x * UNIT), name[0] == "p") for name, x in units.items()}
    most = np.zeros(int(searches.query_of_pair.max()) + 1)
    np.maximum.at(most, searches.query_of_pair, shown)
    sums["share"] = np.rint(shown / np.maximum(most[searches.query_of_pair], 1.0) * SHARE_UNIT)
    return sums, int((searches.click & ~seen).sum())


def _left_out(model: str, clicks: int) -> tuple[str, ...]:
    return (
        f"{many(clicks, 'click')} on what nobody looked at, by the model {model}, are left out: "
        "another may be right.",
    )
