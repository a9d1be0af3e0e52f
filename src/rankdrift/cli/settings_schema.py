"""What may stand in a file of settings, as a JSON Schema: editors complete and check by it. It is
made from the options themselves, so it knows all of them and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from rankdrift.cli.settings import is_of_log, settable, takes_several

EVERY_OPTION = ("inspect",)
"""A verb that has every option of a log."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def verbs() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every verb that takes options, with its name in words: ("simulate", "market")."""
    from rankdrift.cli.verbs import VERBS, rankdrift

    ctx = click.Context(rankdrift, info_name="rankdrift")
    for name in VERBS:
        command = rankdrift.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from (((name, each), verb) for each, verb in command.commands.items())
        elif command is not None:
            yield (name,), command


def settings_schema() -> dict[str, Any]:
    """The schema of `rankdrift.toml`."""
    tables: dict[str, Any] = {}
    named = dict(verbs())
    every = settable(named[EVERY_OPTION])
    properties = {name: _property(option) for name, option in every.items() if is_of_log(option)}
    for name, command in named.items():
        own = {
            n: {"$ref": f"#/properties/{n}"} if is_of_log(option) else _property(option)
            for n, option in settable(command).items()
        }
        table = _table(_sentence(command), own)
        if len(name) == 1:
            tables[name[0]] = table
        else:
            group = tables.setdefault(name[0], _table("Tables of its verbs.", {}))
            group["properties"][name[1]] = table
    return {
        "$schema": DRAFT,
        "title": "Settings of rankdrift",
        **_table(
            "Options of a log, for every verb that reads one; options of one verb in a table "
            "named like it.",
            {**properties, **tables},
        ),
    }


def _table(description: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }


def _sentence(command: click.Command) -> str:
    """What a verb does, by the first line of its help."""
    return (command.help or "").strip().split("\n")[0]


def _property(option: click.Option) -> dict[str, Any]:
    """What an option takes: the same that `settings.as_typed` lets through."""
    several, one = takes_several(option), _type(option.type)
    each = one
    if several and not option.multiple:  # joined with commas, where numbers are text too
        each = {"type": ["string", "integer"]} if one == {"type": "string"} else one
    found = {"anyOf": [one, {"type": "array", "items": each}]} if several else one
    text = " ".join((option.help or "").split())
    return {"description": text, **found} if text else found


def _type(kind: click.ParamType[Any]) -> dict[str, Any]:
    if isinstance(kind, click.Choice):
        return {"enum": [str(choice) for choice in kind.choices]}
    if kind.name == "boolean":
        return {"type": "boolean"}
    if kind.name == "integer range":
        assert isinstance(kind, click.IntRange)
        bounds = {"minimum": kind.min, "maximum": kind.max}
        return {"type": "integer", **{k: v for k, v in bounds.items() if v is not None}}
    if kind.name == "integer":
        from rankdrift.cli.options import SEED

        return {"type": "integer", "minimum": 0} if kind is SEED else {"type": "integer"}
    return {"type": "number"} if kind.name == "float" else {"type": "string"}
