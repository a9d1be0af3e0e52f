"""Which column of a log plays which part: by name, or guessed from the names people use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rankdrift.core.errors import BadOption, MissingColumns, did_you_mean

# What an engine tells of a column's type. Engines name types each in their own way;
# everything after them only needs to know which of these a column is.
KINDS = (
    "int", "float", "bool", "text", "json", "date", "timestamp", "instant", "list", "nested",
    "other",  # compared as text
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of the source: `path` is its name, or the names down into a struct."""

    path: tuple[str, ...]
    kind: str
    # What the files' own statistics tell, where they do: no value is NULL (or blank, in text),
    # and numbers lie between these. What cannot happen need not be checked row by row.
    full: bool = False
    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Roles:
    """The columns of a log by the part they play. Layouts differ in what they need:

    - long (a row per result shown): query, doc, rank, click
    - list (a row per search): query, shown, clicked
    - events (a row per event): query, doc, rank, search, event
    """

    query: tuple[str, ...]
    doc: str | None = None
    rank: str | None = None
    click: str | None = None
    shown: str | None = None
    clicked: str | None = None
    event: str | None = None
    day: str | None = None
    time: str | None = None
    search: str | None = None
    page: str | None = None
    same: tuple[str, ...] = ()
    segment: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        if self.shown:
            return "list"
        return "events" if self.event else "long"

    def used(self) -> list[str]:
        """Every column name in use, each once."""
        single = [self.doc, self.rank, self.click, self.shown, self.clicked, self.event]
        single += [self.day, self.time, self.search, self.page]
        names = [*self.query, *(name for name in single if name), *self.same, *self.segment]
        return list(dict.fromkeys(names))

    def to_dict(self) -> dict[str, object]:
        found = {key: value for key, value in vars(self).items() if value}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in found.items()}


# Names seen in the wild, best first. Compared without case, spaces, dashes and underscores.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "query": (
        "user_query", "query", "keywords", "query_text", "search_query", "search_term",
        "search_terms", "keyword", "term", "q", "search_string", "search_text", "query_string",
        "normalized_query", "search_phrase", "event_attributes.query", "query_id", "qid",
    ),
    "doc": (
        "doc", "doc_id", "document", "document_id", "item", "item_id", "product", "product_id",
        "listing", "listing_id", "sku", "asin", "url", "url_id", "article_id", "object_id", "pid",
        "docid", "itemid", "event_attributes.object.object_id",
    ),
    "rank": (
        "rank", "position", "pos", "ranking", "displayed_rank", "display_rank", "item_rank",
        "result_position", "search_position", "slot", "place", "ordinal", "rank_position",
        "event_attributes.position.ordinal",
    ),
    "click": (
        "click", "clicked", "is_click", "is_clicked", "clicks", "has_click", "n_clicks",
        "num_clicks", "click_count", "was_clicked", "clicked_at", "click_flag",
    ),
    "shown": (
        "shown", "shown_docs", "results", "result_ids", "docs", "doc_ids", "items", "item_ids",
        "product_ids", "impressions", "displayed", "impressed_items", "search_results",
    ),
    "clicked": (
        "clicked", "clicked_docs", "clicks", "clicked_items", "clicked_ids", "clicked_products",
        "clicked_item_ids", "clicked_product_ids", "clicked_doc_ids",
    ),
    "event": ("event", "event_type", "event_name", "action", "action_name", "action_type"),
    "day": (
        "day", "date", "event_date", "dt", "ds", "search_date", "log_date", "timestamp", "ts",
        "event_time", "event_timestamp", "datetime", "time", "search_time", "created_at",
    ),
    "search": (
        "search", "search_id", "search_uuid", "request_id", "serp_id", "impression_id",
        "page_view_id", "search_request_id", "request", "query_response_id",
    ),
    "page": ("page", "page_number", "page_no", "page_num", "page_index", "results_page"),
}  # fmt: skip


def plain(name: str) -> str:
    """A name without case and punctuation: 'Item ID', 'item_id' and 'itemId' are one."""
    return "".join(c for c in name.lower() if c.isalnum() or c == ".")


# A session holds many searches, and a query_id may name the query's text: taken for a search
# they would make every repeat look like "twice in one search". Only event logs, where clicks
# are joined to results by it, use query_id this way (OpenSearch's UBI does).
EVENT_SEARCH = ("query_id", *SYNONYMS["search"])


def guess(
    role: str, columns: Iterable[Column], taken: Iterable[str] = (), layout: str = "long"
) -> str | None:
    """The column whose name is the best-known word for this role, if there is one."""
    words = EVENT_SEARCH if (role, layout) == ("search", "events") else SYNONYMS[role]
    used = set(taken)
    by_name = {plain(c.name): c for c in reversed(list(columns)) if c.name not in used}
    for word in words:
        column = by_name.get(plain(word))
        if column and _fits(role, column):
            return column.name
    return None


def _fits(role: str, column: Column) -> bool:
    if role in ("shown", "clicked"):
        return column.kind in ("list", "json")
    return column.kind not in ("list", "nested")


def resolve(name: str, columns: Mapping[str, Column], option: str) -> Column:
    """The column called `name`, or a MissingColumns that helps."""
    if name in columns:
        return columns[name]
    same = [c for c in columns if plain(c) == plain(name)]
    hint = f" Did you mean {same[0]!r}?" if same else did_you_mean(name, columns)
    there = ", ".join(repr(c) for c in list(columns)[:20])
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    raise MissingColumns(
        f"The log has no column {name!r} (asked for by {option}).{hint} "
        f"Its columns are {there}{more}."
    )


def assign(
    columns: Mapping[str, Column], given: Mapping[str, str | tuple[str, ...] | None], layout: str
) -> tuple[Roles, dict[str, str]]:
    """Roles for these columns, and which of them were guessed (role -> column)."""
    named: dict[str, tuple[str, ...]] = {}
    none = {role for role, value in given.items() if value == ""}
    for role, value in given.items():
        names = (value,) if isinstance(value, str) else tuple(value or ())
        names = tuple(name for name in names if name)
        for name in names:
            resolve(name, columns, role)
        if names:
            named[role] = names
    # What must be equal or makes segments may be anything, the query and the day included.
    parts = (names for role, names in named.items() if role not in ("same", "segment"))
    taken = {name for names in parts for name in names}
    if layout == "auto":
        layout = _layout(columns, named, taken)
    for role, its_layout in (("shown", "list"), ("clicked", "list"), ("event", "events")):
        if role in named and layout != its_layout:
            raise BadOption(f"{role} goes with a log of layout {its_layout}, not {layout}.")
    guessed: dict[str, str] = {}
    for role in (*NEEDED[layout], *OPTIONAL[layout]):
        if role in named or role in none:
            continue
        found = guess(role, columns.values(), taken, layout)
        if found:
            guessed[role] = found
            named[role] = (found,)
            taken.add(found)
    if "time" not in none | set(named) and "day" in named:
        # A day that is read from a time of day tells the time as well.
        day = columns[named["day"][0]]
        if day.kind in ("timestamp", "instant"):
            named["time"] = (day.name,)
    missing = [role for role in NEEDED[layout] if role not in named]
    if missing:
        raise MissingColumns(_explain_missing(missing, columns, layout))
    many = ("query", "same", "segment")
    chosen = {role: names if role in many else names[0] for role, names in named.items()}
    return Roles(**chosen), guessed  # type: ignore[arg-type]  # keys are Roles' own fields


NEEDED = {
    "long": ("query", "doc", "rank", "click"),
    "list": ("query", "shown", "clicked"),
    "events": ("query", "search", "doc", "rank", "event"),
}
# `page` is never guessed into use: it changes ranks, so it only prompts advice.
OPTIONAL = {"long": ("day", "search"), "list": ("day",), "events": ("day",)}


def _layout(
    columns: Mapping[str, Column], named: Mapping[str, tuple[str, ...]], taken: set[str]
) -> str:
    if "shown" in named or "clicked" in named:
        return "list"
    if "event" in named:
        return "events"
    if "click" in named or "rank" in named:
        return "long"
    free = columns.values()
    if guess("rank", free, taken) and guess("click", free, taken):
        return "long"
    if guess("shown", free, taken) and guess("clicked", free, taken):
        return "list"
    if guess("rank", free, taken) and guess("event", free, taken):
        return "events"
    return "long"


def _explain_missing(missing: list[str], columns: Mapping[str, Column], layout: str) -> str:
    parts = []
    for role in missing:
        hint = did_you_mean(role, columns)
        parts.append(f"no column for {role!r} (tried {', '.join(SYNONYMS[role][:6])}, …).{hint}")
    names = ", ".join(repr(c) for c in list(columns)[:20])
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    flags = " ".join(f"--{role} NAME" for role in missing)
    return (
        f"Could not find the columns of a {layout} log: {' '.join(parts)} "
        f"The columns are {names}{more}. Name them with {flags}."
    )
