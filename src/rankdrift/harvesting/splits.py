"""From pairs to comparisons of two appearances, split by how the two differ.

`counts.tables.Splits` tells what each split is. All sums are of whole numbers, each rounded once
from doubles of whole numbers, so that engines agree to the last bit and any order gives the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from rankdrift.core.rank_blocks import HALF_OCTAVES
from rankdrift.counts.tables import UNIT
from rankdrift.harvesting.pairs import bucket_sql, of_part, same_pair
from rankdrift.log.sql.plan import (
    APPEARANCES,
    CELLS,
    KNOWN,
    PAIRS,
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
VISITS = "visits"  # pairs by user and rank
VISITED = "visited"  # comparisons within users
SCORED = "scored"  # pairs by rank and score
SCORES = "split_scores"  # comparisons by the differences of scores
ITEM_KEYS = "item_keys"  # the keys of pairs without the day, numbered
ITEMS = "items"  # which pair is of which
ITEM_DAYS = "item_days"  # their clicks by day, and the usual clicks at their ranks
RELEVANCE = "relevance"  # pairs by their clicks on other days
ARMS = "arms"  # pairs by ranker and rank
ARM_PAIRS = "arm_pairs"  # pairs by ranker
ARM_HATS = "arm_hats"  # how deep a ranker showed them on other days
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


def steps(p: Planner, buckets: int, several_days: bool) -> list[Step]:
    """From pairs to sums of comparisons.

    Parameters
    ----------
    p
        What it has columns for is split.
    buckets
        Groups that queries are split into.
    several_days
        Whether what is counted may be of more days than one.
    """
    days = bool(p.roles.day) and several_days
    found = [Step(RANKS, _ranks(p), keep=True)]
    if p.roles.user:
        found += [Step(VISITS, _visits(p), keep=True), Step(VISITED, _visited(p), adds=True)]
    if p.roles.score:
        found += [Step(SCORED, _scored(p), keep=True), Step(SCORES, _scores(p), adds=True)]
    if p.roles.ranker and days:
        found.append(Step(ARMS, _arms(p), keep=True, adds=True))
    if days:
        found += _items(p)
        found.append(Step(RELEVANCE, _relevance(p), keep=True, whole=True))
    if p.roles.ranker and days:
        found += _by_arm(p, buckets)
    compared = _compared(p)
    if compared:
        found.append(Step(COMPARED, _comparisons(p, compared, days), keep=True, whole=True))
        found.append(Step(BLOCKS, _blocks(p, list(compared), days), keep=True, whole=True))
    return found if len(found) > 1 else []


def rows(p: Planner, several_days: bool) -> Iterator[SplitRows]:
    """What the result has of each split, after `steps`.

    Parameters
    ----------
    p, several_days
        As for `steps`.
    """
    days = bool(p.roles.day) and several_days
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
            given = {"bucket": "bucket", "drift": str(i), "rank": "rank", "other": "0"}
            sums = {"n": f"f{i} * {UNIT // FINE}"}
            yield SplitRows("ranker", BY_ARM, given, sums, ("bucket", "rank"))


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
    found = {}
    if p.roles.day:
        found["every"] = "a.c * b.n"
    if p.roles.outcome:
        found |= {"won": "a.won * b.n", "lost": "(a.c - a.won) * b.n"}
    if p.roles.user:
        within = f"coalesce({VISITED}.product, 0)"
        found |= {"one_user": within, "two_users": f"a.known_c * b.known_n - {within}"}
    if p.roles.search:
        found |= {name: f"a.{name}_c * b.{name}_n" for name in ("joined", "alone")}
    return found


def _comparisons(p: Planner, compared: Mapping[str, str], days: bool) -> str:
    """Each clicked rank a of a pair over each other rank b of it."""
    fields = [*(f"p.{g} AS {g}" for g in p.segments), "p.bucket AS bucket"]
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
        f"JOIN {RANKS} AS ra ON ra.rank = a.rank JOIN {RANKS} AS rb ON rb.rank = b.rank{joins}"
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


def _visits(p: Planner) -> str:
    """Used pairs by user and rank."""
    pair = ", ".join(f"{APPEARANCES}.{column}" for column in p.pair)
    return (
        f"SELECT {pair}, visitor, rank, count(*) AS n, CAST(sum(click) AS BIGINT) AS c\n"
        f"FROM {APPEARANCES} JOIN {of_part(p, USED)} ON {same_pair(p, USED, APPEARANCES)}\n"
        f"WHERE visitor IS NOT NULL GROUP BY {pair}, visitor, rank"
    )


def _visited(p: Planner) -> str:
    """c * n of comparisons within users."""
    pair = ", ".join(f"a.{column}" for column in p.pair)
    return (
        f"SELECT {pair}, a.rank AS clicked, b.rank AS other,"
        " CAST(sum(a.c * b.n) AS BIGINT) AS product\n"
        f"FROM {VISITS} AS a JOIN {VISITS} AS b ON {same_pair(p, 'a', 'b')}"
        " AND a.visitor = b.visitor AND a.rank <> b.rank\n"
        f"WHERE a.c > 0 GROUP BY {pair}, a.rank, b.rank"
    )


# -- scores ----------------------------------------------------------------------------------------


def _scored(p: Planner) -> str:
    """Used pairs by time, rank and score: t appearances, c of 1/FINE clicks.

    Much-shown pairs are thinned. Of appearances that are alike in all but the click some may be
    left out, each with the same share of the clicks: which ones it would be must not depend on the
    click.
    """
    pair = ", ".join(f"{USED}.{column}" for column in p.pair)
    plain = ", ".join(p.pair)
    alike = ", ".join([*(["seconds"] if p.roles.time else []), "rank", "score"])
    apart = f"{alike}, search" if p.roles.search else alike
    source = (
        f"{APPEARANCES} JOIN {of_part(p, USED)} ON {same_pair(p, USED, APPEARANCES)}"
        f" AND score IS NOT NULL AND {USED}.scored"
    )
    order = ", ".join(
        f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END, {name}" for name in apart.split(", ")
    )
    before = (
        f"sum(n) OVER (PARTITION BY {plain} ORDER BY {order}"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - n"
    )

    def kept(first: str) -> str:
        """How many of so many first appearances are kept: one at the start of each of
        MOST_COMPARED parts of the same length."""
        place = f"{_double(p, f'{MOST_COMPARED} * ({first} - 1)')} / {_double(p, 'scored')}"
        return f"CASE WHEN {first} > 0 THEN CAST(floor({place}) AS BIGINT) + 1 ELSE 0 END"

    many = (
        f"SELECT {pair}, {apart}, {USED}.scored AS scored, count(*) AS n,"
        f" CAST(sum(click) AS BIGINT) AS c\n"
        f"FROM {source} > {MOST_COMPARED} GROUP BY {pair}, {apart}, {USED}.scored"
    )
    ordered = f"SELECT *, CAST({before} AS BIGINT) AS before FROM ({many}) AS many"
    thinned = f"SELECT *, {kept('before + n')} - {kept('before')} AS t FROM ({ordered}) AS in_order"
    return (
        f"SELECT {pair}, {alike}, count(*) AS t, CAST(sum(click) * {FINE} AS BIGINT) AS c\n"
        f"FROM {source} <= {MOST_COMPARED} GROUP BY {pair}, {alike}\nUNION ALL\n"
        f"SELECT {plain}, {alike}, CAST(sum(t) AS BIGINT) AS t,"
        f" CAST(sum({share(p, 'c * t', FINE, 'n')}) AS BIGINT) AS c\n"
        f"FROM ({thinned}) AS thinned WHERE t > 0 GROUP BY {plain}, {alike}"
    )


def _scores(p: Planner) -> str:
    """Every two appearances of a pair by the differences of score and time."""
    segments = "".join(f"{USED}.{g} AS {g}, " for g in p.segments)
    alike, late = "a.rank = b.rank AND a.score = b.score", "0"
    if p.roles.time:
        alike += " AND a.seconds IS NOT DISTINCT FROM b.seconds"
        apart = "abs(a.seconds - b.seconds)"
        far = f"CASE WHEN {apart} > {6 * HOUR} THEN 2 WHEN {apart} > {HOUR} THEN 1 ELSE 0 END"
        late = f"CASE WHEN a.seconds < b.seconds THEN -1 ELSE 1 END * ({far})"
    others = f"b.t - CASE WHEN {alike} THEN 1 ELSE 0 END"
    most = MOST_COMPARED
    of = f"CASE WHEN {USED}.scored > {most} THEN {most - 1} ELSE {USED}.m - 1 END"
    pairs = (
        f"SELECT {segments}{USED}.bucket AS bucket, ra.block AS clicked, rb.block AS other,"
        f" rb.lg - ra.lg AS deeper,\n  a.c * ({others}) AS product, {of} AS of_all,"
        f" {late} AS late, a.score - b.score AS better\n"
        f"FROM {of_part(p, USED)} JOIN {SCORED} AS a ON {same_pair(p, USED, 'a')} AND a.c > 0\n"
        f"JOIN {SCORED} AS b ON {same_pair(p, USED, 'b')}\n"
        f"JOIN {RANKS} AS ra ON ra.rank = a.rank JOIN {RANKS} AS rb ON rb.rank = b.rank"
    )
    size = f"abs(better) * {_double(p, SPREAD)}"
    power = f"floor(ln({size}) / ln({_double(p, 4)}))"
    sized = (
        f"SELECT *, {size} AS size,"
        f" CASE WHEN better = 0 THEN {_double(p, 0)}"
        f" ELSE greatest({_double(p, -30)}, least({_double(p, 30)}, {power})) END AS power\n"
        f"FROM ({pairs}) AS two WHERE product > 0"
    )
    sign = "CASE WHEN better = 0 THEN 0 WHEN better < 0 THEN -1 ELSE 1 END"
    part = f"({sign} * (CAST(power AS BIGINT) + 32) + 64) * 8 + late + 2"
    ratio = f"least({_double(p, 16)}, size / power({_double(p, 4)}, power))"
    value = f"{_double(p, 'product')} * {ratio} / {_double(p, 'of_all')}"
    fields = {
        "part": part,
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


def _item(p: Planner) -> list[str]:
    """What tells items apart: pairs on whichever day, and whatever must be equal within one."""
    return ["item_hash", "item"] if p.dialect.distributed else ["item"]


def _same_item(p: Planner, a: str, b: str) -> str:
    return " AND ".join(f"{a}.{column} = {b}.{column}" for column in _item(p))


def _items(p: Planner) -> list[Step]:
    """Items are numbered as pairs are: see `known`."""
    names = [*p.queries, "doc", *p.segments]
    keys = ", ".join(names)
    clicked = (
        f"SELECT {KNOWN}.* FROM {KNOWN} JOIN {PAIRS} ON {same_pair(p, KNOWN, PAIRS)}"
        f" WHERE {PAIRS}.c > 0"
    )
    hashed, order = "", ""
    if p.dialect.distributed:
        hashed = f"{p.hash_sql(names)} AS item_hash, "
        order = f"PARTITION BY item_hash ORDER BY {keys}"
    named = "item_hash, " if hashed else ""
    numbered = (
        f"SELECT {named}{keys}, row_number() OVER ({order}) AS item\n"
        f"FROM (SELECT DISTINCT {hashed}{keys} FROM ({clicked}) AS clicked) AS all_items"
    )
    equal = " AND ".join(f"clicked.{key} IS NOT DISTINCT FROM {ITEM_KEYS}.{key}" for key in names)
    of_pairs = ", ".join(f"clicked.{column}" for column in (*p.pair, "day"))
    of_items = ", ".join(f"{ITEM_KEYS}.{column}" for column in _item(p))
    items = f"SELECT {of_pairs}, {of_items} FROM ({clicked}) AS clicked JOIN {ITEM_KEYS} ON {equal}"
    item = ", ".join(f"{ITEMS}.{column}" for column in _item(p))
    days = (
        f"SELECT {item}, day, CAST(sum(c) AS BIGINT) AS c, CAST(sum(n * rate) AS BIGINT) AS e\n"
        f"FROM {CELLS} JOIN {ITEMS} ON {same_pair(p, CELLS, ITEMS)}\n"
        f"JOIN {RANKS} ON {RANKS}.rank = {CELLS}.rank GROUP BY {item}, day"
    )
    once = not p.dialect.distributed
    return [
        Step(ITEM_KEYS, numbered, keep=True, once=once, whole=True),
        Step(ITEMS, items, keep=True, whole=True),
        Step(ITEM_DAYS, days, keep=True, whole=True),
    ]


def _relevance(p: Planner) -> str:
    """How often an item was clicked on other days, beside the usual at its ranks.

    The rank decides on the clicks of the day itself, and must not decide which part a pair is in.
    """
    item, pair = ", ".join(_item(p)), ", ".join(f"{ITEMS}.{column}" for column in p.pair)
    totals = (
        f"SELECT {item}, CAST(sum(c) AS BIGINT) AS c, CAST(sum(e) AS BIGINT) AS e,"
        f" count(*) AS days FROM {ITEM_DAYS} GROUP BY {item}"
    )
    usual = (
        f"{_double(p, 'every.e')} * {_double(p, 'all_days.days - 1')}"
        f" / {_double(p, f'every.days * {RATE}')}"
    )
    ratio = f"{_double(p, f'every.c - {ITEM_DAYS}.c + 2')} / ({usual} + {_double(p, 2)})"
    limits = [_double(p, repr(exp((step - 0.5) / 2))) for step in range(-7, 9)]
    found = (
        f"SELECT {pair}, {ratio} AS ratio\nFROM {ITEMS} JOIN {ITEM_DAYS}"
        f" ON {_same_item(p, ITEMS, ITEM_DAYS)} AND {ITEMS}.day = {ITEM_DAYS}.day\n"
        f"JOIN ({totals}) AS every ON {_same_item(p, ITEMS, 'every')}\n"
        f"CROSS JOIN (SELECT count(DISTINCT day) AS days FROM {ITEM_DAYS}) AS all_days\n"
        "WHERE all_days.days > 1"
    )
    return f"SELECT {', '.join(p.pair)}, {_case('ratio', limits)} AS part FROM ({found}) AS found"


# -- rankers ---------------------------------------------------------------------------------------


def _arms(p: Planner) -> str:
    """Pairs by ranker and rank."""
    pair = ", ".join(p.pair)
    return (
        f"SELECT {pair}, ranker AS arm, rank, count(*) AS n, CAST(sum(click) AS BIGINT) AS c\n"
        f"FROM {APPEARANCES} WHERE ranker IS NOT NULL GROUP BY {pair}, ranker, rank"
    )


def _by_arm(p: Planner, buckets: int) -> list[Step]:
    """Clicks by rank, weighted by how much deeper a ranker showed the item on other days than the
    others did."""
    item = ", ".join(_item(p))
    of_items = ", ".join(f"{ITEMS}.{column}" for column in (*p.pair, *_item(p), "day"))
    shown = (
        f"SELECT {of_items}, arm, CAST(sum(n) AS BIGINT) AS n, CAST(sum(n * lg) AS BIGINT) AS s\n"
        f"FROM {ARMS} JOIN {RANKS} ON {RANKS}.rank = {ARMS}.rank\n"
        f"JOIN {ITEMS} ON {same_pair(p, ARMS, ITEMS)} GROUP BY {of_items}, arm"
    )
    sums = "CAST(sum(n) AS BIGINT) AS n, CAST(sum(s) AS BIGINT) AS s"
    totals = f"SELECT {item}, arm, {sums} FROM {ARM_PAIRS} GROUP BY {item}, arm"
    days = f"SELECT {item}, day, arm, {sums} FROM {ARM_PAIRS} GROUP BY {item}, day, arm"
    depth = (
        f"least({_double(p, HATS[-1] * HAT)}, {_double(p, 'every.s - own.s')}"
        f" / {_double(p, f'(every.n - own.n) * {LEVEL}')})"
    )
    own = ", ".join(f"own.{column}" for column in (*_item(p), "day", "arm"))
    deep = (
        f"SELECT {own}, {depth} AS h FROM ({days}) AS own JOIN ({totals}) AS every"
        f" ON {_same_item(p, 'own', 'every')} AND own.arm = every.arm WHERE every.n > own.n"
    )
    names = ", ".join(f"f{i}" for i in HATS)
    hats = ", ".join(
        _rounded(
            p,
            f"greatest({_double(p, 0)}, {_double(p, 1)} - abs(h / {_double(p, HAT)}"
            f" - {_double(p, i)})) * {_double(p, FINE)}",
        )
        + f" AS f{i}"
        for i in HATS
    )
    same_arm = (
        f"{_same_item(p, ARM_PAIRS, ARM_HATS)} AND {ARM_PAIRS}.day = {ARM_HATS}.day"
        f" AND {ARM_PAIRS}.arm = {ARM_HATS}.arm"
    )
    of_pairs = ", ".join(f"{ARM_PAIRS}.{column}" for column in p.pair)
    means = ", ".join(f"CAST(sum(n * f{i}) AS BIGINT) AS t{i}" for i in HATS)
    several = (
        f"SELECT {of_pairs}, CAST(sum(n) AS BIGINT) AS n, {means}\n"
        f"FROM {ARM_PAIRS} JOIN {ARM_HATS} ON {same_arm}\n"
        f"GROUP BY {of_pairs} HAVING count(*) > 1"
    )
    # A bucket is worked out only for the few pairs that two rankers have moved.
    weighted = ", ".join(
        f"{share(p, f'{ARMS}.c * ({ARM_HATS}.f{i} * several.n - several.t{i})', 1, 'several.n')}"
        f" AS f{i}"
        for i in HATS
    )
    segments = "".join(f"{KNOWN}.{g} AS {g}, " for g in p.segments)
    queries = ", ".join(f"{KNOWN}.{q} AS {q}" for q in p.queries)
    clicks = (
        f"SELECT {segments}{queries}, {ARMS}.rank AS rank, {weighted}\n"
        f"FROM {ARMS} JOIN {ARM_PAIRS} ON {same_pair(p, ARMS, ARM_PAIRS)}"
        f" AND {ARMS}.arm = {ARM_PAIRS}.arm AND {ARMS}.c > 0\n"
        f"JOIN {ARM_HATS} ON {same_arm}\n"
        f"JOIN ({several}) AS several ON {same_pair(p, ARMS, 'several')}\n"
        f"JOIN {KNOWN} ON {same_pair(p, ARMS, KNOWN)}"
    )
    keys = ", ".join([*p.segments, "bucket", "rank"])
    total = ", ".join(f"CAST(sum(f{i}) AS BIGINT) AS f{i}" for i in HATS)
    kept = ", ".join([*p.segments, f"{bucket_sql(p, buckets)} AS bucket", "rank", names])
    summed = (
        f"SELECT {keys}, {total}\n"
        f"FROM (SELECT {kept} FROM ({clicks}) AS each_click) AS in_buckets GROUP BY {keys}"
    )
    return [
        Step(ARM_PAIRS, shown, keep=True, whole=True),
        Step(ARM_HATS, f"SELECT {item}, day, arm, {hats}\nFROM ({deep}) AS deep", keep=True,
             whole=True),
        Step(BY_ARM, summed, keep=True, whole=True),
    ]  # fmt: skip
