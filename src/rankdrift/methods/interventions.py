"""Interventions nobody made: pairs that appeared at two ranks, collected for each two ranks.

The interventional set of ranks k and k' has the pairs of query and doc that were shown at both
(Agarwal et al., WSDM 2019). What it says of rank k is Σ over its pairs of clicks at k over
appearances at k, and the same of misses: every pair counts once, however often it was shown.
"""

from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption, NoUsablePairs
from rankdrift.core.types import Floats, Ints, Ranks
from rankdrift.counts.counts import BUCKETS
from rankdrift.counts.tables import UNIT
from rankdrift.harvesting import pairs as pair_steps
from rankdrift.harvesting.pairs import bucket_sql, same_pair
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql.plan import CELLS, KNOWN, RESULT, Planner, Step
from rankdrift.methods.tallies import collect

MAX_RANK = 10
DEEPEST = 100  # ranks; the sets are two for each two ranks


@dataclass(frozen=True, eq=False)
class Interventions:
    """The interventional sets of ranks 1 to R, by bucket of queries.

    clicks (G, R, R): [g, k, l] is the sum over pairs shown at both k and l of their clicks at k
    over their appearances at k; pairs (G, R, R), how many pairs those are, symmetric;
    shown, clicked (G, R): pairs that appeared at a rank and elsewhere too, and their clicks there;
    unclicked: whether pairs that never got a click are among them.
    """

    clicks: Floats
    pairs: Floats
    shown: Ints
    clicked: Ints
    unclicked: bool = True

    @property
    def misses(self) -> Floats:
        """(G, R, R): the same of misses."""
        return self.pairs - self.clicks

    @property
    def ranks(self) -> Ranks:
        """(R,): 1 to R."""
        return np.arange(1, self.shown.shape[1] + 1, dtype=np.int32)

    @property
    def buckets(self) -> int:
        """G."""
        return len(self.shown)


def find_interventions(
    log: Log,
    *,
    max_rank: int = MAX_RANK,
    unclicked: bool = True,
    buckets: int = BUCKETS,
    progress: Progress | None = None,
) -> Interventions:
    """Collect the interventional sets: the pairs shown at both of two ranks, for every two.

    A pair shown at m of these ranks is in m (m - 1) / 2 sets.

    Parameters
    ----------
    log
        From `read_log`.
    max_rank
        The deepest rank, from 2 to 100.
    unclicked
        Whether to collect pairs without a click too, as `all_pairs` needs: that is every pair shown
        at two of these ranks, so it costs a GROUP BY over all rows down to `max_rank`, where a
        harvest looks at clicked pairs only.
    buckets
        Of queries, to tell errors by leaving out each.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    Interventions

    Raises
    ------
    NoUsablePairs
        If no pair was shown at two of these ranks.
    """
    if not 2 <= max_rank <= DEEPEST:
        raise BadOption(f"max_rank must be from 2 to {DEEPEST} here, not {max_rank}.")

    def steps(p: Planner) -> list[Step]:
        return [*row_steps.steps(p)[:-1], *_steps(p, max_rank, unclicked, buckets)]

    found = collect(log, steps, progress=progress)
    bucket, rank, other = (found[name].astype(int) for name in ("bucket", "rank", "other"))
    clicks, pairs = (np.zeros((buckets, max_rank, max_rank)) for _ in range(2))
    both = other > 0
    place = (bucket[both], rank[both] - 1, other[both] - 1)
    clicks[place], pairs[place] = found["clicks"][both] / UNIT, found["pairs"][both]
    shown, clicked = (np.zeros((buckets, max_rank), np.int64) for _ in range(2))
    place_alone = (bucket[~both], rank[~both] - 1)
    shown[place_alone], clicked[place_alone] = found["pairs"][~both], found["clicks"][~both]
    if not pairs.any():
        raise NoUsablePairs(
            f"No pair of query and doc was shown at two of the ranks 1 to {max_rank}: with one "
            "ranker whose order never changes there are no interventions to find. Add days or "
            "traffic from another ranker, leave columns out of --query and --same, or use a "
            "larger max_rank."
        )
    deepest = int(np.flatnonzero(shown.any(axis=0)).max()) + 1  # a log may end before max_rank
    inside = np.s_[:, :deepest]
    return Interventions(
        clicks[:, :deepest, :deepest],
        pairs[:, :deepest, :deepest],
        shown[inside],
        clicked[inside],
        unclicked,
    )


def _steps(p: Planner, max_rank: int, unclicked: bool, buckets: int) -> list[Step]:
    p, top = p.but(numbered=not unclicked), f"rank <= {max_rank}"
    double = p.dialect.double
    share = (
        f"floor(CAST(a.c AS {double}) * CAST({UNIT} AS {double}) / CAST(a.n AS {double})"
        f" + CAST(0.5 AS {double}))"
    )
    pair = ", ".join(p.pair)
    several = f"(SELECT {pair} FROM {CELLS} GROUP BY {pair} HAVING count(*) > 1) AS several"
    if p.numbered:
        several += f" JOIN {KNOWN} ON {same_pair(p, 'several', KNOWN)}"
    named = ", ".join(f"several.{column}" for column in p.pair)
    return [
        *pair_steps.appearances(p, "click > 0 AND ok", also=top),
        Step(CELLS, pair_steps.cells(p), keep=True),
        Step("moved", f"SELECT {named}, {bucket_sql(p, buckets)} AS bucket FROM {several}"),
        Step(
            "sides",
            f"SELECT {CELLS}.*, bucket FROM {CELLS} JOIN moved ON {same_pair(p, CELLS, 'moved')}",
            keep=True,
        ),
        Step(
            RESULT,
            "SELECT a.bucket AS bucket, a.rank AS rank, b.rank AS other, count(*) AS pairs,"
            f" sum(CAST({share} AS BIGINT)) AS clicks\n"
            f"FROM sides AS a JOIN sides AS b ON {same_pair(p, 'a', 'b')} AND a.rank <> b.rank\n"
            "GROUP BY a.bucket, a.rank, b.rank\nUNION ALL\n"
            "SELECT bucket, rank, 0 AS other, count(*) AS pairs, sum(c) AS clicks\n"
            "FROM sides GROUP BY bucket, rank",
        ),
    ]
