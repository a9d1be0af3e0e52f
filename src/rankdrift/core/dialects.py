"""How each SQL engine says the few things they all say differently.

The harvest plan is written once, in SQL that every engine reads alike; what differs is here, a
template each. `{}` is the argument. Nothing here is specific to one step of the plan.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rankdrift.core.errors import BadOption, did_you_mean


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL, as templates for what differs."""

    name: str
    quotes: str  # the character around identifiers
    backslashes: bool  # does a backslash inside a string literal escape?
    distributed: bool  # are rows spread over machines, so that moving them costs most?
    text: str
    trim: str  # a text without blanks around it, those of all scripts included
    integer: str  # a whole number, or NULL where it is none
    number: str  # a double, or NULL where it is none
    double: str  # the type itself
    not_nan: str  # a double, or NULL where it is NaN
    hash: str  # of any number of values: only ever a filter, never stored
    md5: str  # hex of a text, lower case: the same on every engine
    find: str  # where in {0} is {1}, from 1
    matches: str  # does text {0} match pattern {1}?
    collect: str  # all {0} of a group, ascending, as text with one space between
    json_text: str  # the text of a JSON value, without its quotes
    nested_text: str  # a list or struct as text
    # days
    zoned_day: str  # the day in zone {1} of a timestamp without zone, read as UTC
    instant_day: str  # the day in zone {1} of an instant
    text_instant: str  # text with a date and time, as an instant; no zone means UTC
    epoch_instant: str  # seconds since 1970, as an instant
    seconds: str  # seconds since 1970 of an instant, whole
    clock: str  # the same of a timestamp without zone, read as UTC
    day_number: str  # days from Monday, 1 January 1900, to day {0}
    days_before: str  # the day that is {1} days before day {0}
    # lists
    explode: str  # FROM {source}, a row per element of {list}: rd_doc, and rd_place from 1
    text_list: str  # a list, its elements as text
    json_list: str  # a JSON text such as '["a","b"]' as a list of texts, NULL if it is none
    split: str  # a text such as 'a, b' as a list
    count_in: str  # how often {1} is in list {0}
    first_in: str  # the place, from 1, of the first {1} in list {0}
    strays: str  # how many elements of list {0} are not in list {1}
    element: str  # element {1} of list {0}
    # FROM {source}, a row per element of {list} as `explode`, and one row where there is no list
    unfold: str = (
        "(SELECT rd_row.*, rd_list.rd_doc, rd_list.rd_place FROM {source} AS rd_row"
        " LEFT JOIN UNNEST({list}) WITH ORDINALITY AS rd_list (rd_doc, rd_place) ON TRUE)"
        " AS rd_source"
    )
    size: str = "coalesce(cardinality({}), 0)"  # how many elements a list has, 0 for NULL
    whole_hash: str = "{}"  # a `hash` as a BIGINT
    # the first struct of list {0} whose field {1} is {2}
    entry: str = "element_at(filter({0}, v -> v.{1} = {2}), 1)"
    each: str = "transform({0}, v -> v.{1})"  # field {1} of every struct of list {0}
    part: str = "split_part({0}, {1}, {2})"  # part {2}, from 1, of text {0} cut at {1}
    cut: str = "split({0}, {1})"  # the list of all parts of text {0} cut at {1}, one character
    # the last {0} that is not NULL of the lines of file {1} down to this one, in the order of {2};
    # or of all files together, where lines come in order and to sort them would be waste
    last_so_far: str = (
        "last_value({0}, TRUE)"
        " OVER (PARTITION BY {1} ORDER BY {2} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    extract: str = "regexp_extract({0}, {1}, 1)"  # the first group of pattern {1} in text {0}
    # dates, where they are not as in most dialects
    date: str = "DATE {}"  # the day that a literal such as '2024-05-01' tells
    day: str = "CAST({} AS DATE)"  # of a timestamp without zone
    text_day: str = "TRY_CAST({} AS DATE)"  # text such as 2024-05-01 as a day, NULL if it is none
    # where one statement with all the steps in it would be too much, the steps are statements
    keep: str = ""  # keep what {select} gives as the table {name}, as long as the session
    inside: str = "{select}"  # a step that is not kept, inside the statements that read it
    opening: str = ""  # what comes before all statements
    # identifiers
    capitals: bool = False  # does an ordinary name without quotes mean the name in capitals?
    quotes_escaped: bool = False  # is a quote in a name escaped by a backslash, or doubled?

    def quote(self, *path: str) -> str:
        """An identifier no name can break out of."""
        return ".".join(self._quote(name) for name in path)

    def _quote(self, name: str) -> str:
        q = self.quotes
        if self.capitals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*", name):
            name = name.upper()
        if self.quotes_escaped:
            return q + name.replace("\\", "\\\\").replace(q, "\\" + q) + q
        return q + name.replace(q, q + q) + q

    def literal(self, value: str | None) -> str:
        """Text that no value can break out of; NULL for None."""
        if value is None:
            return "NULL"
        if self.backslashes:
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def literals(self, values: Iterable[str]) -> str:
        """Several texts with commas between. None is not among them: nothing is equal to NULL."""
        return ", ".join(map(self.literal, values))


# The blanks that DuckDB's trim takes away; Spark's by itself takes the first alone.
_BLANKS = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"

DUCKDB = Dialect(
    name="duckdb",
    quotes='"',
    backslashes=False,
    distributed=False,
    text="CAST({} AS VARCHAR)",
    trim="trim({})",
    integer="TRY_CAST({} AS BIGINT)",
    number="TRY_CAST({} AS DOUBLE)",
    double="DOUBLE",
    not_nan="CASE WHEN isfinite({0}) THEN {0} END",
    hash="hash({})",
    md5="md5({})",
    find="strpos({0}, {1})",
    matches="regexp_matches({0}, {1})",
    # An ordered string_agg takes four times as long.
    collect="array_to_string(list_sort(list({})), ' ')",
    json_text="({} ->> '$')",
    nested_text="CAST(to_json({}) AS VARCHAR)",
    zoned_day="CAST(timezone({1}, timezone('UTC', {0})) AS DATE)",
    instant_day="CAST(timezone({1}, {0}) AS DATE)",
    text_instant="TRY_CAST({} AS TIMESTAMPTZ)",  # the engine's connections run in UTC
    epoch_instant="to_timestamp({})",
    seconds="CAST(floor(epoch({})) AS BIGINT)",
    clock="CAST(floor(epoch({})) AS BIGINT)",
    day_number="date_diff('day', DATE '1900-01-01', {})",
    days_before="({0} - CAST({1} AS INTEGER))",
    explode=(
        "(SELECT *, unnest({list}) AS rd_doc, generate_subscripts({list}, 1) AS rd_place"
        " FROM {source}) AS rd_source"
    ),
    text_list="CAST({} AS VARCHAR[])",
    json_list="CASE WHEN json_valid({0}) THEN from_json({0}, '[\"VARCHAR\"]') END",
    split=(
        "list_filter(string_split_regex(regexp_replace({}, '[\\[\\]\"'']', '', 'g'),"
        " '[,;|\\s]+'), lambda v: v <> '')"
    ),
    count_in="coalesce(len(list_filter({0}, lambda v: v = {1})), 0)",
    first_in="list_position({0}, {1})",
    strays=(
        "coalesce(len(list_filter({0},"
        " lambda v: v IS NULL OR NOT coalesce(list_contains({1}, v), FALSE))), 0)"
    ),
    element="{0}[{1}]",
    unfold=(
        "(SELECT *, unnest(rd_list) AS rd_doc, generate_subscripts(rd_list, 1) AS rd_place FROM"
        " (SELECT *, CASE WHEN len({list}) > 0 THEN {list} ELSE [NULL] END AS rd_list"
        " FROM {source})) AS rd_source"
    ),
    size="coalesce(len({}), 0)",
    # One list of keys serves all entries that are asked for.
    entry="{0}[list_position(list_transform({0}, lambda v: v.{1}), {2})]",
    each="list_transform({0}, lambda v: v.{1})",
    cut="string_split({0}, {1})",
    whole_hash="CAST({} >> 1 AS BIGINT)",
    last_so_far=(
        "last_value({0} IGNORE NULLS) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    ),
)

SPARK = Dialect(
    name="spark",
    quotes="`",
    backslashes=True,
    distributed=True,
    text="CAST({} AS STRING)",
    trim=f"trim(BOTH '{_BLANKS}' FROM {{}})",
    integer="try_cast({} AS BIGINT)",
    number="try_cast({} AS DOUBLE)",
    double="DOUBLE",
    not_nan=("CASE WHEN NOT isnan({0}) AND abs({0}) < CAST('Infinity' AS DOUBLE) THEN {0} END"),
    hash="xxhash64({})",
    md5="md5({})",
    find="instr({0}, {1})",
    matches="{0} RLIKE {1}",
    collect="array_join(sort_array(collect_list({})), ' ')",
    json_text="CAST({} AS STRING)",
    nested_text="to_json({})",
    zoned_day="CAST(convert_timezone('UTC', {1}, {0}) AS DATE)",
    instant_day=(
        "CAST(convert_timezone(current_timezone(), {1}, CAST({0} AS TIMESTAMP_NTZ)) AS DATE)"
    ),
    text_instant=(
        "try_cast(CASE WHEN {0} RLIKE '(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$' THEN {0}"
        " ELSE concat({0}, 'Z') END AS TIMESTAMP)"
    ),
    epoch_instant="timestamp_seconds({})",
    seconds="unix_seconds({})",
    clock="unix_seconds(CAST(concat(date_format({}, 'yyyy-MM-dd HH:mm:ss'), 'Z') AS TIMESTAMP))",
    day_number="datediff({}, DATE '1900-01-01')",
    days_before="date_sub({0}, CAST({1} AS INT))",
    explode=(
        "(SELECT *, rd_index + 1 AS rd_place FROM {source}"
        " LATERAL VIEW posexplode({list}) rd_list AS rd_index, rd_doc) AS rd_source"
    ),
    text_list="CAST({} AS ARRAY<STRING>)",
    json_list="from_json({0}, 'array<string>')",
    split=(
        "filter(split(regexp_replace({}, '[\\\\[\\\\]\"\\']', ''), '[,;|\\\\s]+'), v -> v <> '')"
    ),
    count_in="coalesce(size(filter(coalesce({0}, array()), v -> v = {1})), 0)",
    first_in="array_position({0}, {1})",
    strays=(
        "size(filter(coalesce({0}, array()),"
        " v -> v IS NULL OR NOT coalesce(array_contains({1}, v), FALSE)))"
    ),
    element="try_element_at({0}, {1})",
    unfold=(
        "(SELECT *, coalesce(rd_index, 0) + 1 AS rd_place FROM {source}"
        " LATERAL VIEW OUTER posexplode({list}) rd_list AS rd_index, rd_doc) AS rd_source"
    ),
    size="coalesce(size({}), 0)",
    entry="try_element_at(filter({0}, v -> v.{1} = {2}), 1)",
)

BIGQUERY = Dialect(
    name="bigquery",
    quotes="`",
    backslashes=True,
    distributed=True,
    text="CAST({} AS STRING)",
    trim="trim({})",
    integer="SAFE_CAST({} AS INT64)",
    number="SAFE_CAST({} AS FLOAT64)",
    double="FLOAT64",
    not_nan="CASE WHEN NOT IS_NAN({0}) AND NOT IS_INF({0}) THEN {0} END",
    # JSON would have the names of columns in it, and differ from one side of a join to the other.
    hash="FARM_FINGERPRINT(FORMAT('%T', STRUCT({})))",
    md5="TO_HEX(MD5({}))",
    find="STRPOS({0}, {1})",
    matches="REGEXP_CONTAINS({0}, {1})",
    collect="STRING_AGG(CAST({0} AS STRING), ' ' ORDER BY {0})",
    json_text="JSON_VALUE({})",
    nested_text="TO_JSON_STRING({})",
    zoned_day="DATE(TIMESTAMP({0}, 'UTC'), {1})",
    instant_day="DATE({0}, {1})",
    text_instant="SAFE_CAST({} AS TIMESTAMP)",
    epoch_instant="TIMESTAMP_MICROS(CAST(1000000 * ({}) AS INT64))",
    seconds="UNIX_SECONDS({})",
    clock="UNIX_SECONDS(TIMESTAMP({}, 'UTC'))",
    day_number="DATE_DIFF({}, DATE '1900-01-01', DAY)",
    days_before="DATE_SUB({0}, INTERVAL {1} DAY)",
    explode=(
        "(SELECT rd_row.*, rd_doc, rd_index + 1 AS rd_place"
        " FROM {source} AS rd_row, UNNEST({list}) AS rd_doc WITH OFFSET AS rd_index) AS rd_source"
    ),
    text_list="ARRAY(SELECT CAST(v AS STRING) FROM UNNEST({}) AS v WITH OFFSET AS i ORDER BY i)",
    json_list="JSON_VALUE_ARRAY(SAFE.PARSE_JSON({0}))",
    split="REGEXP_EXTRACT_ALL({}, r'[^\\[\\]\",;|\\s]+')",
    count_in="(SELECT count(*) FROM UNNEST({0}) AS v WHERE v = {1})",
    first_in="(SELECT min(i) + 1 FROM UNNEST({0}) AS v WITH OFFSET AS i WHERE v = {1})",
    strays=(
        "(SELECT count(*) FROM UNNEST({0}) AS v"
        " WHERE v IS NULL OR v NOT IN (SELECT w FROM UNNEST({1}) AS w WHERE w IS NOT NULL))"
    ),
    element="{0}[SAFE_ORDINAL({1})]",
    unfold=(
        "(SELECT rd_row.*, rd_doc, coalesce(rd_index, 0) + 1 AS rd_place FROM {source} AS rd_row"
        " LEFT JOIN UNNEST({list}) AS rd_doc WITH OFFSET AS rd_index) AS rd_source"
    ),
    size="coalesce(ARRAY_LENGTH({}), 0)",
    entry="(SELECT v FROM UNNEST({0}) AS v WHERE v.{1} = {2} LIMIT 1)",
    part="SPLIT({0}, {1})[SAFE_ORDINAL({2})]",
    extract="REGEXP_EXTRACT({0}, {1})",
    text_day="SAFE_CAST({} AS DATE)",
    quotes_escaped=True,
)

SNOWFLAKE = Dialect(
    name="snowflake",
    quotes='"',
    backslashes=True,
    distributed=True,
    text="CAST({} AS VARCHAR)",
    trim="trim({})",
    integer="TRY_TO_NUMBER(CAST({} AS VARCHAR))",
    number="TRY_TO_DOUBLE(CAST({} AS VARCHAR))",
    double="DOUBLE",
    not_nan="CASE WHEN {0} <> 'NaN'::DOUBLE AND abs({0}) <> 'inf'::DOUBLE THEN {0} END",
    hash="HASH({})",
    md5="MD5({})",
    find="POSITION({1} IN {0})",
    matches="REGEXP_COUNT({0}, {1}) > 0",
    collect="LISTAGG({0}, ' ') WITHIN GROUP (ORDER BY {0})",
    json_text="CAST({} AS VARCHAR)",
    nested_text="TO_JSON({})",
    zoned_day="CAST(CONVERT_TIMEZONE('UTC', {1}, {0}) AS DATE)",
    instant_day="CAST(CONVERT_TIMEZONE({1}, {0}) AS DATE)",
    text_instant="TRY_TO_TIMESTAMP_TZ({})",
    epoch_instant="TO_TIMESTAMP_TZ({})",
    seconds="DATE_PART(EPOCH_SECOND, {})",
    clock="DATE_PART(EPOCH_SECOND, {})",
    day_number="DATEDIFF(day, DATE '1900-01-01', {})",
    days_before="DATEADD(day, -({1}), {0})",
    explode=(
        "(SELECT rd_row.*, CAST(rd_list.value AS VARCHAR) AS rd_doc, rd_list.index + 1 AS rd_place"
        " FROM {source} AS rd_row, LATERAL FLATTEN(INPUT => {list}) AS rd_list) AS rd_source"
    ),
    text_list="{}",
    json_list="CAST(TRY_PARSE_JSON({0}) AS ARRAY)",
    split="REGEXP_SUBSTR_ALL({}, '[^][\",;| ]+')",
    count_in="ARRAY_SIZE(FILTER(COALESCE({0}, []), v -> CAST(v AS VARCHAR) = {1}))",
    first_in="ARRAY_POSITION(CAST({1} AS VARIANT), {0}) + 1",
    strays="ARRAY_SIZE(FILTER(COALESCE({0}, []), v -> NOT ARRAY_CONTAINS(v, {1})))",
    element="GET({0}, {1} - 1)",
    capitals=True,
)

TRINO = Dialect(
    name="trino",
    quotes='"',
    backslashes=False,
    distributed=True,
    text="CAST({} AS VARCHAR)",
    trim="trim({})",
    integer="TRY_CAST({} AS BIGINT)",
    number="TRY_CAST({} AS DOUBLE)",
    double="DOUBLE",
    not_nan="CASE WHEN is_finite({0}) THEN {0} END",
    hash="xxhash64(to_utf8(json_format(CAST(ROW({}) AS JSON))))",
    md5="lower(to_hex(md5(to_utf8({}))))",
    find="strpos({0}, {1})",
    matches="regexp_like({0}, {1})",
    collect="array_join(array_sort(array_agg({})), ' ')",
    json_text="json_extract_scalar({}, '$')",
    nested_text="json_format(CAST({} AS JSON))",
    zoned_day="CAST(with_timezone({0}, 'UTC') AT TIME ZONE {1} AS DATE)",
    instant_day="CAST({0} AT TIME ZONE {1} AS DATE)",
    text_instant="TRY(from_iso8601_timestamp({}))",
    epoch_instant="from_unixtime({})",
    seconds="CAST(floor(to_unixtime({})) AS BIGINT)",
    clock="CAST(floor(to_unixtime(with_timezone({}, 'UTC'))) AS BIGINT)",
    day_number="date_diff('day', DATE '1900-01-01', {})",
    days_before="date_add('day', -({1}), {0})",
    explode=(
        "(SELECT rd_row.*, rd_list.rd_doc, rd_list.rd_place FROM {source} AS rd_row"
        " CROSS JOIN UNNEST({list}) WITH ORDINALITY AS rd_list (rd_doc, rd_place)) AS rd_source"
    ),
    text_list="CAST({} AS ARRAY(VARCHAR))",
    json_list="TRY(CAST(json_parse({0}) AS ARRAY(VARCHAR)))",
    split="regexp_extract_all({}, '[^\\[\\]\",;|\\s]+')",
    count_in="cardinality(filter(coalesce({0}, ARRAY[]), v -> v = {1}))",
    first_in="array_position({0}, {1})",
    strays=(
        "cardinality(filter(coalesce({0}, ARRAY[]),"
        " v -> v IS NULL OR NOT coalesce(contains({1}, v), FALSE)))"
    ),
    element="element_at({0}, {1})",
)

# Text is read by patterns first: a cast of what is no number or no date would end the statement.
_PG_NUMBER = r"'^[+-]?([0-9]{{1,200}}([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{{1,2}})?$'"
_PG_DATE = "^(?!0000)[0-9]{{4}}[-/](0?[1-9]|1[0-2])[-/](0?[1-9]|[12][0-9]|3[01])"
_PG_PART = "CAST((regexp_split_to_array({0}, '[^0-9]+'))[{1}] AS INTEGER)"
_PG_YEAR, _PG_MONTH, _PG_OF_MONTH = (_PG_PART.replace("{1}", str(i)) for i in (1, 2, 3))
# The day of the month may be one that the month has not: then it is in the next.
_PG_DAY = f"(make_date({_PG_YEAR}, {_PG_MONTH}, 1) + ({_PG_OF_MONTH} - 1))"
_PG_REAL_DAY = f"extract(month FROM {_PG_DAY}) = {_PG_MONTH}"
_PG_CLOCK = (
    "[T ]([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?"
    " ?(Z|z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)?$"
)
_PG_STRING = r'"([^"\\]|\\["\\/bfnrt]|\\u(?!0000)[0-9a-fA-F]{{4}})*"'
_PG_ITEM = rf"({_PG_STRING}|-?(0|[1-9][0-9]{{{{0,99}}}})([.][0-9]+)?|true|false|null)"
_PG_ARRAY = rf"^\s*\[\s*({_PG_ITEM}(\s*,\s*{_PG_ITEM})*)?\s*\]\s*$"

POSTGRES = Dialect(
    name="postgres",
    quotes='"',
    backslashes=False,
    distributed=True,  # it has no join by a hash on values that may be NULL, but on hashes
    text="CAST({} AS TEXT)",
    trim=f"btrim({{}}, '{_BLANKS}')",
    integer=f"CASE WHEN CAST({{0}} AS TEXT) ~ {_PG_NUMBER} THEN CAST({{0}} AS BIGINT) END",
    number=(
        f"CASE WHEN CAST({{0}} AS TEXT) ~ {_PG_NUMBER} THEN CAST({{0}} AS DOUBLE PRECISION) END"
    ),
    double="DOUBLE PRECISION",
    not_nan="CASE WHEN {0} NOT IN ('NaN', 'Infinity', '-Infinity') THEN {0} END",
    hash="hashtextextended(CAST(ROW({}) AS TEXT), 0)",
    md5="md5({})",
    find="strpos({0}, {1})",
    matches="{0} ~ {1}",
    collect="string_agg(CAST({0} AS TEXT), ' ' ORDER BY {0})",
    json_text="({} #>> '{{}}')",
    nested_text="CAST(to_json({}) AS TEXT)",
    zoned_day="CAST(timezone({1}, timezone('UTC', {0})) AS DATE)",
    instant_day="CAST(timezone({1}, {0}) AS DATE)",
    text_instant=(
        f"CASE WHEN {{0}} ~ '{_PG_DATE}{_PG_CLOCK}' THEN CASE WHEN {_PG_REAL_DAY} THEN"
        " CAST(concat({0}, CASE WHEN {0} ~ ':.*(Z|z|[+-][0-9:]+)$' THEN '' ELSE 'Z' END)"
        " AS TIMESTAMPTZ) END END"
    ),
    epoch_instant="to_timestamp({})",
    seconds="CAST(floor(extract(epoch FROM {})) AS BIGINT)",
    clock="CAST(floor(extract(epoch FROM {})) AS BIGINT)",
    day_number="({} - DATE '1900-01-01')",
    days_before="({0} - CAST({1} AS INTEGER))",
    explode=(
        "(SELECT rd_row.*, rd_list.rd_doc, rd_list.rd_place FROM {source} AS rd_row"
        " CROSS JOIN LATERAL unnest({list}) WITH ORDINALITY AS rd_list (rd_doc, rd_place))"
        " AS rd_source"
    ),
    text_list="CAST({} AS TEXT[])",
    json_list=(
        f"CASE WHEN {{0}} ~ '{_PG_ARRAY}' THEN"
        " ARRAY(SELECT json_array_elements_text(CAST({0} AS JSON))) END"
    ),
    split=(
        r"array_remove(regexp_split_to_array("
        r"""regexp_replace({}, '[]["'']', '', 'g'), '[,;|\s]+'), '')"""
    ),
    count_in="(SELECT count(*) FROM unnest({0}) AS v WHERE v = {1})",
    first_in="array_position({0}, {1})",
    strays=(
        "(SELECT count(*) FROM unnest({0}) AS v WHERE v IS NULL OR array_position({1}, v) IS NULL)"
    ),
    element="({0})[CAST({1} AS INTEGER)]",
    text_day=(
        f"CASE WHEN {{0}} ~ '{_PG_DATE}$' THEN CASE WHEN {_PG_REAL_DAY} THEN {_PG_DAY} END END"
    ),
    keep=(
        "DROP TABLE IF EXISTS pg_temp.{name};\n"
        "CREATE TEMPORARY TABLE {name} AS\n{select};\nANALYZE {name};"
    ),
    # Without it a value is worked out again wherever it is read.
    inside="{select}\nOFFSET 0",
)

# 30 February is taken for 1 March.
_CH_REAL_DAY = "toDayOfMonth(toDate32OrNull({0})) = toUInt8OrNull(extract({0}, '[0-9]+$'))"
_CH_SPLIT = (
    r"""CAST(extractAll(ifNull({0}, ''), '[^\\[\\]"\',;|\\s]+') AS Array(Nullable(String)))"""
)

CLICKHOUSE = Dialect(
    name="clickhouse",
    quotes="`",
    backslashes=True,
    distributed=True,  # a step that is read twice is worked out twice, so it must not depend on it
    text="CAST({} AS Nullable(String))",
    trim=f"replaceRegexpAll({{}}, '^[{_BLANKS}]+|[{_BLANKS}]+$', '')",
    integer="accurateCastOrNull({}, 'Int64')",
    number="accurateCastOrNull({}, 'Float64')",
    double="Nullable(Float64)",
    not_nan="CASE WHEN isFinite(toFloat64({0})) THEN {0} END",
    hash="cityHash64(tuple({}))",
    md5="lower(hex(MD5({})))",
    find="position({0}, {1})",
    matches="match({0}, {1})",
    collect="arrayStringConcat(arrayMap(v -> toString(v), arraySort(groupArray({}))), ' ')",
    json_text="toString({})",
    nested_text="toJSONString({})",
    zoned_day="toDate32(toTimeZone(toDateTime64(toString({0}), 6, 'UTC'), {1}))",
    instant_day="toDate32({0}, {1})",
    text_instant=(
        f"CASE WHEN {_CH_REAL_DAY.format('substr({0}, 1, 10)')}"
        " THEN parseDateTime64BestEffortOrNull({0}, 6, 'UTC') END"
    ),
    epoch_instant="toDateTime64({}, 6, 'UTC')",
    seconds="toInt64(toUnixTimestamp64Second(toDateTime64({}, 0)))",
    clock="toInt64(toUnixTimestamp64Second(toDateTime64(toString({}), 0, 'UTC')))",
    day_number="(toInt32(toDate32({})) - toInt32(toDate32('1900-01-01')))",
    days_before="(toDate32({0}) - toInt32({1}))",
    explode=(
        "(SELECT *, rd_doc, rd_place FROM {source} ARRAY JOIN {list} AS rd_doc,"
        " arrayEnumerate({list}) AS rd_place) AS rd_source"
    ),
    text_list="CAST({} AS Array(Nullable(String)))",
    # A list is never NULL.
    json_list=(
        "if(isValidJSON(ifNull({0}, '')),"
        f" JSONExtract(ifNull({{0}}, ''), 'Array(Nullable(String))'), {_CH_SPLIT})"
    ),
    split=_CH_SPLIT,
    count_in="arrayCount(v -> ifNull(v = {1}, 0), {0})",
    first_in="nullIf(indexOf({0}, {1}), 0)",
    strays="arrayCount(v -> isNull(v) OR NOT has({1}, v), {0})",
    element="arrayElementOrNull({0}, {1})",
    date="toDate32({})",
    day="toDate32({})",
    text_day=f"CASE WHEN {_CH_REAL_DAY.format('{0}')} THEN toDate32OrNull({{0}}) END",
    keep=("DROP TEMPORARY TABLE IF EXISTS {name};\nCREATE TEMPORARY TABLE {name} AS\n{select};"),
    # Joins and casts as in standard SQL, where a missing value is NULL; and a name in a SELECT is
    # the column of that name, not what the SELECT itself makes of it.
    opening=(
        "SET join_use_nulls = 1, cast_keep_nullable = 1, prefer_column_name_to_alias = 1,"
        " aggregate_functions_null_for_empty = 1, format_csv_null_representation = '';"
    ),
    quotes_escaped=True,
)

# What Databricks runs is Spark's SQL.
DATABRICKS = replace(SPARK, name="databricks")

DIALECTS = {
    d.name: d
    for d in (
        DUCKDB, SPARK, DATABRICKS, BIGQUERY, SNOWFLAKE, TRINO, CLICKHOUSE, POSTGRES,
    )
}  # fmt: skip


def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    if name not in DIALECTS:
        raise BadOption(
            f"No SQL dialect {name!r}.{did_you_mean(name, DIALECTS)} "
            f"There are {', '.join(DIALECTS)}."
        )
    return DIALECTS[name]
