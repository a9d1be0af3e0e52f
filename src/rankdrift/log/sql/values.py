"""What a value in a log means: SQL that turns columns of any type into ranks, clicks and days.

Each function takes a column's SQL and its kind and returns SQL. Text is read leniently, but what
cannot be read becomes NULL and is counted, never guessed.
"""

import datetime
import re

from rankdrift.core.dialects import Dialect
from rankdrift.log.columns import NESTED_KINDS, TEXT_KINDS, TIME_KINDS, Column, ColumnKind
from rankdrift.log.options import Rules

MONDAY = datetime.date(1900, 1, 1)
"""Windows of several days are counted from here on, whatever the first day of a log."""
FIRST_DAY, LAST_DAY = "1900-01-02", "2999-12-31"
"""Days of a log lie between these. A time in year 1, 1900 or 9999 stands for none, and past 9999 it
is no date in Python."""
_YES = ("true", "t", "yes", "y")
_A_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"


# A date and perhaps a time of day, by what stands between the numbers.
YEAR_LAST = {s: re.compile(f"^[0-9]{{1,2}}[{s}][0-9]{{1,2}}[{s}][0-9]{{4}}") for s in "./-"}


def plain_text(sql: str, kind: ColumnKind, d: Dialect) -> str:
    """The value as text without surrounding blanks."""
    as_text = d.json_text.format(sql) if kind == "json" else d.text.format(sql)
    return d.trim.format(as_text)


def key(sql: str, kind: ColumnKind, d: Dialect) -> str:
    """A value to be compared for equality: as it is, or as text where types cannot be compared."""
    if kind == "json":
        return d.json_text.format(sql)
    if kind in NESTED_KINDS:
        return d.nested_text.format(sql)
    if kind == "float":
        return d.not_nan.format(sql)
    return d.text.format(sql) if kind == "other" else sql


def as_text(key_sql: str, kind: ColumnKind, d: Dialect) -> str:
    """A key as text that is the same on every engine (12.0 is '12'): for buckets and segments."""
    if kind == "float":
        whole = _is_whole(key_sql)
        as_integer = d.text.format(f"CAST({key_sql} AS BIGINT)")
        return f"CASE WHEN {whole} THEN {as_integer} ELSE {d.text.format(key_sql)} END"
    is_text = kind in (*TEXT_KINDS, *NESTED_KINDS)
    return key_sql if is_text else d.text.format(key_sql)


def rank(sql: str, kind: ColumnKind, d: Dialect) -> tuple[str, str]:
    """(the rank as a number or NULL, the condition that it is there but not a whole number)."""
    return _whole(sql, kind, d)


def click(sql: str, kind: ColumnKind, d: Dialect) -> tuple[str, str]:
    """(how many clicks, or NULL; the condition that it is there but cannot be read)."""
    if kind == "bool":
        return f"CAST({sql} AS INTEGER)", "FALSE"
    if kind in TIME_KINDS:  # the time of the click
        return f"CASE WHEN {sql} IS NULL THEN 0 ELSE 1 END", "FALSE"
    if kind in ("text", "json"):
        word = f"lower({plain_text(sql, kind, d)})"
        number, bad = _whole(sql, kind, d)
        yes, no = (*_YES, "click", "clicked"), ("false", "f", "no", "n")
        time = d.matches.format(word, d.literal(_A_DATE))
        value = (
            f"CASE WHEN {word} IN ({d.literals(yes)}) OR {time} THEN 1"
            f" WHEN {word} IN ({d.literals(no)}) THEN 0 ELSE {number} END"
        )
        known = f"{word} IN ({d.literals(yes + no)}) OR {time}"
        return value, f"({bad}) AND NOT ({known}) OR {_negative(number)}"
    value, bad = _whole(sql, kind, d)
    return value, _negative(value) if bad == "FALSE" else f"({bad}) OR {_negative(value)}"


def says_yes(sql: str, kind: ColumnKind, d: Dialect) -> str:
    """Whether it is true, 1 or yes; missing is no."""
    return f"coalesce(({click(sql, kind, d)[0]}) > 0, FALSE)"


def number(sql: str, kind: ColumnKind, d: Dialect) -> str:
    """A double, or NULL where there is none, NaN or infinity."""
    if kind in ("int", "float"):
        return d.not_nan.format(f"CAST({sql} AS {d.double})")
    return d.not_nan.format(d.number.format(plain_text(sql, kind, d)))


def mark(sql: str, column: Column) -> str:
    """A key, or NULL where it is blank: who or what it was is not known."""
    blank = column.kind in TEXT_KINDS and not column.full
    return f"CASE WHEN trim({sql}) <> '' THEN {sql} END" if blank else sql


def outcome(sql: str, kind: ColumnKind, at_least: float | None, d: Dialect) -> str:
    """1 where something came of a click, else 0: a flag, a number above 0 or of at least so much,
    or a time."""
    if kind in TIME_KINDS:
        return f"CASE WHEN {sql} IS NULL THEN 0 ELSE 1 END"
    if kind == "bool":
        return f"CASE WHEN {sql} THEN 1 ELSE 0 END"
    enough = "> 0" if at_least is None else f">= CAST({at_least!r} AS {d.double})"
    yes = f"{number(sql, kind, d)} {enough}"
    if kind in TEXT_KINDS and at_least is None:
        text = f"lower({plain_text(sql, kind, d)})"
        time = d.matches.format(text, d.literal(_A_DATE))
        yes = f"{text} IN ({d.literals(_YES)}) OR {time} OR {yes}"
    return f"CASE WHEN {yes} THEN 1 ELSE 0 END"


def _negative(sql: str) -> str:
    return f"coalesce(({sql}) < 0, FALSE)"


def _whole(sql: str, kind: ColumnKind, d: Dialect) -> tuple[str, str]:
    if kind == "int":
        return sql, "FALSE"
    if kind == "bool":
        return f"CAST({sql} AS INTEGER)", "FALSE"
    if kind == "float":
        number = d.not_nan.format(f"CAST({sql} AS {d.double})")
        missing = f"{sql} IS NULL OR ({number}) IS NULL"
    else:
        text = plain_text(sql, kind, d)
        number = d.not_nan.format(d.number.format(text))
        missing = f"{sql} IS NULL OR {text} = ''"
    fits = _is_whole(number)
    value = f"CASE WHEN {fits} THEN CAST({number} AS BIGINT) END"
    return value, f"NOT ({missing}) AND NOT coalesce({fits}, FALSE)"


def _is_whole(number: str) -> str:
    """Of a double. Beyond the integers some engines can neither cast nor round it."""
    return f"CASE WHEN abs({number}) < 1e15 THEN ({number}) = floor({number}) ELSE FALSE END"


def day(column: Column, sql: str, rules: Rules, d: Dialect) -> str:
    """The day of a date, a timestamp, text, YYYYMMDD or an epoch in s, ms, µs or ns."""
    found = _day(column, sql, rules, d)
    if column.full and column.kind in TIME_KINDS:
        return found
    first, last = (d.date.format(d.literal(limit)) for limit in (FIRST_DAY, LAST_DAY))
    sane = f"{found} BETWEEN {first} AND {last}"
    return f"CASE WHEN {sane} THEN {found} END"


def _day(column: Column, sql: str, rules: Rules, d: Dialect) -> str:
    kind, zone = column.kind, d.literal(rules.time_zone or "UTC")
    if kind == "date":
        return sql
    if kind == "timestamp":
        if rules.time_zone:
            return d.zoned_day.format(sql, zone)
        return d.day.format(sql)
    if kind == "instant":
        return d.instant_day.format(sql, zone)
    text = _time_text(sql, kind, rules, d)
    digits = d.matches.format(text, d.literal("^[0-9]+$"))
    parts = (f"substr({text}, 1, 4)", f"substr({text}, 5, 2)", f"substr({text}, 7, 2)")
    compact = d.text_day.format(f"concat({parts[0]}, '-', {parts[1]}, '-', {parts[2]})")
    number = d.number.format(text)
    epoch = d.instant_day.format(d.epoch_instant.format(f"{number} / {_scale(text)}"), zone)
    iso = d.instant_day.format(d.text_instant.format(text), zone)
    return (
        f"CASE WHEN {digits} THEN CASE WHEN length({text}) = 8 THEN {compact}"
        f" WHEN length({text}) BETWEEN 9 AND 19 THEN {epoch} END"
        f" WHEN length({text}) <= 10 THEN {d.text_day.format(text)} ELSE {iso} END"
    )


def window_of(day_sql: str, days: int, d: Dialect) -> str:
    """The first day of the window of so many days that a day is in: windows of 7 are weeks."""
    if days == 1:
        return day_sql
    return d.days_before.format(
        f"({day_sql})", f"mod({d.day_number.format(f'({day_sql})')}, {days})"
    )


def window_begins(day: datetime.date, days: int) -> datetime.date:
    """The same of a day in Python."""
    return day - datetime.timedelta(days=(day - MONDAY).days % days)


def seconds(column: Column, sql: str, rules: Rules, d: Dialect) -> str:
    """Seconds since 1970 of a column that tells the time of day: for the order of appearances."""
    if column.kind == "timestamp":
        return d.clock.format(sql)
    if column.kind == "instant":
        return d.seconds.format(sql)
    text = _time_text(sql, column.kind, rules, d)
    digits = d.matches.format(text, d.literal("^[0-9]{9,19}$"))
    scaled = f"floor({d.number.format(text)} / {_scale(text)})"
    iso = d.seconds.format(d.text_instant.format(text))
    return (
        f"CASE WHEN {digits} THEN CAST({scaled} AS BIGINT) WHEN length({text}) > 10 THEN {iso} END"
    )


def instant(sql: str, kind: ColumnKind, d: Dialect) -> str:
    """An instant from an epoch in s, ms, µs or ns, or from a date and time; NULL where it is
    neither."""
    if kind == "instant":
        return sql
    text = _time_text(sql, kind, Rules(), d)
    digits = d.matches.format(text, d.literal("^[0-9]{9,19}$"))
    epoch = d.epoch_instant.format(f"{d.number.format(text)} / {_scale(text)}")
    return f"CASE WHEN {digits} THEN {epoch} ELSE {d.text_instant.format(text)} END"


def _time_text(sql: str, kind: ColumnKind, rules: Rules, d: Dialect) -> str:
    """A date or an epoch as text, year first; of a float the whole part, in plain digits."""
    if kind in TEXT_KINDS and rules.dates:
        return _year_first(plain_text(sql, kind, d), rules.dates, d)
    if kind != "float":
        return plain_text(sql, kind, d)
    number = d.not_nan.format(f"CAST({sql} AS {d.double})")
    # An epoch in nanoseconds is the largest, and a double past the integers cannot be cast.
    whole = f"CASE WHEN abs({number}) < 9e18 THEN CAST(floor({number}) AS BIGINT) END"
    return d.text.format(f"({whole})")


def _year_first(text: str, dates: str, d: Dialect) -> str:
    """Of text with the year last, such as 31.12.2024 13:05, the date turned round."""
    first, separator = dates[0], dates[1]
    parts = [f"split_part({text}, '{separator}', {i})" for i in (1, 2, 3)]
    day, month = (f"lpad({part}, 2, '0')" for part in (parts[:2] if first == "d" else parts[1::-1]))
    year, rest = f"substr({parts[2]}, 1, 4)", f"substr({parts[2]}, 5)"
    turned = f"concat({year}, '-', {month}, '-', {day}, {rest})"
    like = d.matches.format(text, d.literal(YEAR_LAST[separator].pattern))
    return f"(CASE WHEN {like} THEN {turned} ELSE {text} END)"


def _scale(text: str) -> str:
    """Units of an epoch in a second, by how many digits it has: s, ms, µs or ns."""
    sizes = " ".join(
        f"WHEN length({text}) <= {most} THEN {unit}"
        for most, unit in ((11, 1), (14, 1000), (17, 1000000))
    )
    return f"(CASE {sizes} ELSE 1000000000 END)"


def zone_words(column: Column, rules: Rules) -> str:
    """What a day means here, for people."""
    if column.kind == "date":
        return "the date as written"
    if column.kind == "timestamp" and not rules.time_zone:
        return "the date of the timestamp as written"
    return f"the date in {rules.time_zone or 'UTC'}"
