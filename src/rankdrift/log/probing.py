"""A look at the first rows of a log for what would spoil an estimate without a word."""

import shlex

from rankdrift.core.errors import BadLog
from rankdrift.core.words import many, verb
from rankdrift.log.columns import ColumnKind, guess
from rankdrift.log.log import Log
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import ROWS_SHOWN
from rankdrift.log.sql.rows import rows_query

SAMPLE = 50_000
# Ranks repeat within a search by mistake now and then; where they restart on every page, most
# searches of more than a page repeat them.
_MOSTLY = 0.5
_OFTEN = 0.001
# Whether a result was shown, where logs have candidates that were not.
_SHOWN = (
    "shown", "is_shown", "was_shown", "displayed", "is_displayed", "was_displayed", "visible",
    "is_visible", "impressed", "rendered", "is_rendered",
)  # fmt: skip
_FLAG_KINDS: tuple[ColumnKind, ...] = ("bool", "int", "text")
_PAGE_KINDS: tuple[ColumnKind, ...] = ("int", "float", "text")
# Paid and hand-picked results are out of order here and there; a score that results were not sorted
# by puts up to half of them so.
_OUT_OF_ORDER = 0.2


def probe(log: Log) -> list[str]:
    """Remarks worth telling; raises BadLog where going on would give a wrong answer."""
    _refuse_ranks_by_page(log)
    told = _tell_format(log) if log.format else []
    told += _check_shown(log)
    if log.planner().has_search:
        told += _check_searches(log)
        told += _check_score(log) if log.roles.score else []
    return told


def _tell_format(log: Log) -> list[str]:
    """What was taken for what in a log of a known format, by what is in it."""
    told, engine, format = [], log.engine, log.format
    assert format
    if format.counts_from:
        shown = f"event IN ({engine.dialect.literals(format.shown_events)})"
        [(low, given, missing)] = engine.query(
            f"SELECT min(ordinal), count(ordinal), count(*) - count(ordinal) FROM {engine.source}"
            f" WHERE {shown} AND coalesce(ordinal, 0) >= 0"
        )
        said = format.first_rank
        if given and said is None:
            first = "0, so 1 is added" if low == 0 else f"1 (the least is {low})"
            told.append(f"Ranks are logged from {first}; --first-rank says otherwise.")
        if not given and missing:
            [(places,)] = engine.query(f"SELECT count(rank) FROM {engine.source} WHERE {shown}")
            told.append(
                "No rank was logged: the place in the list that was logged is the rank."
                if places
                else "No rank was logged, nor the list that was shown."
            )
        elif missing and format.place_fills_in:
            told.append(
                f"{many(missing, 'result')} shown without a logged rank: the place in the list of "
                "the search is taken, where it is known."
            )
    if log.roles.event:
        event = engine.dialect.quote(log.roles.event)
        found = engine.query(
            f"SELECT {event}, count(*) FROM {engine.source} GROUP BY {event}"
            " ORDER BY count(*) DESC LIMIT 30"
        )
        kinds: dict[str, list[str]] = {"shown": [], "clicks": [], "neither": []}
        for name, rows in found:
            known = {"shown": format.shown_events, "clicks": format.click_events}
            kind = next((kind for kind, names in known.items() if name in names), "neither")
            kinds[kind].append(f"{name or 'without a name'} ({rows:,})")
        words = (f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)
        told += [f"Rows by what happened: {'; '.join(words)}."] if found else []
    return told


def refuse_rank_zero(log: Log, zero: int, rows: int | None = None) -> None:
    """Raise BadLog if `zero` rows, of so many, have rank 0 where ranks are said to count from 1:
    dropped without a word, they would leave all others a rank too high."""
    if zero:
        of_all = many(zero, "row") if rows is None else f"{zero:,} of {many(rows, 'row')}"
        raise BadLog(
            f"{of_all} {verb(zero, 'has', 'have')} rank 0. If ranks count from 0 here, say so with "
            f"--first-rank 0; if {verb(zero, 'that result was', 'those results were')} not shown, "
            f"leave {verb(zero, 'it', 'them')} out with "
            f"--where {_condition(log, log.roles.rank or '', '> 0')}."
        )


def _refuse_ranks_by_page(log: Log) -> None:
    """A page column that is not in use, and rank 1 on later pages."""
    page = guess("page", log.engine.columns.values())
    kind = log.engine.columns[page].kind if page else "other"
    if log.roles.page or not page or kind not in _PAGE_KINDS:
        return
    planner = log.planner()
    number = values.number(planner.column(page)[0], kind, log.engine.dialect)
    chosen = f" AND coalesce(({log.rules.where}\n), FALSE)" if log.rules.where else ""
    sample = f"SELECT * FROM {planner.source} WHERE {number} IS NOT NULL{chosen} LIMIT {SAMPLE}"
    if log.layout.rank_is_place:
        first, top = "0", "count(*)"
    else:
        rank, _ = planner.column(log.roles.rank or "")
        text = log.engine.dialect.number.format(rank)
        first = f"max({text})"
        top = f"sum(CASE WHEN {text} = {log.rules.first_rank} THEN 1 ELSE 0 END)"
    found = log.engine.query(
        f"SELECT {number}, {top}, {first} FROM ({sample}) AS rd_sample GROUP BY {number}"
    )
    pages = sorted(found)
    later = [n for _, n, _ in pages[1:] if n]
    begin = f"{pages[0][0]:g}" if pages else ""
    if later and (len(later) * 2 > len(pages) - 1):
        size = max((int(m) for _, _, m in pages if m), default=0) - log.rules.first_rank + 1
        guess_size = size if size > 1 else "N"
        start = "" if begin == "1" else f" --first-page {begin}"
        first_page = f"'{begin}'" if kind == "text" else begin
        rows = sum(later)
        raise BadLog(
            f"Ranks start again on every page: {many(rows, 'row')} on later pages (column "
            f"{page!r}) {verb(rows, 'is', 'are')} at the first rank. Give --page "
            f"{shlex.quote(page)} --page-size {guess_size}{start}, so that ranks count on across "
            "pages; or leave later pages out with --where "
            f"{_condition(log, page, f'= {first_page}')}."
        )


def _condition(log: Log, column: str, test: str) -> str:
    """A condition on a column for --where, as one types it."""
    plain = column.isidentifier() and column.isascii()
    name = column if plain else log.engine.dialect.quote(*log.engine.columns[column].path)
    return f'"{name} {test}"' if plain else shlex.quote(f"{name} {test}")


def _check_shown(log: Log) -> list[str]:
    """A column that says which results were shown, beside others that were only candidates."""
    named = guess(
        "flag", log.engine.columns.values(), log.roles.used(), {"flag": _SHOWN}, _FLAG_KINDS
    )
    if named is None or named in (log.rules.where or ""):
        return []
    planner, kind = log.planner(), log.engine.columns[named].kind
    column = planner.column(named)[0]
    yes = values.says_yes(column, kind, planner.dialect)
    ranked = "TRUE"
    if log.roles.rank:  # those without a rank are left out as it is
        rank = values.number(*planner.column(log.roles.rank), planner.dialect)
        ranked = f"({rank}) >= {log.rules.first_rank}"
    sample = (
        f"(SELECT {column} AS flag, {yes} AS yes, {ranked} AS ranked FROM {planner.source}"
        f" LIMIT {SAMPLE}) AS rd_s"
    )
    found = log.engine.query(
        f"SELECT yes, flag, count(*) FROM {sample} WHERE ranked GROUP BY yes, flag"
    )
    hidden = sum(rows for yes, _, rows in found if not yes)
    said = [(rows, flag) for yes, flag, rows in found if yes]
    if not hidden or not said:
        return []
    word = max(said, key=lambda one: (one[0], str(one[1])))[1]
    test = {"bool": "= TRUE", "int": "> 0"}.get(kind) or f"= {log.engine.dialect.literal(word)}"
    return [
        f"{hidden:,} of the first {many(hidden + sum(rows for rows, _ in said), 'row')} with a "
        f"rank {verb(hidden, 'was', 'were')} not shown, if {named!r} says that, but "
        f"{verb(hidden, 'is', 'are')} counted as shown. Leave such rows out with "
        f"--where {_condition(log, named, test)}."
    ]


def _check_searches(log: Log) -> list[str]:
    """Do ranks and docs repeat within searches as they should not?"""
    sample = (
        f"(SELECT search, doc, rank FROM {ROWS_SHOWN} WHERE ok AND search IS NOT NULL"
        f" LIMIT {SAMPLE}) AS rd_sample"
    )
    by_rank = f"SELECT search, doc, rank, count(*) AS n FROM {sample} GROUP BY search, doc, rank"
    by_doc = (
        "SELECT search, sum(n) AS n, count(*) AS ranks, min(rank) AS rank"
        f" FROM ({by_rank}) AS rd_ranks GROUP BY search, doc"
    )
    # Two docs of a search that have their first rank in common share a rank.
    by_first = (
        "SELECT search, count(*) AS docs, sum(n) AS shown, sum(n - ranks) AS copies,"
        " sum(CASE WHEN ranks > 1 THEN n ELSE 0 END) AS twice"
        f" FROM ({by_doc}) AS rd_docs GROUP BY search, rank"
    )
    by_search = (
        "SELECT CASE WHEN sum(docs) > 1 THEN 1 ELSE 0 END AS several,"
        " CASE WHEN max(docs) > 1 THEN 1 ELSE 0 END AS sharing,"
        " sum(shown) AS shown, sum(copies) AS copies, sum(twice) AS twice"
        f" FROM ({by_first}) AS rd_firsts GROUP BY search"
    )
    sums = ", ".join(
        f"coalesce(sum({each}), 0)" for each in ("several", "sharing", "shown", "copies", "twice")
    )
    searches, repeated, rows, copies, twice = log.engine.query(
        rows_query(log.planner(), f"SELECT {sums} FROM ({by_search}) AS rd_searches")
    )[0]
    remarks = []
    if copies > _OFTEN * rows and not log.rules.dedupe:
        remarks.append(
            f"{copies:,} of the first {many(rows, 'row')} {verb(copies, 'repeats', 'repeat')} the "
            "search, doc and rank of another. "
            "If rows were logged twice, --dedupe keeps one of each."
        )
    elif searches and repeated > _MOSTLY * searches:
        raise BadLog(
            f"{repeated:,} of {many(searches, 'search', 'searches')} "
            f"{verb(repeated, 'has', 'have')} several docs at one rank. Either ranks start again "
            "on every page (give --page COLUMN --page-size N), or "
            f"{log.roles.search!r} does not tell searches apart (name the column with --search, "
            'or --search "" if there is none).'
        )
    if twice > _OFTEN * rows:
        remarks.append(
            f"{twice:,} of the first {many(rows, 'row')} {verb(twice, 'shows', 'show')} a doc at "
            "two ranks of one search; such rows are left out, clicked or not."
        )
    return remarks


def _check_score(log: Log) -> list[str]:
    """Are the results of a search in the order of their scores, from above or from below?"""
    planner = log.planner()
    score, kind = log.layout.score(planner)
    number = values.number("score", kind, log.engine.dialect)
    sample = (
        f"(SELECT search, rank, {number} AS score FROM {ROWS_SHOWN}"
        f" WHERE ok AND search IS NOT NULL LIMIT {SAMPLE}) AS rd_sample"
    )
    before = "lag(score) OVER (PARTITION BY search ORDER BY rank)"
    each = f"SELECT score, {before} AS above FROM {sample} WHERE score IS NOT NULL"
    sums = ", ".join(
        f"coalesce(sum(CASE WHEN {order} THEN 1 ELSE 0 END), 0)"
        for order in ("score > above", "score < above")
    )
    rising, falling = log.engine.query(
        rows_query(planner.but(carry={"score": score}), f"SELECT {sums} FROM ({each}) AS rd_each")
    )[0]
    wrong, both = min(rising, falling), rising + falling
    if wrong <= _OUT_OF_ORDER * both:
        return []
    return [
        f"Results are not in the order of {log.roles.score!r}: {wrong / both:.0%} of those with "
        "another score than the one above are on the wrong side of it. The score tells why docs "
        "moved only if results were sorted by it: name that one with --score, or leave it out "
        'with --score "".'
    ]
