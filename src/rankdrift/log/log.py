"""Log: where the rows are, which column is what, and how rows are read. Lazy: only the columns'
names and types are looked at until something is asked of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any

from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.words import many
from rankdrift.log.assigning import assign
from rankdrift.log.columns import EXTRAS, Column, Roles
from rankdrift.log.engines.choosing import open_log
from rankdrift.log.engines.engine import Engine
from rankdrift.log.formats.format import Format
from rankdrift.log.layouts import ENGINE_COLUMNS, LAYOUTS, Layout
from rankdrift.log.options import Names, Options, Rules
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import Planner
from rankdrift.log.written_dates import written_dates


@dataclass(frozen=True)
class Log:
    """A click log that was pointed at with `read_log`.

    Parameters
    ----------
    engine
        What reads it.
    layout
        What a row is.
    roles
        Which column plays which part.
    rules
        How rows are read.
    guessed
        Roles that were guessed from column names: role -> column.
    remarks
        Things worth telling about the source.
    format
        The format that it was read by; None if its columns alone tell.
    """

    engine: Engine
    layout: Layout
    roles: Roles
    rules: Rules
    guessed: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    format: Format | None = None

    def planner(self, **changes: Any) -> Planner:
        """Writes SQL for this log in its engine's dialect, with some of its fields changed."""
        return Planner(
            source=self.engine.source,
            columns=self.engine.columns,
            layout=self.layout,
            roles=self.roles,
            rules=self.rules,
            dialect=self.engine.dialect,
        ).but(**changes)

    def narrow(self, *more: str | None) -> None:
        """Only what counting reads, and these columns, will be asked for: the rest of a log that
        has to be copied need not be."""
        named = [*self.roles.used(), *self.layout.reads, *(name for name in more if name)]
        self.engine.narrow(None if self.rules.where else named)  # a condition may read any column

    def describe(self) -> dict[str, Any]:
        """What defines a pair and how rows are read: kept with every artefact made from the log."""
        return describe(self.planner(), self.format)

    def __repr__(self) -> str:
        roles = self.roles.to_dict()
        named = ", ".join(f"{role} = {_listed(name)}" for role, name in roles.items())
        return brief(
            self, f"layout {self.layout.name}", many(len(self.engine.columns), "column"), named
        )

    def _repr_html_(self) -> str:
        rows = (
            (role, _listed(name), "guessed" if role in self.guessed else "")
            for role, name in self.roles.to_dict().items()
        )
        note = f"A log, layout {self.layout.name}. {' '.join(self.remarks)}"
        return html_table(["role", "column", ""], rows, note)

    @property
    def crosses_days(self) -> bool:
        """May what belongs to a day's results, such as a click after midnight, be on another?"""
        kept = self.format and self.roles.day == self.format.kept_on
        return self.layout.crosses_days and not kept

    def ordinals_from(self) -> int | None:
        """Of a known format, the least ordinal that was logged, which tells from where all count;
        None if there is none, or it need not be told."""
        source, format = self.engine.source, self.format
        low = format.lowest(source, self.engine.dialect) if format else None
        return self.engine.query(low)[0][0] if low else None

    @property
    def days(self) -> str:
        """What a day is here, in words."""
        words, window = _days(self.planner()), self.rules.window
        return f"{words}; pairs are compared within {window} days" if window > 1 else words


def _listed(names: str | list[str]) -> str:
    return names if isinstance(names, str) else " + ".join(names)


def describe(planner: Planner, format: Format | None = None) -> dict[str, Any]:
    """What defines a pair and how rows are read, as plain values."""
    rules = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(planner.rules).items()
    }
    # As in counts from before there were such rules.
    if rules["outcome_at_least"] is None:
        del rules["outcome_at_least"]
    rules["window"] = f"{planner.rules.window}d"
    if planner.rules.window == 1:
        del rules["window"]
    if not planner.rules.randomised_apart:
        del rules["randomised_apart"]
    if planner.rules.dates is None:
        del rules["dates"]
    for layout in LAYOUTS:
        for name in set(layout.own_rules) - set(planner.layout.own_rules):
            del rules[name]
    return {
        **(format.described() if format else {}),
        "layout": planner.layout.name,
        **planner.roles.to_dict(),
        **rules,
        "days": _days(planner),
    }


def _days(planner: Planner) -> str:
    day = planner.roles.day
    if not day:
        return "no day column: the whole log counts as one day"
    return values.zone_words(planner.columns[day], planner.rules)


def need_log(given: Any) -> None:
    """Raise BadOption unless this is a log that was read."""
    if not isinstance(given, Log):
        raise BadOption(
            f"This takes a Log, not a {type(given).__name__}: say where it is, and which column is "
            "what, with read_log(...)."
        )


@names_checked
def read_log(
    source: Any,
    *,
    query: Names = None,
    doc: str | None = None,
    rank: str | None = None,
    click: str | None = None,
    shown: str | None = None,
    clicked: str | None = None,
    event: str | None = None,
    day: str | None = None,
    time: str | None = None,
    search: str | None = None,
    page: str | None = None,
    same: Names = None,
    segment: Names = None,
    score: str | None = None,
    ranker: str | None = None,
    user: str | None = None,
    outcome: str | None = None,
    randomised: str | None = None,
    layout: str | None = None,
    where: str | None = None,
    max_rank: int | None = None,
    first_rank: int | None = None,
    page_size: int | None = None,
    first_page: int | None = None,
    time_zone: str | None = None,
    shown_events: Names = None,
    click_events: Names = None,
    dedupe: bool | None = None,
    outcome_at_least: float | None = None,
    window: str | None = None,
    randomised_apart: bool | None = None,
    dates: str | None = None,
    format: str | None = None,
    table: str | None = None,
    config: str | PathLike[str] | None = None,
    engine: str | None = None,
    session: Any = None,
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Log:
    """Point at a click log.

    Nothing is counted yet: the log is opened, its columns are looked at, and options are checked.
    Options that are None, the default, are as if they had not been given.

    Parameters
    ----------
    source
        A path, a glob, a folder or several of them (Parquet, CSV, JSON lines, plain or compressed),
        with the extra `remote` also at s3://, gs://, az:// or https://; a DuckDB file (with
        `table`); a pandas, Polars or Arrow table, a PyArrow dataset, or any Arrow stream, such as
        DuckDB, ADBC, Iceberg and Delta give; a Spark DataFrame or the name of a Spark table.
    query
        The column of the query; of several columns, two queries are the same when all are equal.
        Like the other columns up to `search` it is guessed from common names if it is not given;
        "" says that there is no such column.
    doc
        The column of the result shown: a product, a document.
    rank
        The column of its rank; the top rank is 1 unless `first_rank` says otherwise.
    click
        The column that says whether it was clicked: a flag, a number of clicks, or a time.
    shown, clicked
        Of a log with a row per search: the columns of the docs shown, in order, and of the docs
        clicked. Either is a list, or text such as '["a","b"]' or 'a, b'.
    event
        Of a log with a row per event: the column that says what happened.
    day
        The column of the day, or of a time: a date, a timestamp, text, YYYYMMDD, or an epoch in
        seconds or smaller. A pair's appearances are compared within a day.
    time
        The column that tells the order of a pair's appearances; by default `day`, if it holds the
        time of day.
    search
        The column that tells one search from another.
    page
        The column of the page, where ranks start again on each; goes with `page_size`.
    same
        Columns that must be equal within a pair, such as the price.
    segment
        Columns that split the counts, such as the device.
    score, ranker, user, outcome
        What only the checks of assumptions look at, each guessed too where a column is called so:
        the score that the ranker gave the doc, a number (of a row per search a list with one for
        each doc shown); the version of the ranker, or the arm of an A/B test; who searched; what
        came after the click, such as a purchase: a flag, a number above 0, a time (of a row per
        search a list of the docs that had it, of a row per event a column of the clicks).
    randomised
        The column that says of which rows the order was drawn at random: true, 1 or yes. `compare`
        takes them as an experiment.
    layout
        "long" (a row per result shown), "list" (a row per search) or "events" (a row per event:
        results shown, and clicks, joined to them by `search` and `doc`). By default, or with
        "auto", as the columns say.
    where
        A condition in the engine's SQL on the log's own columns: other rows are left out. It is run
        as given, so never build it from text you do not trust.
    max_rank
        Ignore deeper ranks (500).
    first_rank
        What the top rank is called in the log (1).
    page_size
        Results a page.
    first_page
        What page one is called in the log (1).
    time_zone
        Where days begin at midnight, such as Europe/Berlin (UTC; a time without a zone has the date
        that is written).
    shown_events, click_events
        Of a log with a row per event: what `event` says of a result shown ("impression"), and of a
        click ("click").
    dedupe
        Keep one of the rows that have search, pair and rank in common (False); needs `search`.
    outcome_at_least
        From which number on `outcome` is one, such as 30 where it is the seconds of dwell.
    window
        Compare a pair's appearances within so many days instead of one, such as "7d": weeks from
        Monday to Sunday. `day=""` compares them over the whole log.
    randomised_apart
        Leave the `randomised` rows out of what is counted (False), so that the curve and the
        experiment rest on different clicks.
    dates
        How `day` and `time` write dates whose year comes last, where the log itself does not tell:
        "d/m/y" or "m/d/y", or with "." or "-" instead of "/".
    format
        The format of a log that is not recognised by itself, such as "ubi" or "ga4": `rankdrift
        formats` lists them. Or "parquet", "csv", "json" or "duckdb", where names of files do not
        tell.
    table
        The table in a DuckDB file, or in Spark.
    config
        A TOML file with any of these options but `session`; those given here win. Its tables, named
        like verbs, are for the command line.
    engine
        "duckdb", the default, or "spark".
    session, master
        The Spark session to use, or the URL of the master to start one with.
    memory, threads
        What DuckDB may use, such as "2GB" (most there is), and on how many threads (all cores).
        Python and the program take some 200 MB beside it, and the counts their own size.

    Returns
    -------
    Log
        What `inspect`, `harvest`, `read_matrix` and `compare` take.

    Raises
    ------
    BadOption
        An option makes no sense, by itself or with the others.
    MissingColumns
        A column that was named is not there, or one that is needed was not found.
    BadLog
        There is no such file, or it cannot be read.

    Examples
    --------
    >>> log = read_log("logs/*.parquet", query="keywords", same="price")  # doctest: +SKIP
    >>> log.guessed  # doctest: +SKIP
    {'doc': 'item_id', 'rank': 'position', 'click': 'clicked', 'day': 'date'}
    """
    options = Options(
        query=query,
        doc=doc,
        rank=rank,
        click=click,
        shown=shown,
        clicked=clicked,
        event=event,
        day=day,
        time=time,
        search=search,
        page=page,
        same=same,
        segment=segment,
        score=score,
        ranker=ranker,
        user=user,
        outcome=outcome,
        randomised=randomised,
        layout=layout,
        where=where,
        max_rank=max_rank,
        first_rank=first_rank,
        page_size=page_size,
        first_page=first_page,
        time_zone=time_zone,
        shown_events=shown_events,
        click_events=click_events,
        dedupe=dedupe,
        outcome_at_least=outcome_at_least,
        window=window,
        randomised_apart=randomised_apart,
        dates=dates,
        format=format,
        table=table,
        config=config,
        engine=engine,
        session=session,
        master=master,
        memory=memory,
        threads=threads,
    ).with_file()
    options.check()
    opened = open_log(source, options)
    if opened.format:
        return _read_format(opened, opened.format, options)
    found, roles, guessed = assign(
        opened.columns, options.columns(), options.layout, options.outcome_at_least is not None
    )
    _refuse_our_names(opened.columns, found)
    rules = options.rules(roles)
    sure = roles.used(without=guessed.keys() & EXTRAS)
    remarks = opened.prepare(sure, [name for name in roles.used() if name not in sure])
    rules = replace(rules, dates=rules.dates or written_dates(opened, roles))
    return Log(opened, found, roles, rules, guessed, tuple(remarks))


def _read_format(opened: Engine, format: Format, options: Options) -> Log:
    roles, rules = read_as(format, opened.columns, options)
    known = f"Recognised {format.title}, {format.schema}." if not options.format else ""
    remarks = tuple(said for said in (known, format.remark) if said)
    return Log(opened, format.layout, roles, rules, {}, remarks, format)


def read_as(format: Format, columns: Mapping[str, Column], options: Options) -> tuple[Roles, Rules]:
    """Which column plays which part in a log of a known format, and how its rows are read.

    Parameters
    ----------
    format
        Says which column is what; what the options say comes first.
    columns
        Those of its rows.
    options
        What was said of the log.
    """
    given = {role: name for role, name in options.columns().items() if name is not None}
    at_least = options.outcome_at_least is not None
    _, roles, _ = assign(columns, {**format.given_roles(), **given}, format.layout.name, at_least)
    rules = replace(
        options.rules(roles),
        shown_events=format.shown_events,
        click_events=format.click_events,
        first_rank=1,  # as its rows count by now
    )
    return roles, rules


def _refuse_our_names(columns: Mapping[str, Column], layout: Layout) -> None:
    ours = (*ENGINE_COLUMNS, *layout.adds)
    taken = sorted(name for name in columns if name.lower() in ours)
    if taken:
        raise BadLog(
            f"The log has a column {taken[0]!r}, a name that rankdrift uses itself while it reads. "
            "Rename the column, or read a view of the log without it."
        )
