"""The columns of a log: what kinds there are, which part each plays, and the names people use."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rankdrift.core.errors import MissingColumns, did_you_mean

ColumnKind = Literal[
    "int", "huge",  # which may not fit 64 bits
    "float", "bool", "text", "json", "date", "timestamp", "instant", "list", "nested",
    "other",  # compared as text
]  # fmt: skip
"""What an engine says of a column's type. Engines name types each in their own way; everything
after them only needs to know which of these a column is."""
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
TEXT_KINDS: tuple[ColumnKind, ...] = ("text", "json", "other")
"""Kinds that are read as text."""
TIME_KINDS: tuple[ColumnKind, ...] = ("date", "timestamp", "instant")
"""Kinds that have a day whenever they have a value, but for times that stand for none."""
NESTED_KINDS: tuple[ColumnKind, ...] = ("list", "nested")
"""Kinds of more than one value."""


@dataclass(frozen=True)
class Column:
    """A column of the source: `path` is its name, or the names down into a struct.

    `full`, `low` and `high` are what the files' own statistics say, where they do: no value is
    NULL (or blank, in text, or a time that stands for none), and numbers lie between these. What
    cannot happen need not be checked row by row.
    """

    path: tuple[str, ...]
    kind: ColumnKind
    full: bool = False
    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str:
        """The path as one types it."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Roles:
    """The columns of a log by the part they play. Layouts differ in what they need: see
    `rankdrift.log.layouts`."""

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
    score: str | None = None
    ranker: str | None = None
    user: str | None = None
    outcome: str | None = None
    randomised: str | None = None

    @classmethod
    def of(cls, names: Mapping[str, str | Sequence[str]]) -> "Roles":
        """From role -> name or names; roles of one column take the first."""
        chosen: dict[str, str | tuple[str, ...]] = {}
        for role, value in names.items():
            several = (value,) if isinstance(value, str) else tuple(value)
            chosen[role] = several if role in SEVERAL else several[0]
        return cls(**chosen)  # type: ignore[arg-type]  # the keys are fields, by how many they take

    def used(self, without: Container[str] = ()) -> list[str]:
        """Every column name in use, each once; not those of the roles `without`."""
        found = (value for role, value in self.to_dict().items() if role not in without)
        lists = (value if isinstance(value, list) else [value] for value in found)
        return list(dict.fromkeys(name for names in lists for name in names))

    def to_dict(self) -> dict[str, str | list[str]]:
        """Role -> column or list of columns, as plain values; roles without any are left out."""
        found = {key: value for key, value in vars(self).items() if value}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in found.items()}


SEVERAL = ("query", "same", "segment")
"""Roles that several columns may play together."""
EXTRAS = ("score", "ranker", "user", "outcome", "randomised")
"""Roles that no count of pairs needs: they are for checks of assumptions, and for experiments."""

# Names seen in the wild, best first, German ones last. Compared without case, spaces, dashes and
# underscores.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "query": (
        "user_query", "query", "keywords", "query_text", "search_query", "search_term",
        "search_terms", "keyword", "term", "q", "search_string", "search_text", "query_string",
        "normalized_query", "search_phrase", "event_attributes.query", "query_id", "qid",
        "destination", "destination_id", "srch_destination_id",
        "suchanfrage", "suchbegriff", "suchwort", "suchtext", "anfrage",
    ),
    "doc": (
        "doc", "doc_id", "document", "document_id", "item", "item_id", "product", "product_id",
        "listing", "listing_id", "sku", "asin", "url", "url_id", "article_id", "object_id", "pid",
        "docid", "itemid", "event_attributes.object.object_id", "hotel_id", "property_id",
        "prop_id",
        "produkt", "produkt_id", "artikel", "artikel_id", "artikelnummer", "dokument", "treffer",
    ),
    "rank": (
        "rank", "position", "pos", "ranking", "displayed_rank", "display_rank", "item_rank",
        "result_position", "search_position", "slot", "place", "ordinal", "rank_position",
        "event_attributes.position.ordinal",
        "rang", "platz", "trefferposition",
    ),
    "click": (
        "click", "clicked", "is_click", "is_clicked", "clicks", "has_click", "n_clicks",
        "num_clicks", "click_count", "was_clicked", "clicked_at", "click_flag", "click_bool",
        "klick", "geklickt", "angeklickt", "klicks",
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
        "event_time", "event_timestamp", "datetime", "time", "search_time",
        "created_at",
        "datum", "tag", "zeitstempel", "zeitpunkt", "zeit",
    ),
    "search": (
        "search", "search_id", "search_uuid", "request_id", "serp_id", "impression_id",
        "page_view_id", "search_request_id", "request", "query_response_id", "srch_id",
        "session", "session_id",  # of several searches, if there is nothing better
        "suche", "suche_id", "such_id", "sitzung", "sitzung_id",
    ),
    "page": (
        "page", "page_number", "page_no", "page_num", "page_index", "results_page",
        "seite", "seitennummer",
    ),
    "score": (
        "score", "ranker_score", "relevance_score", "model_score", "ranking_score", "search_score",
    ),
    "ranker": (
        "ranker", "ranker_id", "ranker_version", "ranking_model", "model_version",
        "ranking_algorithm", "algorithm", "experiment_arm", "ab_arm", "variant", "bucket_name",
    ),
    "user": (
        "user", "user_id", "visitor_id", "client_id", "customer_id", "fullvisitorid",
        "anonymous_id",
        "nutzer", "nutzer_id", "benutzer", "kunde", "kunden_id",
    ),
    "outcome": (
        "outcome", "purchase", "purchased", "is_purchase", "is_purchased", "converted",
        "conversion", "is_conversion", "bought", "ordered", "add_to_cart", "added_to_cart",
        "kauf", "gekauft", "bestellt", "bestellung",
    ),
    "randomised": (
        "randomised", "randomized", "is_random", "is_randomised", "is_randomized", "random",
        "random_bool", "random_order",
    ),
}  # fmt: skip


DWELL = ("dwell", "dwell_time", "dwell_seconds", "time_on_page")
"""Names of an outcome that is one only from a number on."""


def plain(name: str) -> str:
    """A name without case and punctuation: 'Item ID', 'item_id' and 'itemId' are one."""
    return "".join(c for c in name.lower() if c.isalnum() or c == ".")


def guess(
    role: str,
    columns: Iterable[Column],
    taken: Iterable[str] = (),
    synonyms: Mapping[str, Sequence[str]] | None = None,
    kinds: Iterable[ColumnKind] | None = None,
) -> str | None:
    """The column whose name is the best-known word for a role, if there is one.

    Parameters
    ----------
    role
        A field of `Roles` that has `SYNONYMS`.
    columns
        Those to choose from.
    taken
        Names of columns that play another part already.
    synonyms
        Words for some roles instead of those in `SYNONYMS`.
    kinds
        Those that the column may have, where the role alone does not tell.
    """
    used = set(taken)
    by_name = {plain(c.name): c for c in reversed(list(columns)) if c.name not in used}
    for word in {**SYNONYMS, **(synonyms or {})}[role]:
        column = by_name.get(plain(word))
        if column and (_fits(role, column) if kinds is None else column.kind in kinds):
            return column.name
    return None


def _fits(role: str, column: Column) -> bool:
    if role in ("shown", "clicked"):
        return column.kind in ("list", "json")
    return column.kind not in NESTED_KINDS


def resolve(name: str, columns: Mapping[str, Column], option: str) -> Column:
    """The column called `name`, or a MissingColumns that helps."""
    if name in columns:
        return columns[name]
    same = [c for c in columns if plain(c) == plain(name)]
    hint = f" Did you mean {same[0]!r}?" if same else did_you_mean(name, columns)
    raise MissingColumns(
        f"The log has no column {name!r} (asked for by {option}).{hint} "
        f"Its columns are {listed(columns)}."
    )


def listed(columns: Mapping[str, Column], most: int = 20) -> str:
    """The names of the first columns, and how many more there are."""
    names = ", ".join(repr(name) for name in list(columns)[:most])
    return names + (f" and {len(columns) - most} more" if len(columns) > most else "")
