"""Options that would be typed again and again, in a file: `rankdrift.toml` where the command runs,
or the one that --config names. At its top are options of a log, for every verb that reads one; a
table named like a verb has options of that verb. What is typed wins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
from click.core import ParameterSource

from rankdrift.core.errors import BadOption, did_you_mean

FILE = "rankdrift.toml"
# Options that no file may hold: those about itself and the help, and where to write, lest a folder
# from somewhere else choose which of your files is replaced.
TYPED_ONLY = ("config", "help_all", "output", "html", "chart", "export")


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
    """What to say of a file that nobody named: which options it gave."""
    if ctx.get_parameter_source("config") == ParameterSource.COMMANDLINE:
        return []
    names = [_key(p) for p in ctx.command.params if from_file(p.name or "", ctx)]
    return [f"From {FILE}: {', '.join(names)} (--config '' to go without)."] if names else []


def from_file(name: str, ctx: click.Context | None = None) -> bool:
    """Was this option of the running verb taken from the file, rather than typed?"""
    ctx = ctx or click.get_current_context(silent=True)
    return ctx is not None and ctx.get_parameter_source(name) == ParameterSource.DEFAULT_MAP


def _read(ctx: click.Context, parameter: click.Parameter, typed: str | None) -> str | None:
    """Let the file say what the options are that are not typed."""
    path = FILE if typed is None and os.path.isfile(FILE) else typed
    # A step of another verb (it has an `obj`) is typed in full.
    if path and not ctx.resilient_parsing and ctx.obj is None:
        ctx.default_map = dict(_said(ctx, path))
    return typed


def _said(ctx: click.Context, path: str) -> Iterator[tuple[str, Any]]:
    """The name and the value of each option of the running verb in the file."""
    from rankdrift.log.options import read_settings

    shared, tables = read_settings(path)
    own = _table(ctx, tables, path)
    options = {_key(p): p for p in ctx.command.params if isinstance(p, click.Option)}
    known = [name for name in options if name not in TYPED_ONLY]
    for name in own:
        if name in options and name in TYPED_ONLY:
            raise BadOption(f"{path!r}: {name} cannot be in a file. Type it with each command.")
        if name not in options:
            raise BadOption(
                f"{path!r} has an unknown option {name!r} of {ctx.info_name}."
                f"{did_you_mean(name, known)} Known are {', '.join(known)}."
            )
    for name, option in options.items():
        if name in own or (name in shared and _is_of_log(option)):
            value = own[name] if name in own else shared[name]
            yield str(option.name), _as_typed(ctx, option, value, f"{path!r}: {name}")


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


def _as_typed(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    """The value as click would have it, had it been typed."""
    several = option.multiple or (option.metavar or "").endswith(",…")
    values = value if several and isinstance(value, list) else [value]
    with_commas = values is value and not option.multiple  # where numbers are text too
    takes, kind = _TAKES.get(option.type.name, ("text", str | int if with_commas else str))
    if not all(isinstance(v, kind) and isinstance(v, bool) == (kind is bool) for v in values):
        raise BadOption(f"{where} takes {takes}, not {value!r}.")
    typed = value
    if option.multiple:
        # A name of a log that is alone would be split at commas; "" is no name.
        typed = (*values, "") if len(values) < 2 and _is_of_log(option) else tuple(values)
    elif with_commas:
        typed = ",".join(map(str, values))
    try:
        option.type_cast_value(ctx, typed)
    except click.BadParameter as error:
        raise BadOption(f"{where}: {error.message}") from None
    return typed


def _is_of_log(option: click.Option) -> bool:
    return hasattr(option, "section")


def _key(parameter: click.Parameter) -> str:
    """What an option is called in the file: as typed, with _ for -."""
    return max(parameter.opts, key=len).lstrip("-").replace("-", "_")
