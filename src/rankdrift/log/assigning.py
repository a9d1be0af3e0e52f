"""Which column of a log plays which part: as it was named, or guessed from the names people use."""

from collections.abc import Mapping

from rankdrift.core.errors import BadOption, MissingColumns, did_you_mean
from rankdrift.log.columns import (
    DWELL,
    EXTRAS,
    SYNONYMS,
    TEXT_KINDS,
    Column,
    Roles,
    guess,
    listed,
    resolve,
)
from rankdrift.log.layouts import LAYOUTS, Layout, find_layout, recognise


def assign(
    columns: Mapping[str, Column],
    given: Mapping[str, str | tuple[str, ...] | None],
    wanted: str | None = None,
    at_least: bool = False,
) -> tuple[Layout, Roles, dict[str, str]]:
    """The layout of a log, the roles of its columns, and which of them were guessed.

    Parameters
    ----------
    columns
        Those of the log, by name.
    given
        The column or columns that were named for each role; "" says that there is none.
    wanted
        The name of the layout; "auto", like None, takes the one that the columns speak for.
    at_least
        Whether an outcome is one only from a number on.

    Returns
    -------
    The layout, the roles, and role -> column of what was guessed.

    Raises
    ------
    BadOption
        There is no such layout, it does not have one of the roles named, or a column cannot be what
        it was named for.
    MissingColumns
        A column that was named is not there, or one that is needed was not found.
    """
    chosen = find_layout(wanted)
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
    settled = (names for role, names in named.items() if role not in ("same", "segment"))
    taken = {name for names in settled for name in names}
    layout = chosen or recognise(columns, named, taken)
    _refuse_roles_of_others(layout, named)
    guessed: dict[str, str] = {}
    for role in (*layout.needed, *layout.optional):
        if role in named or role in none:
            continue
        found = guess(role, columns.values(), taken, layout.synonyms)
        if found:
            guessed[role] = found
            named[role] = (found,)
            taken.add(found)
    if "time" not in none | set(named) and "day" in named:
        # A day that is read from a time of day tells the time as well.
        day = columns[named["day"][0]]
        if day.kind in ("timestamp", "instant"):
            named["time"] = (day.name,)
    missing = [role for role in layout.needed if role not in named]
    if missing:
        raise MissingColumns(_explain_missing(missing, columns, layout, named))
    check_extras(Roles.of(named), columns, layout, at_least)
    for role in EXTRAS:  # the last, so that they take no column from the others
        if role in named or role in none:
            continue
        found = _guess_extra(role, columns, taken, layout, at_least)
        if found:
            guessed[role] = found
            named[role] = (found,)
            taken.add(found)
    return layout, Roles.of(named), guessed


def _guess_extra(
    role: str, columns: Mapping[str, Column], taken: set[str], layout: Layout, at_least: bool
) -> str | None:
    """A column that nobody named must not spoil anything, so its kind must speak for it too."""
    kinds = layout.takes(role, at_least)
    if role == "score" or (role == "outcome" and layout.row_is_search):
        kinds = tuple(kind for kind in kinds if kind not in TEXT_KINDS)
    words = {"outcome": (*DWELL, *SYNONYMS["outcome"])} if at_least else {}
    return guess(role, columns.values(), taken, words, kinds)


def check_extras(
    roles: Roles, columns: Mapping[str, Column], layout: Layout, at_least: bool
) -> None:
    """Raise BadOption if a column cannot play the one of EXTRAS that it was named for.

    Parameters
    ----------
    roles
        Those named.
    columns
        Those of the log, by name.
    layout
        That of the log.
    at_least
        Whether an outcome is one only from a number on.
    """
    for role in EXTRAS:
        name = getattr(roles, role)
        if name and columns[name].kind not in layout.takes(role, at_least):
            _refuse_unfit(role, columns[name], layout, at_least)


def _refuse_unfit(role: str, column: Column, layout: Layout, at_least: bool) -> None:
    if layout.row_is_search and role == "outcome" and at_least:
        raise BadOption(
            f"outcome_at_least is for a number, but in a log of layout {layout.name} the outcome "
            f"is a list of docs. Leave it out, and list in {column.name!r} the docs that had it."
        )
    asked = {
        "score": "a list with a number for each doc shown" if layout.row_is_search else "a number",
        "outcome": "a list of docs" if layout.row_is_search
        else "a number, which outcome_at_least asks for" if at_least
        else "a flag, a number or a time",
        "randomised": "a flag",
    }.get(role, "one value")  # fmt: skip
    raise BadOption(
        f"{column.name!r} cannot be the {role} of a log of layout {layout.name}: it is of kind "
        f'{column.kind}, not {asked}. Name another column with --{role}, or "" for none.'
    )


def _refuse_roles_of_others(layout: Layout, named: Mapping[str, tuple[str, ...]]) -> None:
    for other in LAYOUTS:
        for role in other.own:
            if role in named and role not in (*layout.own, *layout.needed, *layout.optional):
                raise BadOption(
                    f"{role} goes with a log of layout {other.name}, not {layout.name}."
                )


_EVENTS = (
    " If a row is an event, a click or a result shown, name the column that says which with --event"
    " NAME."
)
_FORMATS = (
    " If the log is of a known format (`rankdrift formats`), --format NAME says what it lacks."
)


def _explain_missing(
    missing: list[str],
    columns: Mapping[str, Column],
    layout: Layout,
    named: Mapping[str, tuple[str, ...]],
) -> str:
    each = []
    for role in missing:
        other = next((other for other, names in named.items() if role in names), None)
        hint = did_you_mean(role, columns)
        if other:
            hint = f" {role!r} is that of --{other.replace('_', '-')}."
        each.append(
            f"There is no column for {role!r} (tried {', '.join(SYNONYMS[role][:6])}, …).{hint}"
        )
    flags = " ".join(f"--{role} NAME" for role in missing)
    events = _EVENTS if "click" in missing else ""
    named_by_hand = f"Name them with {flags}.{events}{_FORMATS if len(missing) > 1 else ''}"
    return (
        f"Could not find the columns of a log of layout {layout.name}. {' '.join(each)} "
        f"The columns are {listed(columns)}. {_spread_out(columns) or named_by_hand}"
    )


def _spread_out(columns: Mapping[str, Column]) -> str:
    """What to do with a log whose results are a list inside each row, if that may be it."""
    lists = [column for column in columns.values() if column.kind == "list"]
    if not lists or not all(name.isidentifier() for name in lists[0].path):
        return ""
    outer, inside = lists[0].path[0], lists[0].name
    return (
        f"If {inside!r} has the results of a search, spread it out first, a row per result, with "
        "the name of your log for LOG: python -c \"import duckdb; duckdb.sql('COPY (SELECT * "
        f"EXCLUDE ({outer}), unnest({inside}, recursive := true) FROM \\'LOG\\') TO "
        "\\'results.parquet\\'')\""
    )
