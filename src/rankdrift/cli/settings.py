"""Options that would be typed again and again: in a file, `rankdrift.toml` where the command runs
or the one that --config names, and in variables of the environment. At the top of the file are
options of a log, for every verb that reads one; a table named like a verb has options of that verb.
A variable is called RANKDRIFT_ and the option, or the verb and the option. What is typed wins over
a variable, and a variable over the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Literal

import click
from click.core import ParameterSource

from rankdrift.core.addresses import without_secrets
from rankdrift.core.errors import BadOption, did_you_mean

FILE = "rankdrift.toml"
PREFIX = "RANKDRIFT_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
OF_TESTS = "RANKDRIFT_DATA"  # the folder of real logs that tests read
"""Names the file, where --config does not."""
# Options that no file and no variable may hold: those about itself and the help, and where to
# write, lest a folder from somewhere else choose which of your files is replaced.
TYPED_ONLY = (
    "config", "help_all", "output", "html", "chart", "export", "force", "schema", "metrics",
    "of", "dbt",
)  # fmt: skip
OF_MACHINE = ("memory", "threads")
_ORIGINS = "rankdrift.settings"  # in a context's `meta`: where the options not typed are from

Origin = Literal["default", "file", "environment", "command line"]


@dataclass(frozen=True)
class Setting:
    """An option of a verb, what it is, and where that is from.

    Parameters
    ----------
    name
        As in the file.
    value
        As it would be typed; None where nothing is said and nothing taken for granted.
    origin
        Which of the four places said so.
    place
        The file or the variable, if it was one of them.
    of_log
        Whether it is an option of a log, which every verb that reads one has.
    """

    name: str
    value: Any
    origin: Origin
    place: str | None = None
    of_log: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON, without passwords."""
        return {"value": _harmless(self.value), "from": self.origin, "place": self.place}


def takes_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --config: read before all other options, it stands in for their defaults."""
    return click.option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_read,
        help=f"A TOML file of options.  [default: {FILE}, if any]",
    )(command)


def told(ctx: click.Context) -> list[str]:
    """What to say of settings that nobody typed: which a file that nobody named gave, which the
    environment, and what it has that is none."""
    origins: Mapping[str, Setting] = ctx.meta.get(_ORIGINS, {})
    used = [origins[p.name or ""] for p in ctx.command.params if from_settings(p.name or "", ctx)]
    words = []
    names = [setting.name for setting in used if setting.origin == "file"]
    if names and ctx.get_parameter_source("config") != ParameterSource.COMMANDLINE:
        path = os.environ.get(CONFIG_VARIABLE) or FILE
        words.append(f"From {path}: {', '.join(names)} (--config '' to go without).")
    variables = [str(setting.place) for setting in used if setting.origin == "environment"]
    if variables:
        words.append(f"From the environment: {', '.join(variables)}.")
    if ctx.obj is None:
        words += [f"Note: {text}" for text in strange_variables(ctx)]
    return words


def from_settings(name: str, ctx: click.Context | None = None) -> bool:
    """Was this option of the running verb taken from the file or a variable, rather than typed?"""
    ctx = ctx or click.get_current_context(silent=True)
    return ctx is not None and ctx.get_parameter_source(name) == ParameterSource.DEFAULT_MAP


def _read(ctx: click.Context, parameter: click.Parameter, typed: str | None) -> str | None:
    """Let the file and the environment say what the options are that are not typed."""
    # A step of another verb (it has an `obj`) is typed in full.
    if not ctx.resilient_parsing and ctx.obj is None:
        found = said(ctx, settings_file(typed))
        ctx.meta[_ORIGINS] = found
        ctx.default_map = {name: setting.value for name, setting in found.items()}
    return typed


def settings_file(typed: str | None) -> str | None:
    """The file to read: the one that --config or a variable names, or the usual one, if any."""
    path = os.environ.get(CONFIG_VARIABLE) or None if typed is None else typed
    return FILE if path is None and os.path.isfile(FILE) else path


def said(ctx: click.Context, path: str | None) -> dict[str, Setting]:
    """Options of a verb that the file or the environment tell, by click's names, as click would
    have them."""
    return {**dict(_in_file(ctx, path) if path else ()), **dict(_in_environment(ctx))}


def in_force(ctx: click.Context, path: str | None) -> list[Setting]:
    """Every option of a verb that may stand in a file, and what it comes to."""
    from rankdrift.log.options import Rules

    others, found = said(ctx, path), []
    usual = {f.name: f.default for f in fields(Rules)}
    usual["window"] = f"{usual['window']}d"
    for name, option in settable(ctx.command).items():
        source = ctx.get_parameter_source(str(option.name))
        if source == ParameterSource.COMMANDLINE:
            found.append(Setting(name, ctx.params.get(str(option.name)), "command line"))
        elif str(option.name) in others:
            found.append(others[str(option.name)])
        else:
            value = usual.get(name) if is_of_log(option) else default_of(option)
            found.append(Setting(name, value, "default"))
    of_log = {name for name, option in settable(ctx.command).items() if is_of_log(option)}
    return [Setting(s.name, _plain(s.value), s.origin, s.place, s.name in of_log) for s in found]


def running_settings() -> dict[str, Any]:
    """Every setting of the verb that runs, for what it writes: its value, and where it is from. But
    for what the machine may use, which changes no result: it is the same with more or less."""
    ctx = click.get_current_context()
    path = settings_file(ctx.params.get("config")) if ctx.obj is None else None
    every = {setting.name: setting.to_dict() for setting in in_force(ctx, path)}
    return {name: setting for name, setting in every.items() if name not in OF_MACHINE}


def _plain(value: Any) -> Any:
    """Of several values, those that say something; one of them alone as it is."""
    if isinstance(value, tuple):
        values = [v for v in value if v != ""]
        return (values[0] if values else "") if len(values) < 2 else values
    return value


def _harmless(value: Any) -> Any:
    if isinstance(value, list):
        return [_harmless(v) for v in value]
    return without_secrets(value) if isinstance(value, str) else value


# -- the file --------------------------------------------------------------------------------------


def _in_file(ctx: click.Context, path: str) -> Iterator[tuple[str, Setting]]:
    """The options of the running verb in the file, by click's names."""
    from rankdrift.log.options import read_settings

    shared, tables = read_settings(path)
    own = _table(ctx, tables, path)
    options = {key(p): p for p in ctx.command.params if isinstance(p, click.Option)}
    known = list(settable(ctx.command))
    for name in own:
        if name in options and name not in known:
            raise BadOption(f"{path!r}: {name} cannot be in a file. Type it with each command.")
        if name not in options:
            raise BadOption(
                f"{path!r} has an unknown option {name!r} of {ctx.info_name}."
                f"{did_you_mean(name, known)} Known are {', '.join(known)}."
            )
    for name, option in options.items():
        if name in own or (name in shared and is_of_log(option)):
            value = own[name] if name in own else shared[name]
            value = as_typed(ctx, option, value, f"{path!r}: {name}")
            yield str(option.name), Setting(name, value, "file", path)


def _table(ctx: click.Context, tables: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """What the file says of the verb; `[simulate.market]` of `rankdrift simulate market`."""
    if ctx.parent is None:
        return tables
    found: Mapping[str, Any] = _table(ctx.parent, tables, path).get(str(ctx.info_name), {})
    if isinstance(ctx.command, click.Group):
        verbs = ctx.command.commands
        for name, table in found.items():
            if name not in verbs or not isinstance(table, dict):
                raise BadOption(
                    f"{path!r} has {name!r} under [{ctx.info_name}], where only tables of its "
                    f"verbs go: {', '.join(verbs)}.{did_you_mean(name, verbs)}"
                )
    return found


# What an option takes, by the name of its type; others take text.
_TAKES: Mapping[str, tuple[str, Any]] = {
    "boolean": ("true or false", bool),
    "integer": ("a whole number", int),
    "integer range": ("a whole number", int),
    "float": ("a number", int | float),
}


def takes_several(option: click.Option) -> bool:
    """Whether a list may stand for it in the file."""
    return option.multiple or (option.metavar or "").endswith(",…")


def as_typed(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    """A value of the file as click would have it, had it been typed; `where` is for the error."""
    several = takes_several(option)
    if type(value) is date:  # as TOML has it without quotes
        value = value.isoformat()
    values = value if several and isinstance(value, list) else [value]
    with_commas = values is value and not option.multiple  # where numbers are text too
    takes, kind = _TAKES.get(option.type.name, ("text", str | int if with_commas else str))
    if not all(isinstance(v, kind) and isinstance(v, bool) == (kind is bool) for v in values):
        raise BadOption(f"{where} takes {takes}, not {value!r}.")
    typed = value
    if option.multiple:
        # A name of a log that is alone would be split at commas; "" is no name.
        typed = (*values, "") if len(values) < 2 and is_of_log(option) else tuple(values)
    elif with_commas:
        typed = ",".join(map(str, values))
    _cast(ctx, option, typed, where)
    return typed


def _cast(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    try:
        return option.type_cast_value(ctx, value)
    except click.BadParameter as error:
        raise BadOption(f"{where}: {error.message}") from None


# -- the environment -------------------------------------------------------------------------------


def _in_environment(ctx: click.Context) -> Iterator[tuple[str, Setting]]:
    """The options of the running verb that variables tell, by click's names. One that is empty says
    nothing."""
    for name, option in settable(ctx.command).items():
        for variable in variables_of(ctx, name, option):
            text = os.environ.get(variable)
            if text:
                typed = (text,) if option.multiple else text
                value = _cast(ctx, option, typed, variable)
                yield str(option.name), Setting(name, value, "environment", variable)
                break


def variables_of(ctx: click.Context, name: str, option: click.Option) -> list[str]:
    """The variables that tell an option, the one that counts first: that of the verb alone, and of
    an option of a log, that of all verbs."""
    verb = ctx.command_path.split()[1:]
    own = [variable(*verb, name)]
    return [*own, variable(name)] if is_of_log(option) else own


def variable(*words: str) -> str:
    """What a setting is called in the environment, from the verb and the option."""
    return PREFIX + "_".join(words).replace("-", "_").upper()


def strange_variables(ctx: click.Context) -> list[str]:
    """Of variables that are called almost like a setting. Others that begin the same way may be
    anything: a cluster names the address of a service so."""
    from rankdrift.log.options import IN_FILES, TABLES

    mine = {v for n, o in settable(ctx.command).items() for v in variables_of(ctx, n, o)}
    known = {CONFIG_VARIABLE, OF_TESTS, *map(variable, IN_FILES), *mine}
    of_others = tuple(f"{variable(verb)}_" for verb in TABLES if verb != ctx.info_name)
    words = []
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not name.startswith(of_others):
            # Without what they all begin with, which would make any of them look alike.
            near = did_you_mean(name.removeprefix(PREFIX), (v.removeprefix(PREFIX) for v in known))
            if near:
                hint = near.replace("'", f"'{PREFIX}", 1)
                words.append(f"The variable {name} is no setting, and is passed over.{hint}")
    return words


# -- options ---------------------------------------------------------------------------------------


def settable(command: click.Command) -> dict[str, click.Option]:
    """The options of a verb that may stand in a file, by what they are called there."""
    options = {key(p): p for p in command.params if isinstance(p, click.Option)}
    return {name: option for name, option in options.items() if name not in TYPED_ONLY}


def default_of(option: click.Option) -> Any:
    """What is taken for granted, or None."""
    default = option.to_info_dict()["default"]
    return False if default is None and option.is_flag and not option.secondary_opts else default


def is_of_log(option: click.Option) -> bool:
    """Whether it is an option of a log, which every verb that reads one has."""
    return hasattr(option, "section")


def key(parameter: click.Parameter) -> str:
    """What an option is called in the file: as typed, with _ for -."""
    return max(parameter.opts, key=len).lstrip("-").replace("-", "_")
