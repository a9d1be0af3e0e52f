"""From pairs to comparisons of two appearances, split by how the two differ.

`counts.tables.Splits` tells what each split is. All sums are of whole numbers, each rounded once
from doubles of whole numbers, so that engines agree to the last bit and any order gives the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from rankdrift.core.rank_blocks import HALF_OCTAVES
from rankdrift.counts.tables import UNIT
from rankdrift.harvesting import extras
from rankdrift.harvesting.pairs import bucket_sql, of_part, same_pair
from rankdrift.log.sql.plan import (
    APPEARANCES,
    CELLS,
    KNOWN,
    TALLY,
    USED,
    Planner,
    Step,
)

MOST_COMPARED = 32
"""Of a pair with more appearances that have a score, so many are compared with each other."""
LEVEL = 4096  # log2 of a rank is a whole number of 1/LEVEL
FINE = 2**20  # what is a share of something is a whole number of 1/FINE
RATE = 2**30  # and a click rate of 1/RATE
SPREAD = 1.37  # differences of round scores, times this, keep off the powers of four
HATS = range(7)  # of log2 of the rank, HAT apart
HAT = 1.5
HOUR = 3600

RANKS = "ranks"  # every rank: its block, its logarithm, how often it is clicked
COMPARED = "compared"  # each clicked rank of a pair over each other
BLOCKS = "split_blocks"  # the same, summed by blocks of ranks
VISITED = "visited"  # comparisons within users
SCORED = "scored"  # the appearances whose scores are compared
SCORES = "split_scores"  # comparisons by the differences of scores
USUAL = "usual"  # the clicks of pairs with a click, and how many are usual at their ranks
SEVERAL = "several_days"  # the keys of pairs that may have been clicked on several days
ITEM_KEYS = "item_keys"  # the same without the day, numbered
ITEMS = "items"  # which pair is of which
RELEVANCE = "relevance"  # pairs by their clicks on other days
ARM_PAIRS = "arm_pairs"  # pairs by ranker, and how deep it showed them
ARM_CLICKS = "arm_clicks"  # their clicks
ARM_HATS = "arm_hats"  # how deep a ranker showed items on other days
ARMS = "arms"  # pairs by ranker, with that
BY_ARM = "split_arms"  # clicks by rank and by how rankers differ there


@dataclass(frozen=True)
class SplitRows:
    """Rows of the result that one group of a split gives.

    Parameters
    ----------
    split
        One of `counts.tables.SPLITS`.
    source
        The step that they are from.
    given
        SQL of columns of the result, by name.
    sums
        SQL of those that are summed; rows whose first is 0 are left out.
    keys
        What rows are summed by.
    where
        The condition for a row to be summed.
    """

    split: str
    source: str
    given: Mapping[str, str]
    sums: Mapping[str, str]
    keys: Sequence[str]
    where: str = "TRUE"


def steps(p: Planner, buckets: int, max_shown: int, in_parts: bool) -> list[Step]:
    """From pairs to comparisons and their sums.

    Parameters
    ----------
    p
        What it has columns for is split.
    buckets
        Groups that queries are split into.
    max_shown
        Pairs with more appearances are compared whatever there are columns for.
    in_parts
        Whether days are read one by one, to be counted together.
    """
    days = _several_days(p, in_parts)
    found = [Step(RANKS, _ranks(p), keep=True, settled=True)]
    if p.roles.user:
        found.append(Step(VISITED, _visited(p), keep=True, settled=True, adds=True))
    if p.roles.score:
        found.append(Step(SCORED, _scored(p), keep=True, settled=True))
        found.append(Step(SCORES, _scores(p), keep=True, settled=True, adds=True))
    items = _items(p) if days else []
    arms = []
    if days and p.roles.ranker:
        # Only what was clicked on several days is asked for; a part does not know of the others.
        some = (
            APPEARANCES
            if in_parts
            else f"{APPEARANCES} JOIN {ITEMS} ON {same_pair(p, ITEMS, APPEARANCES)}"
        )
        arms = [
            Step(ARM_PAIRS, _arm_pairs(p, some), keep=True, settled=True, adds=True),
            Step(ARM_CLICKS, _arm_clicks(p, some), keep=True, settled=True, adds=True),
        ]
    found += [*arms, *items] if in_parts else [*items, *arms]
    if days:
        found.append(Step(RELEVANCE, _relevance(p), keep=True, settled=True, whole=True))
    if arms:
        found.append(Step(ARM_HATS, _arm_hats(p), keep=True, settled=True, whole=True))
        found.append(Step(ARMS, _arms_moved(p), keep=True, settled=True, whole=True))
        found.append(Step(BY_ARM, _by_arm(p, buckets), keep=True, settled=True, whole=True))
    compared = _compared(p)
    some = f"p.m > {max_shown}" if compared.keys() == {"every"} and not p.roles.day else "TRUE"
    found.append(
        Step(COMPARED, _comparisons(p, compared, days, some), keep=True, settled=True, whole=True)
    )
    if days or len(compared) > 1:
        found.append(
            Step(BLOCKS, _blocks(p, list(compared), days), keep=True, settled=True, whole=True)
        )
    return found


def _several_days(p: Planner, in_parts: bool) -> bool:
    """May what is counted be of more days than one?"""
    return bool(p.roles.day) and (in_parts or p.day is None)


def rows(p: Planner, in_parts: bool) -> Iterator[SplitRows]:
    """What the result has of each split, after `steps`.

    Parameters
    ----------
    p, in_parts
        As for `steps`.
    """
    days = _several_days(p, in_parts)
    ends = ("clicked", "other")
    if days:
        keys = ("bucket", "part", *ends)
        given = {"bucket": "bucket", "drift": "part", "rank": "clicked", "other": "other"}
        yield SplitRows("relevance", BLOCKS, given, _sums("every"), keys, "part IS NOT NULL")
    if p.roles.outcome:
        yield _of_blocks("outcome", "1", "won")
        yield _of_blocks("outcome", "0", "lost")
    if p.roles.user:
        yield _of_blocks("user", "1", "one_user")
        yield _of_blocks("user", "0", "two_users")
    if p.roles.search:
        yield _of_blocks("neighbours", "1", "joined")
        yield _of_blocks("neighbours", "0", "alone")
    if p.roles.day:
        keys = ("query_bucket", "parity", "clicked_octave", "other_octave")
        names = ("bucket", "drift", "rank", "other")
        yield SplitRows(
            "queries", COMPARED, dict(zip(names, keys, strict=True)), _sums("every"), keys
        )
    if p.roles.score:
        keys = ("bucket", "part", *ends)
        given = {"bucket": "bucket", "drift": "part", "rank": "clicked", "other": "other"}
        sums = {"n": "weight", "clicks": "away", "pairs": "value"}
        yield SplitRows("score", SCORES, given, sums, keys)
    if p.roles.ranker and days:
        for i in HATS:
            given = {"bucket": "bucket", "drift": str(i), "rank": "rank", "other": "usual"}
            sums = {"n": f"f{i} * {UNIT // FINE}"}
            yield SplitRows("ranker", BY_ARM, given, sums, ("bucket", "rank", "usual"))


def _of_blocks(split: str, part: str, name: str) -> SplitRows:
    given = {"bucket": "bucket", "drift": part, "rank": "clicked", "other": "other"}
    return SplitRows(split, BLOCKS, given, _sums(name), ("bucket", "clicked", "other"))


def _sums(name: str) -> dict[str, str]:
    return {"n": f"{name}_weight", "clicks": f"{name}_away"}


# -- arithmetic ------------------------------------------------------------------------------------


def share(p: Planner, product: str, unit: int, of: str) -> str:
    """product / of as a whole number of 1/unit, all of them whole numbers.

    Doubles of whole numbers, one division, one rounding: the same on every engine, and whole
    numbers add up to the same in any order.
    """
    times = "" if unit == 1 else f" * {_double(p, unit)}"
    return _rounded(p, f"{_double(p, product)}{times} / {_double(p, of)}")


def _rounded(p: Planner, sql: str) -> str:
    return f"CAST(floor({sql} + {_double(p, 0.5)}) AS BIGINT)"


def _double(p: Planner, sql: object) -> str:
    return f"CAST({sql} AS {p.dialect.double})"


def _case(value: str, limits: Sequence[object]) -> str:
    """How many of the ascending limits a value has reached."""
    cases = " ".join(f"WHEN {value} < {limit} THEN {i}" for i, limit in enumerate(limits))
    return f"CASE {cases} ELSE {len(limits)} END"


def _ranks(p: Planner) -> str:
    """Of each rank: its block, the block that the octave begins with, log2, and the click rate."""
    firsts = [first for first in HALF_OCTAVES if first <= p.rules.max_rank]
    block = _case("fate", firsts[1:])
    octaves = [i - (i > 0 and i % 2 == 0) for i in range(len(firsts))]
    octave = " ".join(f"WHEN {i} THEN {first}" for i, first in enumerate(octaves))
    logarithm = f"ln({_double(p, 'fate')}) / ln({_double(p, 2)}) * {_double(p, LEVEL)}"
    rate = share(p, "sum(clicked)", RATE, "sum(n)")
    return (
        f"SELECT rank, block, CASE block {octave} END AS octave, lg, rate FROM (\n"
        f"SELECT fate AS rank, {block} AS block, {_rounded(p, logarithm)} AS lg, {rate} AS rate\n"
        f"FROM {TALLY} WHERE fate > 0 GROUP BY fate) AS each_rank"
    )


# -- comparisons of ranks of a pair ----------------------------------------------------------------


def _compared(p: Planner) -> dict[str, str]:
    """What comparisons are summed of: name -> c * n of "a clicked over b"."""
    found = {"every": "a.c * b.n"}
    if p.roles.outcome:
        found |= {"won": "a.won * b.n", "lost": "(a.c - a.won) * b.n"}
    if p.roles.user:
        within = f"coalesce({VISITED}.product, 0)"
        known = "a.c * b.n" if extras.user_known(p) else "a.known_c * b.known_n"
        found |= {"one_user": within, "two_users": f"{known} - {within}"}
    if p.roles.search:
        searched_c, searched_n = "a.searched_c", "b.searched_n"
        if extras.search_known(p):
            searched_c, searched_n = "a.c", "b.n"
        alone = f"({searched_c} - a.joined_c) * ({searched_n} - b.joined_n)"
        found |= {"joined": "a.joined_c * b.joined_n", "alone": alone}
    return found


def _comparisons(p: Planner, compared: Mapping[str, str], days: bool, some: str) -> str:
    """Each clicked rank a of a pair over each other rank b of it, for some of the pairs used."""
    fields = [*(f"p.{g} AS {g}" for g in p.segments), "p.bucket AS bucket"]
    fields += ["p.m AS m", "p.c = 1 AS single", "a.rank AS clicked_rank", "b.rank AS other_rank"]
    fields += ["ra.block AS clicked", "rb.block AS other"]
    joins = ""
    if p.roles.day:
        fields += ["p.query_bucket AS query_bucket", "p.parity AS parity"]
        fields += ["ra.octave AS clicked_octave", "rb.octave AS other_octave"]
    if days:
        fields.append(f"{RELEVANCE}.part AS part")
        joins += f"\nLEFT JOIN {RELEVANCE} ON {same_pair(p, 'p', RELEVANCE)}"
    if p.roles.user:
        joins += (
            f"\nLEFT JOIN {VISITED} ON {same_pair(p, 'p', VISITED)}"
            f" AND {VISITED}.clicked = a.rank AND {VISITED}.other = b.rank"
        )
    for name, product in compared.items():
        fields.append(f"{share(p, product, UNIT, 'p.m - 1')} AS {name}_weight")
        away = share(p, f"({product}) * (rb.lg - ra.lg)", UNIT // LEVEL, "p.m - 1")
        fields.append(f"{away} AS {name}_away")
    listed = ",\n  ".join(fields)
    return (
        f"SELECT {listed}\n"
        f"FROM {USED} AS p JOIN {CELLS} AS a ON {same_pair(p, 'p', 'a')} AND a.c > 0\n"
        f"JOIN {CELLS} AS b ON {same_pair(p, 'p', 'b')} AND a.rank <> b.rank\n"
        f"JOIN {RANKS} AS ra ON ra.rank = a.rank JOIN {RANKS} AS rb ON rb.rank = b.rank{joins}\n"
        f"WHERE {some}"
    )


def _blocks(p: Planner, names: Sequence[str], days: bool) -> str:
    keys = ", ".join([*p.segments, "bucket", *(["part"] if days else []), "clicked", "other"])
    sums = ", ".join(
        f"CAST(sum({name}_{of}) AS BIGINT) AS {name}_{of}"
        for name in names
        for of in ("weight", "away")
    )
    return f"SELECT {keys}, {sums}\nFROM {COMPARED} GROUP BY {keys}"


# -- users -----------------------------------------------------------------------------------------


def _visited(p: Planner) -> str:
    """c * n of comparisons within users: clicks are few, and their users mostly came once."""
    pair, user = ", ".join(f"a.{column}" for column in p.pair), ", ".join((*p.pair, "visitor"))
    return (
        f"SELECT {pair}, a.rank AS clicked, b.rank AS other, count(*) AS product\n"
        f"FROM (SELECT {user}, rank FROM {APPEARANCES} WHERE click > 0) AS a\n"
        f"JOIN (SELECT {user}, rank FROM {APPEARANCES}) AS b ON {same_pair(p, 'a', 'b')}"
        f" AND a.visitor = b.visitor AND a.rank <> b.rank\nGROUP BY {pair}, a.rank, b.rank"
    )


# -- scores ----------------------------------------------------------------------------------------


def _scored(p: Planner) -> str:
    """The scores of used pairs: t appearances, c of 1/FINE clicks.

    Much-shown pairs are thinned: the first of each of MOST_COMPARED parts of the same length is
    kept. Of appearances that are alike in all but the click some may be left out, each with the
    same share of the clicks: which ones it would be must not depend on the click.
    """
    pair, used = ", ".join(p.pair), ", ".join(f"{USED}.{column}" for column in p.pair)
    score = ", ".join([*(["seconds"] if p.roles.time else []), "rank", "score"])
    source = (
        f"{APPEARANCES} JOIN {of_part(p, USED)} ON {same_pair(p, USED, APPEARANCES)}"
        f" AND score IS NOT NULL AND {USED}.m"
    )
    apart = f"{score}, search" if p.roles.search else score
    until = "sum(n) OVER ({} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    if extras.search_known(p) and p.has_search:  # then no two are alike
        many = f"SELECT {used}, {apart}, 1 AS n, click AS c FROM {source} > {MOST_COMPARED}"
        until = "row_number() OVER ({})"
    else:
        many = (
            f"SELECT {used}, {apart}, count(*) AS n, CAST(sum(click) AS BIGINT) AS c\n"
            f"FROM {source} > {MOST_COMPARED} GROUP BY {used}, {apart}"
        )
    nullable = {"seconds"} if extras.search_known(p) else {"seconds", "search"}
    order = ", ".join(
        f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END, {name}" if name in nullable else name
        for name in apart.split(", ")
    )
    in_order = until.format(f"PARTITION BY {pair} ORDER BY {order}")
    ordered = (
        f"SELECT *, CAST({in_order} AS BIGINT) AS until,"
        f" CAST(sum(n) OVER (PARTITION BY {pair}) AS BIGINT) AS scored FROM ({many}) AS many"
    )

    def kept(first: str) -> str:
        """How many of so many first appearances are kept."""
        place = f"{_double(p, f'{MOST_COMPARED} * ({first} - 1)')} / {_double(p, 'scored')}"
        return f"CASE WHEN {first} > 0 THEN CAST(floor({place}) AS BIGINT) + 1 ELSE 0 END"

    thin = f"{kept('until')} - {kept('(until - n)')}"
    thinned = (
        f"SELECT *, CASE WHEN scored > {MOST_COMPARED} THEN {thin} ELSE n END AS t\n"
        f"FROM ({ordered}) AS in_order"
    )
    return (
        f"SELECT {used}, {score}, 0 AS thinned, CAST(1 AS BIGINT) AS t,"
        f" CAST(click * {FINE} AS BIGINT) AS c\nFROM {source} <= {MOST_COMPARED}\nUNION ALL\n"
        f"SELECT {pair}, {score}, CASE WHEN scored > {MOST_COMPARED} THEN 1 ELSE 0 END AS thinned,"
        f" t, {share(p, 'c * t', FINE, 'n')} AS c\n"
        f"FROM ({thinned}) AS thinned WHERE t > 0"
    )


def _scores(p: Planner) -> str:
    """Every two appearances of a pair by the differences of score and time."""
    segments = "".join(f"{USED}.{g} AS {g}, " for g in p.segments)
    late = "0"
    if p.roles.time:
        apart = "abs(a.seconds - b.seconds)"
        far = f"CASE WHEN {apart} > {6 * HOUR} THEN 2 WHEN {apart} > {HOUR} THEN 1 ELSE 0 END"
        late = f"CASE WHEN a.seconds < b.seconds THEN -1 ELSE 1 END * ({far})"
    clicks = (
        f"{of_part(p, USED)} JOIN {SCORED} AS a ON {same_pair(p, USED, 'a')} AND a.c > 0\n"
        f"JOIN {RANKS} AS ra ON ra.rank = a.rank"
    )
    of_click = (
        f"{segments}{USED}.bucket AS bucket, ra.block AS clicked,"
        f" CASE WHEN a.thinned = 1 THEN {MOST_COMPARED} ELSE {USED}.m END - 1 AS of_all"
    )
    # An appearance is among those of its pair, but is not compared with itself.
    two = (
        f"SELECT {of_click}, rb.block AS other, rb.lg - ra.lg AS deeper, a.c * b.t AS product,"
        f" {late} AS late, a.score - b.score AS better\n"
        f"FROM {clicks} JOIN {SCORED} AS b ON {same_pair(p, USED, 'b')}\n"
        f"JOIN {RANKS} AS rb ON rb.rank = b.rank\nUNION ALL\n"
        f"SELECT {of_click}, ra.block AS other, 0 AS deeper, -a.c AS product, 0 AS late,"
        f" {_double(p, 0)} AS better\nFROM {clicks}"
    )
    size = f"abs(better) * {_double(p, SPREAD)}"
    # Some engines look at what a CASE does not ask for, and refuse the logarithm of 0.
    positive = f"CASE WHEN better = 0 THEN {_double(p, 1)} ELSE {size} END"
    power = f"floor(ln({positive}) / ln({_double(p, 4)}))"
    sized = (
        f"SELECT *, {size} AS size,"
        f" CASE WHEN better = 0 THEN {_double(p, 0)}"
        f" ELSE greatest({_double(p, -30)}, least({_double(p, 30)}, {power})) END AS power\n"
        f"FROM ({two}) AS two"
    )
    sign = "CASE WHEN better = 0 THEN 0 WHEN better < 0 THEN -1 ELSE 1 END"
    ratio = f"least({_double(p, 16)}, size / power({_double(p, 4)}, power))"
    value = f"{_double(p, 'product')} * {ratio} / {_double(p, 'of_all')}"
    fields = {
        "part": f"({sign} * (CAST(power AS BIGINT) + 32) + 64) * 8 + late + 2",
        "weight": share(p, "product", UNIT // FINE, "of_all"),
        "away": share(p, "product * deeper", UNIT // FINE // LEVEL, "of_all"),
        "value": f"{_rounded(p, value)} * {UNIT // FINE}",
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in fields.items())
    keys = ", ".join([*p.segments, "bucket", "part", "clicked", "other"])
    sums = ", ".join(f"CAST(sum({n}) AS BIGINT) AS {n}" for n in ("weight", "away", "value"))
    return (
        f"SELECT {keys}, {sums}\nFROM (SELECT *, {listed}\nFROM ({sized}) AS sized) AS each_two\n"
        f"GROUP BY {keys}"
    )


# -- the same item on other days -------------------------------------------------------------------


_ITEM = ("item_hash", "item")


def _same_item(a: str, b: str) -> str:
    return " AND ".join(f"{a}.{column} = {b}.{column}" for column in _ITEM)


def _items(p: Planner) -> list[Step]:
    """Items are pairs on whichever day, and whatever must be equal within one.

    Most are clicked on one day only. So only those are looked for whose key has a hash of another;
    the exact key decides.
    """
    names = [*p.queries, "doc", *p.segments]
    keys, hashed = ", ".join(names), p.hash_sql(names)
    again = f"SELECT {hashed} FROM {KNOWN} GROUP BY {hashed} HAVING count(*) > 1"
    several = f"SELECT *, {hashed} AS item_hash FROM {KNOWN}\nWHERE {hashed} IN ({again})"
    numbered = (
        f"SELECT item_hash, {keys}, row_number() OVER (PARTITION BY item_hash ORDER BY {keys})"
        f" AS item\nFROM (SELECT DISTINCT item_hash, {keys} FROM {SEVERAL}) AS all_items"
    )
    equal = [f"{SEVERAL}.{key} IS NOT DISTINCT FROM {ITEM_KEYS}.{key}" for key in names]
    equal.insert(0, f"{SEVERAL}.item_hash = {ITEM_KEYS}.item_hash")
    fields = ", ".join(f"{SEVERAL}.{column}" for column in (*p.pair, "day"))
    items = (
        f"SELECT {fields}, {ITEM_KEYS}.item_hash, {ITEM_KEYS}.item, c, e\n"
        f"FROM {SEVERAL} JOIN {ITEM_KEYS} ON {' AND '.join(equal)}\n"
        f"JOIN {USUAL} ON {same_pair(p, SEVERAL, USUAL)}"
    )
    pair = ", ".join(p.pair)
    usual = (
        f"SELECT {pair}, CAST(sum(c) AS BIGINT) AS c, CAST(sum(n * rate) AS BIGINT) AS e\n"
        f"FROM {CELLS} JOIN {RANKS} ON {RANKS}.rank = {CELLS}.rank\n"
        f"GROUP BY {pair} HAVING sum(c) > 0"
    )
    return [
        Step(USUAL, usual, keep=True, settled=True, whole=True),
        Step(SEVERAL, several, keep=True, settled=True, whole=True),
        Step(ITEM_KEYS, numbered, whole=True),
        Step(ITEMS, items, keep=True, settled=True, whole=True),
    ]


def _relevance(p: Planner) -> str:
    """How often an item was clicked on other days, beside the usual at its ranks.

    The rank decides on the clicks of the day itself, which must not decide in which part a pair is.
    """
    item, pair = ", ".join(_ITEM), ", ".join(f"{ITEMS}.{column}" for column in p.pair)
    sums = "CAST(sum(c) AS BIGINT) AS c, CAST(sum(e) AS BIGINT) AS e"
    day = f"SELECT {item}, day, {sums} FROM {ITEMS} GROUP BY {item}, day"
    every = f"SELECT {item}, {sums}, count(DISTINCT day) AS days FROM {ITEMS} GROUP BY {item}"
    others = (
        f"SELECT {pair}, every.c - own.c AS c, every.e AS e, every.days AS days\n"
        f"FROM {ITEMS} JOIN ({day}) AS own"
        f" ON {_same_item(ITEMS, 'own')} AND {ITEMS}.day = own.day\n"
        f"JOIN ({every}) AS every ON {_same_item(ITEMS, 'every')}"
    )
    usual = (
        f"{_double(p, f'coalesce(others.e, {USUAL}.e)')} * {_double(p, 'all_days.days - 1')}"
        f" / {_double(p, f'coalesce(others.days, 1) * {RATE}')}"
    )
    ratio = f"{_double(p, 'coalesce(others.c, 0) + 2')} / ({usual} + {_double(p, 2)})"
    limits = [_double(p, repr(exp((step - 0.5) / 2))) for step in range(-7, 9)]
    of_pairs = ", ".join(f"{USED}.{column}" for column in p.pair)
    found = (
        f"SELECT {of_pairs}, {ratio} AS ratio\n"
        f"FROM {USED} JOIN {USUAL} ON {same_pair(p, USED, USUAL)}\n"
        f"LEFT JOIN ({others}) AS others ON {same_pair(p, USED, 'others')}\n"
        f"CROSS JOIN (SELECT count(DISTINCT day) AS days FROM {KNOWN}) AS all_days\n"
        "WHERE all_days.days > 1"
    )
    return f"SELECT {', '.join(p.pair)}, {_case('ratio', limits)} AS part FROM ({found}) AS found"


# -- rankers ---------------------------------------------------------------------------------------


def _arm_pairs(p: Planner, source: str) -> str:
    """Pairs by ranker: n appearances, s the sum of log2 of their ranks."""
    pair = ", ".join(f"{APPEARANCES}.{column}" for column in p.pair)
    return (
        f"SELECT {pair}, ranker AS arm, count(*) AS n, CAST(sum(lg) AS BIGINT) AS s\n"
        f"FROM {source} JOIN {RANKS} ON {RANKS}.rank = {APPEARANCES}.rank\n"
        f"WHERE ranker IS NOT NULL GROUP BY {pair}, ranker"
    )


def _arm_clicks(p: Planner, source: str) -> str:
    pair = ", ".join(f"{APPEARANCES}.{column}" for column in p.pair)
    return (
        f"SELECT {pair}, ranker AS arm, rank FROM {source} WHERE ranker IS NOT NULL AND click > 0"
    )


def _arm_hats(p: Planner) -> str:
    """The hat functions of the mean log2 rank that a ranker gave an item on other days."""
    item = ", ".join(_ITEM)
    shown = (
        f"SELECT {item}, day, arm, n, s FROM {ARM_PAIRS}"
        f" JOIN {ITEMS} ON {same_pair(p, ARM_PAIRS, ITEMS)}"
    )
    sums = "CAST(sum(n) AS BIGINT) AS n, CAST(sum(s) AS BIGINT) AS s"
    days = f"SELECT {item}, day, arm, {sums} FROM ({shown}) AS shown GROUP BY {item}, day, arm"
    totals = f"SELECT {item}, arm, {sums} FROM ({shown}) AS shown GROUP BY {item}, arm"
    depth = (
        f"least({_double(p, HATS[-1] * HAT)}, {_double(p, 'every.s - own.s')}"
        f" / {_double(p, f'(every.n - own.n) * {LEVEL}')})"
    )
    own = ", ".join(f"own.{column}" for column in (*_ITEM, "day", "arm"))
    deep = (
        f"SELECT {own}, {depth} AS h FROM ({days}) AS own JOIN ({totals}) AS every"
        f" ON {_same_item('own', 'every')} AND own.arm = every.arm WHERE every.n > own.n"
    )
    hats = ", ".join(
        _rounded(
            p,
            f"greatest({_double(p, 0)}, {_double(p, 1)} - abs(h / {_double(p, HAT)}"
            f" - {_double(p, i)})) * {_double(p, FINE)}",
        )
        + f" AS f{i}"
        for i in HATS
    )
    return f"SELECT {item}, day, arm, {hats}\nFROM ({deep}) AS deep"


def _arms_moved(p: Planner) -> str:
    """Pairs by ranker, for those of which it is known how deep they showed it on other days."""
    of_pairs = ", ".join(f"{ITEMS}.{column}" for column in p.pair)
    hats = ", ".join(f"f{i}" for i in HATS)
    return (
        f"SELECT {of_pairs}, {ARM_PAIRS}.arm AS arm, n, {hats}\n"
        f"FROM {ARM_PAIRS} JOIN {ITEMS} ON {same_pair(p, ARM_PAIRS, ITEMS)}\n"
        f"JOIN {ARM_HATS} ON {_same_item(ITEMS, ARM_HATS)} AND {ITEMS}.day = {ARM_HATS}.day"
        f" AND {ARM_PAIRS}.arm = {ARM_HATS}.arm"
    )


def _by_arm(p: Planner, buckets: int) -> str:
    """Clicks by rank, and by how deep the item usually is, in half octaves, weighted by how much
    deeper a ranker showed it on other days than those that showed it today."""
    pair = ", ".join(p.pair)
    means = ", ".join(f"CAST(sum(n * f{i}) AS BIGINT) AS t{i}" for i in HATS)
    several = (
        f"SELECT {pair}, CAST(sum(n) AS BIGINT) AS n, {means}\n"
        f"FROM {ARMS} GROUP BY {pair} HAVING count(*) > 1"
    )
    deeper = ", ".join(
        f"{share(p, f'{ARMS}.f{i} * several.n - several.t{i}', 1, 'several.n')} AS f{i}"
        for i in HATS
    )
    depth = " + ".join(f"{i} * several.t{i}" for i in HATS)
    usual = share(p, f"{round(2 * HAT)} * ({depth})", 1, f"several.n * {FINE}")
    of_keys = "".join(f"{KNOWN}.{key} AS {key}, " for key in (*p.segments, *p.queries))
    clicks = (
        f"SELECT {of_keys}{ARM_CLICKS}.rank AS rank, {usual} AS usual, {deeper}\n"
        f"FROM {ARM_CLICKS} JOIN {ARMS}"
        f" ON {same_pair(p, ARM_CLICKS, ARMS)} AND {ARM_CLICKS}.arm = {ARMS}.arm\n"
        f"JOIN ({several}) AS several ON {same_pair(p, ARM_CLICKS, 'several')}\n"
        f"JOIN {KNOWN} ON {same_pair(p, ARM_CLICKS, KNOWN)}"
    )
    keys = ", ".join([*p.segments, "bucket", "rank", "usual"])
    total = ", ".join(f"CAST(sum(f{i}) AS BIGINT) AS f{i}" for i in HATS)
    hats = (f"f{i}" for i in HATS)
    kept = ", ".join([*p.segments, f"{bucket_sql(p, buckets)} AS bucket", "rank", "usual", *hats])
    return (
        f"SELECT {keys}, {total}\n"
        f"FROM (SELECT {kept} FROM ({clicks}) AS each_click) AS in_buckets GROUP BY {keys}"
    )
