"""Dates whose year comes last: 31.12.2024 and 31/12/2024 in most of the world, 12/31/2024 in some.

One such date need not tell the day from the month, but a log of many does.
"""

from rankdrift.core.errors import BadLog
from rankdrift.log.columns import TEXT_KINDS, Roles
from rankdrift.log.engines.engine import Engine
from rankdrift.log.sql import values

_SEPARATORS = "./-"
_MONTHS = 12


def written_dates(engine: Engine, roles: Roles) -> str | None:
    """How the log writes its dates, one of `options.DATES`; None if the year comes first.

    Raises BadLog if days and months cannot be told apart.
    """
    for name in dict.fromkeys(filter(None, (roles.day, roles.time))):
        column = engine.columns[name]
        if column.kind not in TEXT_KINDS:
            continue
        sql = engine.dialect.quote(*column.path)
        text = values.plain_text(sql, column.kind, engine.dialect)
        found = engine.query(f"SELECT {text} FROM {engine.source} WHERE {sql} IS NOT NULL LIMIT 1")
        sample = str(found[0][0]) if found else ""
        separator = next((s for s in _SEPARATORS if values.YEAR_LAST[s].match(sample)), "")
        if separator:
            return _order(engine, text, separator, name, sample)
    return None


def _order(engine: Engine, text: str, separator: str, name: str, sample: str) -> str:
    d = engine.dialect
    first, second = (d.number.format(f"split_part({text}, '{separator}', {i})") for i in (1, 2))
    like = d.matches.format(text, d.literal(values.YEAR_LAST[separator].pattern))
    [(first, second)] = engine.query(
        f"SELECT max({first}), max({second}) FROM {engine.source} WHERE {like}"
    )
    days = [part > _MONTHS for part in (first, second)]
    if days == [True, False] or (separator == "." and not days[1]):
        return separator.join("dmy")
    if days == [False, True]:
        return separator.join("mdy")
    why = "a number above 12 stands in both places" if all(days) else "no number is above 12"
    raise BadLog(
        f"The column {name!r} has dates such as {sample[:20]!r}, and which part is the day cannot "
        f"be told: {why}. Say it with --dates {separator.join('dmy')} or "
        f"--dates {separator.join('mdy')}."
    )
