"""From pairs to comparisons of two appearances, split by how the two differ.

`counts.tables.Splits` tells what each split is. All sums are of whole numbers, each rounded once
from doubles of whole numbers, so that engines agree to the last bit and any order gives the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from rankdrift.counts.tables import UNIT
from rankdrift.harvesting import extras
from rankdrift.harvesting.pairs import bucket_sql, named, of_part, same_pair
from rankdrift.harvesting.ranks import LEVEL, RANKS, RATE, double, reached, rounded, share
from rankdrift.log.sql.plan import (
    APPEARANCES,
    CELLS,
    KNOWN,
    PAIRS,
    USED,
    Planner,
    Step,
)

MOST_COMPARED = 32
"""Of a pair with more appearances, so many have their scores and times compared."""
FINE = 2**20  # what is a share of something is a whole number of 1/FINE
SPREAD = 1.37  # differences of round scores, times this, keep off the powers of four
HATS = range(7)  # of log2 of the rank, HAT apart
HAT = 1.5
HOUR = 3600
AS_USUAL = 5  # clicks on other days that each pair has besides its own, as many as are usual

COMPARED = "compared"  # each clicked rank of a pair over each other
BLOCKS = "split_blocks"  # the same, summed by blocks of ranks
GROUPS = "split_groups"  # a row of these for each group of each split
VISITED = "visited"  # comparisons within users
SCORED = "scored"  # the appearances whose scores and times are compared
SCORES = "split_scores"  # comparisons by the differences of scores
USUAL = "usual"  # the clicks of pairs, and how many are usual at their ranks
SEVERAL = "several_days"  # the keys of pairs that may have been clicked on several days
ITEMS = "items"  # the same, numbered by their keys without the day
RELEVANCE = "relevance"  # pairs by their clicks on other days
ARM_PAIRS = "arm_pairs"  # pairs by ranker, and how deep it showed them
ARM_CLICKS = "arm_clicks"  # their clicks
ARMS = "arms"  # pairs by ranker, and how much deeper it showed them on other days
BY_ARM = "split_arms"  # clicks by rank and by how rankers differ there


@dataclass(frozen=True)
class SplitRows:
    """Rows of the result that tell of splits.

    Parameters
    ----------
    source
        The step that they are from.
    split
        SQL of the name of the split, one of `counts.tables.SPLITS`.
    part, bucket, clicked, other
        SQL of what tells rows apart; a number or a text does not.
    sums
        Those that are summed, by their names in the result.
    present
        Which of them is not 0 in any row; others are left out.
    """

    source: str
    split: str
    part: str = "part"
    bucket: str = "bucket"
    clicked: str = "clicked"
    other: str = "other"
    sums: Mapping[str, str] = field(default_factory=lambda: {"n": "weight", "clicks": "away"})
    present: str = "n"

    @property
    def keys(self) -> list[str]:
        """What rows are summed by."""
        columns = (self.split, self.part, self.bucket, self.clicked, self.other)
        return [sql for sql in columns if re.match("[a-z]", sql)]


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
    days, groups = extras.several_days(p, in_parts), list(_groups(p, in_parts))
    found = list[Step]()
    if p.roles.user:
        found.append(_kept(VISITED, _visited(p), adds=True))
    if p.roles.score or p.roles.time:
        found += [_kept(SCORED, _scored(p)), _kept(SCORES, _scores(p), adds=True)]
    if days:
        items = _items(p, in_parts)
        arms = _arms_of_rows(p, in_parts) if p.roles.ranker else []
        # A part does not know of the items of the others.
        found += [*arms, *items] if in_parts else [*items, *arms]
        found.append(_kept(RELEVANCE, _relevance(p, in_parts), whole=True))
        if arms:
            found.append(_kept(ARMS, _arms(p), whole=True))
            found.append(_kept(BY_ARM, _by_arm(p, buckets), whole=True))
    every = bool(groups or p.roles.day)
    found.append(_kept(COMPARED, _comparisons(p, max_shown, days, every), whole=True))
    if groups:
        found.append(_kept(BLOCKS, _blocks(p, days), whole=True))
        found.append(Step(GROUPS, _grouped(p, groups), whole=True))
    return found


def _kept(name: str, sql: str, adds: bool = False, whole: bool = False) -> Step:
    return Step(name, sql, keep=True, settled=True, adds=adds, whole=whole)


def rows(p: Planner, in_parts: bool) -> Iterator[SplitRows]:
    """What the result has of splits, after `steps`.

    Parameters
    ----------
    p, in_parts
        As for `steps`.
    """
    name = p.dialect.literal
    if list(_groups(p, in_parts)):
        yield SplitRows(GROUPS, "split")
    if p.roles.day:
        # An octave's block is the first of its two halves.
        clicked, other = (
            f"{block} - CASE WHEN {block} > 0 AND mod({block}, 2) = 0 THEN 1 ELSE 0 END"
            for block in ("clicked", "other")
        )
        sums = {"n": "every_weight", "clicks": "every_away"}
        yield SplitRows(COMPARED, name("queries"), "parity", "query_bucket", clicked, other, sums)
    if p.roles.score or p.roles.time:
        sums = {"n": "weight", "clicks": "away", "pairs": "value"}
        yield SplitRows(SCORES, name("score"), sums=sums)
    if p.roles.ranker and extras.several_days(p, in_parts):
        yield SplitRows(BY_ARM, name("ranker"), "part", "bucket", "rank", "usual", {"n": "weight"})


def _groups(p: Planner, in_parts: bool) -> Iterator[tuple[str, str, str]]:
    """(split, group, which comparisons): what `split_blocks` has of each split."""
    if extras.several_days(p, in_parts):
        yield "relevance", "part", "every"
    if p.roles.outcome:
        yield from (("outcome", "1", "won"), ("outcome", "0", "lost"))
    if p.roles.user:
        yield from (("user", "1", "one_user"), ("user", "0", "two_users"))
    if p.roles.search:
        yield from (("neighbours", "1", "joined"), ("neighbours", "0", "alone"))


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


def _comparisons(p: Planner, max_shown: int, days: bool, all_pairs: bool) -> str:
    """Each clicked rank a of a pair over each other rank b of it, for all pairs used or only those
    that are not listed; `single` is NULL for those that are."""
    fields = [*(f"p.{g} AS {g}" for g in p.segments), "p.bucket AS bucket"]
    fields.append(f"CASE WHEN p.m > {max_shown} THEN p.c = 1 END AS single")
    fields += ["a.rank AS clicked_rank", "b.rank AS other_rank"]
    fields += ["ra.block AS clicked", "rb.block AS other"]
    joins = ""
    if p.roles.day:
        fields += ["p.query_bucket AS query_bucket", "p.parity AS parity"]
    if days:
        fields.append(f"{RELEVANCE}.part AS part")
        joins += f"\nLEFT JOIN {RELEVANCE} ON {same_pair(p, 'p', RELEVANCE)}"
    if p.roles.user:
        joins += (
            f"\nLEFT JOIN {VISITED} ON {same_pair(p, 'p', VISITED)}"
            f" AND {VISITED}.clicked = a.rank AND {VISITED}.other = b.rank"
        )
    for name, product in _compared(p).items():
        fields.append(f"{share(p, product, UNIT, 'p.m - 1')} AS {name}_weight")
        away = share(p, f"({product}) * (rb.lg - ra.lg)", UNIT // LEVEL, "p.m - 1")
        fields.append(f"{away} AS {name}_away")
    listed = ",\n  ".join(fields)
    return (
        f"SELECT {listed}\n"
        f"FROM {USED} AS p JOIN {CELLS} AS a ON {same_pair(p, 'p', 'a')} AND a.c > 0\n"
        f"JOIN {CELLS} AS b ON {same_pair(p, 'p', 'b')} AND a.rank <> b.rank\n"
        f"JOIN {RANKS} AS ra ON ra.rank = a.rank JOIN {RANKS} AS rb ON rb.rank = b.rank{joins}\n"
        f"WHERE {'TRUE' if all_pairs else f'p.m > {max_shown}'}"
    )


def _blocks(p: Planner, days: bool) -> str:
    keys = ", ".join([*p.segments, "bucket", *(["part"] if days else []), "clicked", "other"])
    sums = ", ".join(
        f"CAST(sum({name}_{of}) AS BIGINT) AS {name}_{of}"
        for name in _compared(p)
        for of in ("weight", "away")
    )
    return f"SELECT {keys}, {sums}\nFROM {COMPARED} GROUP BY {keys}"


def _grouped(p: Planner, groups: Sequence[tuple[str, str, str]]) -> str:
    """A row for each group of each split: engines that work a step out again wherever it is read
    read the blocks once."""
    splits, parts, names = zip(*groups, strict=True)

    def chosen(values: Iterable[str]) -> str:
        cases = " ".join(f"WHEN {i} THEN {value}" for i, value in enumerate(values))
        return f"CASE which {cases} END"

    which = " UNION ALL ".join(f"SELECT {i} AS which" for i in range(len(groups)))
    fields = {
        "split": chosen(map(p.dialect.literal, splits)),
        "part": chosen(parts),
        "weight": chosen(f"{name}_weight" for name in names),
        "away": chosen(f"{name}_away" for name in names),
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in fields.items())
    keys = ", ".join([*p.segments, "bucket", "clicked", "other"])
    return (
        f"SELECT * FROM (SELECT {keys}, {listed}\n"
        f"FROM {BLOCKS} CROSS JOIN ({which}) AS all_groups) AS grouped WHERE part IS NOT NULL"
    )


# -- users -----------------------------------------------------------------------------------------


def _visited(p: Planner) -> str:
    """c * n of comparisons within users: clicks are few, and their users mostly came once."""
    pair, user = ", ".join(f"a.{column}" for column in p.pair), ", ".join((*p.pair, "visitor"))
    return (
        f"SELECT {named('a', p.pair)}, a.rank AS clicked, b.rank AS other, count(*) AS product\n"
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
    pair, used = ", ".join(p.pair), named(USED, p.pair)
    keys = ", ".join(f"{USED}.{column}" for column in p.pair)
    ranker = ["ranker"] if _by_rankers(p) else []
    told = [*(["seconds"] if p.roles.time else []), "rank", "score"]
    score = ", ".join([*told, *ranker])
    source = (
        f"{APPEARANCES} JOIN {of_part(p, USED)} ON {same_pair(p, USED, APPEARANCES)}"
        f" AND score IS NOT NULL AND {USED}.m"
    )
    apart = ", ".join([*told, *(["search"] if p.roles.search else []), *ranker])
    until = "sum(n) OVER ({} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    if extras.search_known(p) and p.has_search:  # then no two are alike
        many = f"SELECT {used}, {apart}, 1 AS n, click AS c FROM {source} > {MOST_COMPARED}"
        until = "row_number() OVER ({})"
    else:
        many = (
            f"SELECT {used}, {apart}, count(*) AS n, CAST(sum(click) AS BIGINT) AS c\n"
            f"FROM {source} > {MOST_COMPARED} GROUP BY {keys}, {apart}"
        )
    nullable = {"seconds", "ranker"} | (set() if extras.search_known(p) else {"search"})
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
        place = f"{double(p, f'{MOST_COMPARED} * ({first} - 1)')} / {double(p, 'scored')}"
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


def _by_rankers(p: Planner) -> bool:
    """Are scores those of different rankers, which need not be on one scale?"""
    return bool(p.roles.score and p.roles.ranker)


def _scores(p: Planner) -> str:
    """Every two appearances of a pair by the differences of score and time, those under different
    rankers apart."""
    segments = "".join(f"{USED}.{g} AS {g}, " for g in p.segments)
    late = "0"
    if p.roles.time:
        apart = "abs(a.seconds - b.seconds)"
        far = " ".join(
            f"WHEN {apart} > {hours * HOUR} THEN {i}" for i, hours in ((3, 24), (2, 6), (1, 1))
        )
        late = f"CASE WHEN a.seconds < b.seconds THEN -1 ELSE 1 END * (CASE {far} ELSE 0 END)"
    across = "0"
    if _by_rankers(p):
        across = "CASE WHEN a.ranker IS NOT DISTINCT FROM b.ranker THEN 0 ELSE 1 END"
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
        f" {late} AS late, {across} AS across, a.score - b.score AS better\n"
        f"FROM {clicks} JOIN {SCORED} AS b ON {same_pair(p, USED, 'b')}\n"
        f"JOIN {RANKS} AS rb ON rb.rank = b.rank\nUNION ALL\n"
        f"SELECT {of_click}, ra.block AS other, 0 AS deeper, -a.c AS product, 0 AS late,"
        f" 0 AS across, {double(p, 0)} AS better\nFROM {clicks}"
    )
    size = f"abs(better) * {double(p, SPREAD)}"
    # Some engines look at what a CASE does not ask for, and refuse the logarithm of 0.
    positive = f"CASE WHEN better = 0 THEN {double(p, 1)} ELSE {size} END"
    power = f"floor(ln({positive}) / ln({double(p, 4)}))"
    sized = (
        f"SELECT *, {size} AS size,"
        f" CASE WHEN better = 0 THEN {double(p, 0)}"
        f" ELSE greatest({double(p, -30)}, least({double(p, 30)}, {power})) END AS power\n"
        f"FROM ({two}) AS two"
    )
    sign = "CASE WHEN better = 0 THEN 0 WHEN better < 0 THEN -1 ELSE 1 END"
    ratio = f"least({double(p, 16)}, size / power({double(p, 4)}, power))"
    value = f"{double(p, 'product')} * {ratio} / {double(p, 'of_all')}"
    fields = {
        "part": f"across * 1024 + ({sign} * (CAST(power AS BIGINT) + 32) + 64) * 8 + late + 3",
        "weight": share(p, "product", UNIT // FINE, "of_all"),
        "away": share(p, "product * deeper", UNIT // FINE // LEVEL, "of_all"),
        "value": f"{rounded(p, value)} * {UNIT // FINE}",
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


def _items(p: Planner, in_parts: bool) -> list[Step]:
    """Items are pairs on whichever day, and whatever must be equal within one.

    Most are clicked on one day only. So only those are looked for whose key has a hash of another;
    the exact key decides.
    """
    names = [*p.queries, "doc", *p.segments]
    hashed, usual = p.hash_sql(names), USUAL if in_parts else PAIRS
    again = f"SELECT {hashed} FROM {KNOWN} GROUP BY {hashed} HAVING count(*) > 1"
    several = f"SELECT *, {hashed} AS item_hash FROM {KNOWN}\nWHERE {hashed} IN ({again})"
    fields = named(SEVERAL, (*p.pair, "day", "item_hash"))
    order = ", ".join(f"{SEVERAL}.{name}" for name in names)
    items = (
        f"SELECT {fields}, c, e,\n"
        f"  dense_rank() OVER (PARTITION BY item_hash ORDER BY {order}) AS item\n"
        f"FROM {SEVERAL} JOIN {usual} ON {same_pair(p, SEVERAL, usual)} AND c > 0"
    )
    found = [_kept(SEVERAL, several, whole=True), _kept(ITEMS, items, whole=True)]
    if in_parts:  # what is usual at a rank is known when all of them have been read
        pair = ", ".join(p.pair)
        sums = "CAST(sum(c) AS BIGINT) AS c, CAST(sum(n * rate) AS BIGINT) AS e"
        rated = f"{CELLS} JOIN {RANKS} ON {RANKS}.rank = {CELLS}.rank"
        sql = f"SELECT {pair}, {sums}\nFROM {rated} GROUP BY {pair}"
        found.insert(0, _kept(USUAL, sql, whole=True))
    return found


def _relevance(p: Planner, in_parts: bool) -> str:
    """How often an item was clicked on other days, beside the usual at its ranks.

    The rank decides on the clicks of the day itself, which must not decide in which part a pair is.
    """
    item, pair, own = ", ".join(_ITEM), ", ".join(p.pair), USUAL if in_parts else USED
    on_day = (
        f"SELECT *, sum(c) OVER (PARTITION BY {item}, day) AS own,\n"
        f"  row_number() OVER (PARTITION BY {item}, day ORDER BY {pair}) AS nth FROM {ITEMS}"
    )
    of_item = f"OVER (PARTITION BY {item})"
    others = (
        f"SELECT {pair}, sum(c) {of_item} - own AS c, sum(e) {of_item} AS e,\n"
        f"  sum(CASE WHEN nth = 1 THEN 1 ELSE 0 END) {of_item} AS days FROM ({on_day}) AS on_day"
    )
    usual = (
        f"{double(p, f'coalesce(others.e, {own}.e)')} * {double(p, 'all_days.days - 1')}"
        f" / {double(p, f'coalesce(others.days, 1) * {RATE}')}"
    )
    clicks = double(p, f"coalesce(others.c, 0) + {AS_USUAL}")
    ratio = f"{clicks} / ({usual} + {double(p, AS_USUAL)})"
    limits = [double(p, repr(exp((step - 0.5) / 4))) for step in range(-15, 17)]
    of_pairs = named(USED, p.pair)
    joined = f" JOIN {USUAL} ON {same_pair(p, USED, USUAL)}" if in_parts else ""
    found = (
        f"SELECT {of_pairs}, {ratio} AS ratio\n"
        f"FROM {USED}{joined}\n"
        f"LEFT JOIN ({others}) AS others ON {same_pair(p, USED, 'others')}\n"
        f"CROSS JOIN (SELECT count(DISTINCT day) AS days FROM {KNOWN}) AS all_days\n"
        "WHERE all_days.days > 1"
    )
    return f"SELECT {', '.join(p.pair)}, {reached('ratio', limits)} AS part FROM ({found}) AS found"


# -- rankers ---------------------------------------------------------------------------------------


def _arms_of_rows(p: Planner, in_parts: bool) -> list[Step]:
    """What rows say of rankers: n appearances of a pair, the sum s of log2 of their ranks; and
    clicks. Where the items are known, only of those of several days."""
    source = APPEARANCES
    if not in_parts:
        source += f" JOIN {ITEMS} ON {same_pair(p, ITEMS, APPEARANCES)}"
    arm = ", ".join([*(f"{APPEARANCES}.{column}" for column in p.pair), "ranker"])
    of_arm = f"{named(APPEARANCES, p.pair)}, ranker AS arm"
    pairs = (
        f"SELECT {of_arm}, count(*) AS n, CAST(sum(lg) AS BIGINT) AS s\n"
        f"FROM {source} JOIN {RANKS} ON {RANKS}.rank = {APPEARANCES}.rank\n"
        f"WHERE ranker IS NOT NULL GROUP BY {arm}"
    )
    clicks = f"SELECT {of_arm}, rank FROM {source} WHERE ranker IS NOT NULL AND click > 0"
    return [_kept(ARM_PAIRS, pairs, adds=True), _kept(ARM_CLICKS, clicks, adds=True)]


def _arms(p: Planner) -> str:
    """Pairs by ranker: how much deeper it showed the item on other days than did those that showed
    it that day, by hat functions of the mean log2 rank, in 1/FINE; and how deep it usually is, in
    half octaves."""
    item, pair = ", ".join(_ITEM), ", ".join(p.pair)
    of_pairs = named(ITEMS, (*p.pair, *_ITEM, "day"))
    shown = (
        f"SELECT {of_pairs}, arm, n, s FROM {ARM_PAIRS}"
        f" JOIN {ITEMS} ON {same_pair(p, ARM_PAIRS, ITEMS)}"
    )
    every, own = f"OVER (PARTITION BY {item}, arm)", f"OVER (PARTITION BY {item}, arm, day)"
    others = (
        f"SELECT {pair}, arm, n, CAST(sum(n) {every} - sum(n) {own} AS BIGINT) AS other_n,"
        f" CAST(sum(s) {every} - sum(s) {own} AS BIGINT) AS other_s FROM ({shown}) AS shown"
    )
    depth = (
        f"least({double(p, HATS[-1] * HAT)},"
        f" {double(p, 'other_s')} / {double(p, f'other_n * {LEVEL}')})"
    )
    deep = f"SELECT *, {depth} AS depth FROM ({others}) AS others WHERE other_n > 0"
    hats = ", ".join(
        rounded(
            p,
            f"greatest({double(p, 0)}, {double(p, 1)} - abs(depth / {double(p, HAT)}"
            f" - {double(p, i)})) * {double(p, FINE)}",
        )
        + f" AS f{i}"
        for i in HATS
    )
    of_pair = f"OVER (PARTITION BY {pair})"
    means = ", ".join(f"CAST(sum(n * f{i}) {of_pair} AS BIGINT) AS t{i}" for i in HATS)
    beside = (
        f"SELECT *, count(*) {of_pair} AS arms, CAST(sum(n) {of_pair} AS BIGINT) AS m, {means}\n"
        f"FROM (SELECT {pair}, arm, n, {hats} FROM ({deep}) AS deep) AS hats"
    )
    deeper = ", ".join(f"{share(p, f'f{i} * m - t{i}', 1, 'm')} AS f{i}" for i in HATS)
    depth = " + ".join(f"{i} * t{i}" for i in HATS)
    usual = share(p, f"{round(2 * HAT)} * ({depth})", 1, f"m * {FINE}")
    return (
        f"SELECT {pair}, arm, {usual} AS usual, {deeper}\nFROM ({beside}) AS beside WHERE arms > 1"
    )


def _by_arm(p: Planner, buckets: int) -> str:
    """Clicks by rank, and by how deep the item usually is, weighted so."""
    of_keys = "".join(f"{KNOWN}.{key} AS {key}, " for key in (*p.segments, *p.queries))
    hats = ", ".join(f"f{i}" for i in HATS)
    clicks = (
        f"SELECT {of_keys}{ARM_CLICKS}.rank AS rank, usual, {hats}\n"
        f"FROM {ARM_CLICKS} JOIN {ARMS} ON {same_pair(p, ARM_CLICKS, ARMS)}"
        f" AND {ARM_CLICKS}.arm = {ARMS}.arm\n"
        f"JOIN {KNOWN} ON {same_pair(p, ARM_CLICKS, KNOWN)}"
    )
    sums = ", ".join(f"CAST(sum(f{i}) AS BIGINT) AS f{i}" for i in HATS)
    bucket = f"{bucket_sql(p, buckets)} AS bucket"
    kept = ", ".join([*p.segments, bucket, "rank", "usual", hats])
    keys = ", ".join([*p.segments, "bucket", "rank", "usual"])
    summed = (
        f"SELECT {keys}, {sums}\n"
        f"FROM (SELECT {kept} FROM ({clicks}) AS each_click) AS in_buckets GROUP BY {keys}"
    )
    weights = " ".join(f"WHEN {i} THEN f{i} * {UNIT // FINE}" for i in HATS)
    parts = " UNION ALL ".join(f"SELECT {i} AS part" for i in HATS)
    return (
        f"SELECT {keys}, part, CASE part {weights} END AS weight\n"
        f"FROM ({summed}) AS summed CROSS JOIN ({parts}) AS all_hats"
    )
