"""The layouts of logs: what a row is, and how to get from rows to results shown and clicks.

Everything that differs between layouts is said by the layout itself, an object each. To add one,
make an object of `Layout`, or of a class below it, and register it with `LAYOUTS`: it is then
recognised, read, inspected and harvested like the others, and named wherever layouts are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.registry import Registry
from rankdrift.log.columns import (
    KINDS,
    NESTED_KINDS,
    SYNONYMS,
    TIME_KINDS,
    Column,
    ColumnKind,
    guess,
)
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import SHOWN_SOURCE, Planner, Step

AUTO = "auto"
"""Asks for the layout that the columns speak for."""
ENGINE_COLUMNS = ("rd_filename", "rd_day")
"""Columns that engines add to those of the source, whatever the layout."""
_Names = tuple[str, ...]
_NOTHING_OUTSIDE = "SELECT 'stray_click' AS reason, 0 AS n, 0 AS clicks"


@dataclass(frozen=True)
class Layout:
    """A layout of logs; this class itself reads those that have a row per result shown.

    Parameters
    ----------
    name
        What it is called, in options and in what is written.
    row
        What a row is, in words.
    brief
        The same for the help, where space is short; None for `row`, "" if the name says it all.
    needed
        Roles without which such a log cannot be read.
    optional
        Roles that are guessed too, but may be missing. `page` is never among them: it changes
        ranks, so it only prompts advice.
    marks
        Roles whose columns, found by their names, speak for this layout.
    own
        Roles that only this layout has: to name one chooses it. The first is enough to know it by.
    own_rules
        Rules that only this layout has.
    synonyms
        Words for roles, where they differ from those in other layouts.
    adds
        Names of columns that its steps add to those of the source.
    row_is_search
        Is a row a whole search? Then it tells searches apart, and columns that are lists have an
        element for each result shown.
    rank_is_place
        Are ranks places in a list, counted from 1, rather than a column?
    days_apart
        Is all about a result shown in one row, so that a large log can be read day by day?
    crosses_days
        May what belongs to a day's results, such as a click after midnight, be on another day?
    """

    name: str
    row: str
    needed: tuple[str, ...]
    marks: tuple[str, ...]
    brief: str | None = None
    optional: tuple[str, ...] = ("day",)
    own: tuple[str, ...] = ()
    own_rules: tuple[str, ...] = ()
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    adds: tuple[str, ...] = ()
    row_is_search: bool = False
    rank_is_place: bool = False
    days_apart: bool = False
    crosses_days: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns that its steps read though they play no role."""
        return ()

    def evidence(self, columns: Mapping[str, Column], taken: set[str]) -> int:
        """How many of the columns that are not taken speak for this layout; 0 if it does not fit.
        A log has the layout that most speak for, of several the one registered first."""
        found = [guess(role, columns.values(), taken) for role in self.marks]
        return len(found) if all(found) else 0

    def by_place(self, kind: ColumnKind) -> bool:
        """Has a column of this kind an element for each result shown?"""
        return kind == "list" and self.row_is_search

    def takes(self, role: str, at_least: bool) -> tuple[ColumnKind, ...]:
        """The kinds that a column may have to play one of the roles EXTRAS.

        Parameters
        ----------
        role
            The role.
        at_least
            Whether an outcome is one only from a number on.
        """
        numbers: tuple[ColumnKind, ...] = ("int", "float", "text", "json")
        if role == "score" or (role == "outcome" and at_least):
            return numbers
        if role == "outcome":
            return (*numbers, "bool", *TIME_KINDS)
        if role == "randomised":
            return ("bool", "int", "text", "json")
        return tuple(kind for kind in KINDS if kind not in NESTED_KINDS)

    # -- SQL -----------------------------------------------------------------------------------

    def steps(self, p: Planner) -> list[Step]:
        """Steps from the source to `shown_source`, which has one row per result shown."""
        return [Step(SHOWN_SOURCE, f"SELECT * FROM {p.source}{p.on_day()}")]

    def outside(self, p: Planner) -> str:
        """Rows and clicks of the source that are not results shown: (reason, n, clicks)."""
        return _NOTHING_OUTSIDE

    def doc(self, p: Planner) -> tuple[str, ColumnKind]:
        """The doc of a row of `shown_source`, and its kind."""
        sql, kind = p.column(p.roles.doc or "")
        return values.key(sql, kind, p.dialect), kind

    def rank(self, p: Planner) -> tuple[str, str]:
        """The rank as the log counts it, or NULL; the condition that it cannot be read."""
        return values.rank(*p.column(p.roles.rank or ""), p.dialect)

    def click(self, p: Planner) -> tuple[str, str]:
        """How many clicks there were, or NULL; the condition that they cannot be read."""
        return values.click(*p.column(p.roles.click or ""), p.dialect)

    def doc_twice(self, p: Planner) -> str | None:
        """The condition that the search shows the doc twice, if a row can tell by itself."""
        return None

    def score(self, p: Planner) -> tuple[str, ColumnKind]:
        """The score of the doc, as the log has it, and its kind."""
        return p.column(p.roles.score or "")

    def outcome(self, p: Planner) -> tuple[str, ColumnKind, float | None]:
        """What came of a click on the doc, as the log has it, its kind, and from which number on it
        is an outcome."""
        return *p.column(p.roles.outcome or ""), p.rules.outcome_at_least


class _Lists(Layout):
    """A row per search: the docs shown, in order, and the docs clicked."""

    def takes(self, role: str, at_least: bool) -> tuple[ColumnKind, ...]:
        if role in ("score", "outcome"):
            return () if at_least and role == "outcome" else ("list", "text", "json")
        return super().takes(role, at_least)

    def steps(self, p: Planner) -> list[Step]:
        exploded = p.dialect.explode.format(source="searches", list=_list(p, p.roles.shown))
        return [
            Step("searches", f"SELECT * FROM {p.source}{p.on_day()}"),
            Step(SHOWN_SOURCE, f"SELECT * FROM {exploded}"),
        ]

    def outside(self, p: Planner) -> str:
        strays = p.dialect.strays.format(_list(p, p.roles.clicked), _list(p, p.roles.shown))
        return (
            "SELECT 'stray_click' AS reason, 0 AS n,"
            f" coalesce(sum({strays}), 0) AS clicks FROM searches"
        )

    def doc(self, p: Planner) -> tuple[str, ColumnKind]:
        return "rd_doc", "text"

    def rank(self, p: Planner) -> tuple[str, str]:
        return "rd_place", "FALSE"

    def click(self, p: Planner) -> tuple[str, str]:
        # Of a doc shown twice the first appearance has its clicks, so that each counts once.
        clicks = p.dialect.count_in.format(_list(p, p.roles.clicked), "rd_doc")
        first = p.dialect.first_in.format(_list(p, p.roles.shown), "rd_doc")
        return f"CASE WHEN rd_place > {first} THEN 0 ELSE {clicks} END", "FALSE"

    def doc_twice(self, p: Planner) -> str | None:
        return p.dialect.count_in.format(_list(p, p.roles.shown), "rd_doc") + " > 1"

    def score(self, p: Planner) -> tuple[str, ColumnKind]:
        return p.dialect.element.format(_list(p, p.roles.score), "rd_place"), "text"

    def outcome(self, p: Planner) -> tuple[str, ColumnKind, float | None]:
        return p.dialect.count_in.format(_list(p, p.roles.outcome), "rd_doc"), "int", None


def _list(p: Planner, name: str | None) -> str:
    """A column of docs as a list of texts."""
    assert name
    sql, kind = p.column(name)
    if kind == "list":
        return p.dialect.text_list.format(sql)
    text = values.plain_text(sql, kind, p.dialect)
    from_json, split = p.dialect.json_list.format(text), p.dialect.split.format(text)
    return f"CASE WHEN {text} LIKE '[%' THEN coalesce({from_json}, {split}) ELSE {split} END"


class _Events(Layout):
    """A row per event: results shown, and clicks that are joined to them by search and doc."""

    def steps(self, p: Planner) -> list[Step]:
        """Clicks join the first result shown with their search and doc; the rest are strays.

        A click just after midnight belongs to the result shown before it, so the day that counts
        is the day of what was shown.
        """
        search, doc = _search_and_doc(p)
        found = "count(*) AS rd_clicks"
        if p.roles.outcome:
            found += f", max({self._outcome(p)}) AS rd_outcome"
        return [
            Step(
                "click_events",
                f"SELECT {search} AS rd_search, {doc} AS rd_doc, {found}\nFROM {p.source}"
                f" WHERE {_is_event(p, p.rules.click_events)} GROUP BY {search}, {doc}",
                keep=True,
            ),
            self._shown(p, (search, doc), "click_events", ("rd_search", "rd_doc")),
            *self._joined(p, f"rd_search = {search} AND rd_doc = {doc}"),
        ]

    def _shown(self, p: Planner, keys: _Names, clicks: str, same: _Names) -> Step:
        """The results shown, and in `rd_clicked` whether there was a click with the same keys:
        most have none, and need not be put in any order.

        Parameters
        ----------
        p
            Writes for this log.
        keys
            What a result shown has in common with its clicks.
        clicks, same
            The step that has the clicks, and how it calls the keys.
        """
        shown = _is_event(p, p.rules.shown_events)
        pair, clicked = (p.dialect.hash.format(", ".join(names)) for names in (keys, same))
        return Step(
            "shown_events",
            f"SELECT rd_shown.*, rd_clicked FROM\n"
            f"(SELECT *, {pair} AS rd_pair FROM {p.source} WHERE {shown}) AS rd_shown LEFT JOIN\n"
            f"(SELECT DISTINCT {clicked} AS rd_clicked FROM {clicks}) AS rd_with_clicks\n"
            "ON rd_clicked = rd_pair",
        )

    def _joined(self, p: Planner, same: str) -> list[Step]:
        """The results shown with their clicks, those of `click_events` of which `same` is true: of
        a doc shown twice in a search the one with the least rank has them."""
        search, doc = _search_and_doc(p)
        rank, _ = self.rank(p)
        # Engines differ in whether NULLs come first.
        order = f"CASE WHEN {rank} IS NULL THEN 1 ELSE 0 END, {rank}"
        first = f"row_number() OVER (PARTITION BY {search}, {doc} ORDER BY {order})"
        came, none = "rd_clicks", "0 AS rd_clicks"
        if p.roles.outcome:
            came, none = f"{came}, rd_outcome", f"{none}, 0 AS rd_outcome"
        return [
            Step(
                "clicked_events",
                f"SELECT *, {first} AS rd_first FROM shown_events WHERE rd_clicked IS NOT NULL",
            ),
            Step(
                SHOWN_SOURCE,
                f"SELECT clicked_events.*, {came} FROM clicked_events LEFT JOIN click_events\n"
                f"ON rd_first = 1 AND {same}{p.on_day()}\nUNION ALL\n"
                f"SELECT *, 0 AS rd_first, {none} FROM shown_events"
                f"{p.on_day('rd_clicked IS NULL')}",
            ),
        ]

    def _outcome(self, p: Planner) -> str:
        column = p.column(p.roles.outcome or "")
        return values.outcome(*column, p.rules.outcome_at_least, p.dialect)

    def outside(self, p: Planner) -> str:
        shown, clicks = _is_event(p, p.rules.shown_events), _is_event(p, p.rules.click_events)
        strays = self.strays(p, f"(SELECT * FROM {p.source}{p.on_day(clicks)}) AS rd_clicks")
        other = f"{p.source}{p.on_day(f'NOT ({shown}) AND NOT ({clicks})')}"
        return (
            f"SELECT 'other_event' AS reason, count(*) AS n, 0 AS clicks FROM {other}\nUNION ALL\n"
            "SELECT 'click_event' AS reason, count(*) AS n, 0 AS clicks"
            f" FROM {p.source}{p.on_day(clicks)}\nUNION ALL\n"
            f"SELECT 'stray_click' AS reason, 0 AS n, count(*) AS clicks FROM {strays}"
        )

    def strays(self, p: Planner, clicks: str) -> str:
        """FROM: those of the clicks that no result shown belongs to."""
        search, doc = _search_and_doc(p)
        return (
            f"{clicks} LEFT JOIN (SELECT DISTINCT {search} AS rd_search, {doc} AS rd_doc\n"
            "FROM shown_events WHERE rd_clicked IS NOT NULL) AS rd_shown\n"
            f"ON rd_search = {search} AND rd_doc = {doc} WHERE rd_doc IS NULL"
        )

    def click(self, p: Planner) -> tuple[str, str]:
        return "coalesce(rd_clicks, 0)", "FALSE"

    def outcome(self, p: Planner) -> tuple[str, ColumnKind, float | None]:
        return "rd_outcome", "int", None


@dataclass(frozen=True)
class _Visits(_Events):
    """Events of which none names a search: a click belongs to the list of its visit that showed the
    doc last. Lists shown have a search of their own, clicks have none.

    Parameters
    ----------
    visit, moment
        The columns that tell which visit it was, and when in it.
    """

    visit: str = "visit"
    moment: str = "timestamp"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.visit, self.moment

    def steps(self, p: Planner) -> list[Step]:
        """As for other events, but for the join. Only what was clicked is put in order of time: a
        window over all that was shown would cost several scans of the log."""
        visit, doc, moment = self._visit_doc_moment(p)
        clicks = f"{_is_event(p, p.rules.click_events)} AND {visit} IS NOT NULL"
        came = f"{self._outcome(p) if p.roles.outcome else '0'} AS rd_outcome"
        last = (
            "max(CASE WHEN rd_click = 0 THEN rd_moment END) OVER (PARTITION BY rd_visit, rd_doc"
            " ORDER BY rd_moment, rd_click ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        both = (
            "SELECT *, 1 AS rd_click FROM click_rows\nUNION ALL\n"
            f"SELECT {self._at(p)}, 0 AS rd_outcome, 0 AS rd_click FROM shown_events"
            " WHERE rd_clicked IS NOT NULL"
        )
        return [
            Step("click_rows", f"SELECT {self._at(p)}, {came} FROM {p.source} WHERE {clicks}"),
            self._shown(p, (visit, doc), "click_rows", ("rd_visit", "rd_doc")),
            Step(
                "click_events",
                "SELECT rd_visit, rd_doc, rd_last, count(*) AS rd_clicks,"
                " max(rd_outcome) AS rd_outcome\n"
                f"FROM (SELECT *, {last} AS rd_last FROM ({both}) AS rd_both) AS rd_ordered\n"
                "WHERE rd_click = 1 GROUP BY rd_visit, rd_doc, rd_last",
                keep=True,
            ),
            *self._joined(p, f"rd_visit = {visit} AND rd_doc = {doc} AND rd_last = {moment}"),
        ]

    def _at(self, p: Planner) -> str:
        visit, doc, moment = self._visit_doc_moment(p)
        return f"{visit} AS rd_visit, {doc} AS rd_doc, {moment} AS rd_moment"

    def _visit_doc_moment(self, p: Planner) -> tuple[str, str, str]:
        visit, doc, moment = (p.column(name)[0] for name in
                              (self.visit, str(p.roles.doc), self.moment))  # fmt: skip
        return visit, doc, moment

    def strays(self, p: Planner, clicks: str) -> str:
        visit, doc, moment = self._visit_doc_moment(p)
        return (
            f"{clicks} LEFT JOIN (SELECT rd_visit, rd_doc, min(rd_moment) AS rd_since\n"
            f"FROM (SELECT {self._at(p)} FROM shown_events WHERE rd_clicked IS NOT NULL)"
            " AS rd_seen GROUP BY rd_visit, rd_doc) AS rd_shown\n"
            f"ON rd_visit = {visit} AND rd_doc = {doc} AND rd_since <= {moment}"
            " WHERE rd_doc IS NULL"
        )


def _search_and_doc(p: Planner) -> tuple[str, str]:
    assert p.roles.search and p.roles.doc
    return p.column(p.roles.search)[0], p.column(p.roles.doc)[0]


def _is_event(p: Planner, names: tuple[str, ...]) -> str:
    assert p.roles.event
    text = values.plain_text(*p.column(p.roles.event), p.dialect)
    return f"coalesce({text}, '') IN ({p.dialect.literals(names)})"


LONG = Layout(
    name="long",
    row="a row per result shown",
    needed=("query", "doc", "rank", "click"),
    optional=("day", "search"),
    marks=("rank", "click"),
    days_apart=True,
)
LIST = _Lists(
    name="list",
    row="a row per search",
    brief="per search",
    needed=("query", "shown", "clicked"),
    marks=("shown", "clicked"),
    own=("shown", "clicked"),
    adds=("rd_doc", "rd_place"),
    row_is_search=True,
    rank_is_place=True,
)
EVENTS = _Events(
    name="events",
    row="a row per event",
    brief="",
    needed=("query", "search", "doc", "rank", "event"),
    marks=("rank", "event"),
    own=("event",),
    own_rules=("shown_events", "click_events"),
    # A session holds many searches, and a query_id may name the query's text: taken for a search
    # they would make every repeat look like "twice in one search". Only event logs, where clicks
    # are joined to results by it, use query_id this way (OpenSearch's UBI does).
    synonyms={"search": ("query_id", *SYNONYMS["search"])},
    adds=("rd_doc", "rd_pair", "rd_clicked", "rd_first", "rd_search", "rd_clicks", "rd_outcome"),
    crosses_days=True,
)
VISITS = _Visits(**{f.name: getattr(EVENTS, f.name) for f in fields(EVENTS)})
"""Of known formats alone: their rows have the columns it needs."""

LAYOUTS = Registry[Layout]("layout")
for _layout in (LONG, LIST, EVENTS):
    LAYOUTS.register(_layout)


def find_layout(name: str | None) -> Layout | None:
    """The layout of that name; None if the columns are to speak for themselves."""
    if name is None or name == AUTO:
        return None
    if name not in LAYOUTS:
        known = (AUTO, *LAYOUTS.names)
        raise BadOption(
            f"No layout {name!r}.{did_you_mean(name, known)} There are {', '.join(known)}."
        )
    return LAYOUTS.get(name)


def recognise(
    columns: Mapping[str, Column], named: Mapping[str, tuple[str, ...]], taken: set[str]
) -> Layout:
    """The layout that a log has.

    Parameters
    ----------
    columns
        Those of the log, by name.
    named
        The roles that were named, and their columns: they decide, if they can.
    taken
        The names of columns whose part is known: of the others, names decide.
    """
    for layout in LAYOUTS:
        if any(role in named for role in layout.own):
            return layout
    for layout in LAYOUTS:
        if any(role in named for role in layout.marks):
            return layout
    best = max(LAYOUTS, key=lambda layout: layout.evidence(columns, taken))
    return best if best.evidence(columns, taken) else LONG


def layout_of(roles: Mapping[str, object]) -> Layout:
    """The layout of a log of which nothing is known but the roles that were named."""
    return next((layout for layout in LAYOUTS if layout.own and roles.get(layout.own[0])), LONG)


def layouts_help() -> str:
    """What a row is in each of the layouts, in one line."""
    words = [
        (layout.name, layout.row if layout.brief is None else layout.brief) for layout in LAYOUTS
    ]
    return "; ".join(f"{name}: {word}" if word else name for name, word in words) + "."
