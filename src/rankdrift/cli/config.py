"""rankdrift config"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.settings import FILE, Setting, in_force, settings_file
from rankdrift.cli.settings_schema import EVERY_OPTION, settings_schema, verbs
from rankdrift.core.artefacts import BESIDE
from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.settings_used import settings_of

LOG = "log"
"""What the options of a log go by, beside the tables of the verbs."""
_OF_ALL = ("json", "quiet")  # what every verb takes, and nobody keeps in a file


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[VERB [OPTIONS]...]")
@click.option("--changed", is_flag=True, help="Only what is not a default.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of such a file instead.")
@click.option(
    "--of",
    "made",
    metavar="FILE",
    help="Print those that counts, propensities, judgments, a model or a report were made with.",
)
@talking
def config(
    screen: Screen, words: tuple[str, ...], changed: bool, schema: bool, made: str | None
) -> int:
    """Print every setting, and where it is from.

    What is typed wins over a variable of the environment (RANKDRIFT_MAX_RANK, or
    RANKDRIFT_ESTIMATE_CURVE of one verb), a variable over the file rankdrift.toml, and the file
    over what is taken for granted. With a verb, and what would be typed after it, only its own;
    nothing is run.

    \b
        rankdrift config --changed
        rankdrift config estimate --curve loglog
    """
    if schema:
        return _print_schema(screen)
    if made is not None:
        return _print_made(screen, made, changed)
    ctx = click.get_current_context()
    path = settings_file(ctx.params.get("config"))
    if words:
        verb = _named(words, ctx)
        # Typed after the verb, these are meant for what is printed here.
        screen = replace(
            screen,
            json=screen.json or verb.params["as_json"],
            quiet=screen.quiet or verb.params["quiet"],
        )
        typed = verb.params.get("config")
        path = path if typed is None else settings_file(typed)
        found = {".".join(verb.command_path.split()[1:]): in_force(verb, path)}
    else:
        found = _of_all(ctx, path)
    if changed:
        found = {table: [s for s in own if s.origin != "default"] for table, own in found.items()}
    found = {table: [s for s in own if s.name not in _OF_ALL] for table, own in found.items()}
    found = {table: own for table, own in found.items() if own}
    screen.answer(
        {
            "file": path or None,
            "settings": {t: {s.name: s.to_dict() for s in own} for t, own in found.items()},
        }
    )
    _show(screen, found)
    there = f"The file is {path}." if path else f"There is no file: no {FILE} here."
    screen.say("", there)
    screen.next("rankdrift", "inspect" if path else "init", "YOUR_LOG")
    return Exit.GOOD


def _print_schema(screen: Screen) -> int:
    found = settings_schema()
    screen.text(json.dumps(found, indent=2, ensure_ascii=False))
    screen.answer(found)
    return Exit.GOOD


def _print_made(screen: Screen, path: str, changed: bool) -> int:
    if not os.path.isfile(path):
        raise BadOption(f"There is no file {path!r}. Give one that rankdrift wrote.")
    beside = path + BESIDE
    found = settings_of(beside if os.path.isfile(beside) else path)
    if found is None:
        raise BadOption(
            f"{path!r} does not tell its settings: it was not written by a command of rankdrift's, "
            "or by one that is older, or its kind of file has no room for them (CSV, plain text)."
        )
    settings = [
        Setting(name, about["value"], about["from"], about["place"])
        for name, about in found.items()
        if name not in _OF_ALL and not (changed and about["from"] == "default")
    ]
    screen.answer({"file": path, "settings": {s.name: s.to_dict() for s in settings}})
    _show(screen, {path: settings} if settings else {}, path)
    return Exit.GOOD


def _of_all(ctx: click.Context, path: str | None) -> dict[str, list[Setting]]:
    """Table -> its settings; LOG has the options of a log, and a table its verb's own, with those
    of a log that are something else there."""
    by_verb = {name: in_force(_context(name, (), ctx), path) for name, _ in verbs()}
    shared = {s.name: s for s in by_verb[EVERY_OPTION] if s.of_log}
    found = {LOG: list(shared.values())}
    for name, settings in by_verb.items():
        found[".".join(name)] = [s for s in settings if not s.of_log or s != shared.get(s.name)]
    return found


def _named(words: tuple[str, ...], ctx: click.Context) -> click.Context:
    """The verb that the first words name, with what is typed after it."""
    names = [name for name, _ in verbs()]
    name = next((n for n in names if words[: len(n)] == n), None)
    if name is None:
        known = [" ".join(n) for n in names]
        raise BadOption(
            f"No verb {' '.join(words[:2])!r}.{did_you_mean(words[0], known)} There are "
            f"{', '.join(known)}."
        )
    return _context(name, words[len(name) :], ctx)


def _context(name: tuple[str, ...], words: tuple[str, ...], ctx: click.Context) -> click.Context:
    """Of a verb that is not run: nothing has to be there, but what is typed must be right."""
    above = ctx.find_root()
    for word in name[:-1]:
        group = above.command
        assert isinstance(group, click.Group)
        command = group.get_command(above, word)
        assert command is not None
        above = click.Context(command, info_name=word, parent=above)
    group = above.command
    assert isinstance(group, click.Group)
    verb = group.get_command(above, name[-1])
    assert verb is not None
    strict = click.Context(verb, info_name=name[-1], parent=above)
    typed, _, _ = verb.make_parser(strict).parse_args(list(words))  # says what is no option
    for parameter in verb.params:
        if isinstance(parameter, click.Option) and parameter.name in typed:
            parameter.type_cast_value(strict, typed[parameter.name])
    return verb.make_context(name[-1], list(words), parent=above, resilient_parsing=True)


def _show(screen: Screen, found: dict[str, list[Setting]], file: str | None = None) -> None:
    from rankdrift.report.terminal.tables import empty_table, heading, indent, line

    blocks: list[Any] = []
    for name, settings in found.items():
        table = empty_table(["setting", "value", "from"])
        for s in settings:
            place = f"{s.origin}: {s.place}" if s.place else s.origin
            value = s.to_dict()["value"]
            style = "dim" if s.origin == "default" else ""
            text = "" if value is None else json.dumps(value, ensure_ascii=False)
            table.add_row(line(s.name, style), line(text, style), line(place, style))
        title = f"{name} was made with" if file else f"[{name}]"
        title = "Of a log, for every verb that reads one" if name == LOG else title
        blocks += [heading(title), indent(table)]
    screen.show(*blocks) if blocks else screen.say("Nothing is set: all is as by default.")
