"""What an estimate with trust needs: comparisons of all pairs, clicked or not, by how often their
docs were clicked on other days.

To leave out pairs without a click would be to choose by the click, which shifts what a rank seems
to add to it. So every row of the log goes through here, and this is done on request only.
`counts.tables.Splits` tells what the rows of the split `trust` are.
"""

from itertools import pairwise

from rankdrift.core.rank_blocks import fine_blocks
from rankdrift.counts.tables import UNIT
from rankdrift.harvesting.pairs import bucket_sql, named, same_pair
from rankdrift.harvesting.ranks import RANKS, RATE, double, rounded, share
from rankdrift.harvesting.splits import AS_USUAL, SplitRows
from rankdrift.log.sql.plan import ROWS_SHOWN, Planner, Step

STEPS, MOST = 4, 16  # of the logarithm of clicks over usual ones, and how many to either side

ALL_TWICE = "all_twice"  # docs shown twice in one search
ALL_CELLS = "all_cells"  # pairs by rank: how often shown, how often clicked
ALL_PAIRS = "all_pairs"  # those that moved, by their clicks on other days
TRUSTED = "trusted"  # their comparisons, summed by blocks of ranks


def steps(p: Planner, buckets: int) -> list[Step]:
    """From rows shown to sums of comparisons; after `ranks.step`.

    Parameters
    ----------
    p
        Says what a pair is; the log must have days.
    buckets
        Groups that queries are split into.
    """
    keys = p.but(numbered=False)
    twice = [Step(ALL_TWICE, _twice(keys), keep=True)] if keys.has_search else []
    return [
        *twice,
        Step(ALL_CELLS, _cells(keys), keep=True),
        Step(ALL_PAIRS, _pairs(keys, buckets), keep=True),
        Step(TRUSTED, _compared(keys), keep=True, settled=True),
    ]


def rows(p: Planner) -> SplitRows:
    """What the result has of it, after `steps`."""
    sums = {"n": "weight", "clicks": "0", "pairs": "value"}
    return SplitRows(TRUSTED, p.dialect.literal("trust"), sums=sums, present="pairs")


def _twice(p: Planner) -> str:
    names = ", ".join([*p.keys, "search"])
    return (
        f"SELECT {names} FROM {ROWS_SHOWN} WHERE ok AND search IS NOT NULL\n"
        f"GROUP BY {names} HAVING count(*) > 1"
    )


def _cells(p: Planner) -> str:
    keys, without = ", ".join(p.keys), ""
    if p.has_search:
        without = (
            f" AND NOT EXISTS (SELECT 1 FROM {ALL_TWICE} WHERE"
            f" {same_pair(p, ALL_TWICE, ROWS_SHOWN)} AND {ALL_TWICE}.search = {ROWS_SHOWN}.search)"
        )
    return (
        f"SELECT {keys}, CAST(rank AS BIGINT) AS rank, count(*) AS n,"
        " CAST(sum(CASE WHEN click > 0 THEN 1 ELSE 0 END) AS BIGINT) AS c\n"
        f"FROM {ROWS_SHOWN} WHERE ok{without} GROUP BY {keys}, rank"
    )


def _pairs(p: Planner, buckets: int) -> str:
    """m appearances of each pair that moved and was shown on other days too, its bucket, and its
    `part`: in which of the groups of the split it is."""
    keys = ", ".join(f"{ALL_CELLS}.{key}" for key in p.keys)
    names = ", ".join(p.keys)
    summed = (
        f"SELECT {named(ALL_CELLS, p.keys)}, CAST(sum(n) AS BIGINT) AS m,"
        " CAST(sum(c) AS BIGINT) AS c, CAST(sum(n * rate) AS BIGINT) AS e,"
        f" min({ALL_CELLS}.rank) AS lowest, max({ALL_CELLS}.rank) AS highest\n"
        f"FROM {ALL_CELLS} JOIN {RANKS} ON {RANKS}.rank = {ALL_CELLS}.rank GROUP BY {keys}"
    )
    item = f"OVER (PARTITION BY {', '.join([*p.queries, 'doc', *p.segments])})"
    others = ", ".join(f"CAST(sum({x}) {item} AS BIGINT) - {x} AS other_{x}" for x in "mce")
    usual = double(p, AS_USUAL * RATE)
    over = f"({double(p, f'other_c * {RATE}')} + {usual}) / ({double(p, 'other_e')} + {usual})"
    size = f"least({MOST}, greatest(-{MOST}, {rounded(p, f'ln({over}) * {double(p, STEPS)}')}))"
    return (
        f"SELECT {names}, m, {bucket_sql(p, buckets)} AS bucket, {size} + {MOST} AS part\n"
        f"FROM (SELECT *, {others} FROM ({summed}) AS summed) AS beside\n"
        "WHERE lowest < highest AND other_m > 0"
    )


def _compared(p: Planner) -> str:
    """Each rank a of a pair over each other rank b, whether clicked or not."""
    firsts = fine_blocks(p.rules.max_rank).tolist()
    cases = " ".join(f"WHEN {{0}} < {later} THEN {first}" for first, later in pairwise(firsts))

    def block(rank: str) -> str:
        return f"CASE {cases.format(rank)} ELSE {firsts[-1]} END" if cases else "1"

    fields = [*(f"p.{g} AS {g}" for g in p.segments), "bucket", "part"]
    fields += [f"{block('a.rank')} AS clicked", f"{block('b.rank')} AS other"]
    fields.append(f"{share(p, 'a.c * b.n', UNIT, 'm - 1')} AS weight")
    fields.append(f"{share(p, 'a.n * b.n', UNIT, 'm - 1')} AS value")
    each = (
        f"SELECT {', '.join(fields)}\n"
        f"FROM {ALL_PAIRS} AS p JOIN {ALL_CELLS} AS a ON {same_pair(p, 'p', 'a')}\n"
        f"JOIN {ALL_CELLS} AS b ON {same_pair(p, 'p', 'b')} AND a.rank <> b.rank"
    )
    keys = ", ".join([*p.segments, "bucket", "part", "clicked", "other"])
    return (
        f"SELECT {keys}, CAST(sum(weight) AS BIGINT) AS weight,"
        f" CAST(sum(value) AS BIGINT) AS value\nFROM ({each}) AS each_two\n"
        f"WHERE clicked <> other GROUP BY {keys}"
    )
