"""Which engine reads a log. To add one: a module that has `open_engine(source, options)`, and a
line that registers it with `ENGINES`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.registry import Registry
from rankdrift.log.engines.engine import Engine
from rankdrift.log.options import Options


@dataclass(frozen=True)
class EngineChoice:
    """What can be said of an engine without loading it.

    Parameters
    ----------
    name
        What it is called in options.
    title
        The same as it is written in a sentence.
    home
        The module whose `open_engine` opens a log. It is imported only when the engine is chosen,
        for engines are heavy.
    tables
        How the names of modules begin whose tables only this engine reads.
    chosen_by
        Options that choose it, since no other engine takes them.
    refused
        Options it does not take, and what to do instead.
    """

    name: str
    title: str
    home: str
    tables: str | None = None
    chosen_by: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def owns(self, source: Any) -> bool:
        """Is this a table that only this engine reads?"""
        return self.tables is not None and type(source).__module__.startswith(self.tables)


_SPARK_STARTS = (
    "is for DuckDB. Give Spark its memory and cores when its session starts (spark-submit, or "
    "--master 'local[4]')."
)
ENGINES = Registry[EngineChoice]("engine")
"""The first reads what no other claims."""
ENGINES.register(EngineChoice("duckdb", "DuckDB", "rankdrift.log.engines.duckdb.engine"))
ENGINES.register(
    EngineChoice(
        "spark",
        "Spark",
        "rankdrift.log.engines.spark",
        tables="pyspark.",
        chosen_by=("session", "master"),
        refused={"memory": _SPARK_STARTS, "threads": _SPARK_STARTS},
    )
)


def open_log(source: Any, options: Options) -> Engine:
    """Open a log with the engine that the options or the source ask for."""
    choice = _choose(source, options)
    for name, instead in choice.refused.items():
        if getattr(options, name):
            raise BadOption(f"{name} {instead}")
    opened: Engine = import_module(choice.home).open_engine(source, options)
    return opened


def _choose(source: Any, options: Options) -> EngineChoice:
    wanted = options.engine
    if wanted is not None and wanted not in ENGINES:
        raise BadOption(
            f"No engine {wanted!r}.{did_you_mean(str(wanted), ENGINES.names)} "
            f"There are {' and '.join(ENGINES.names)}."
        )
    default, *others = ENGINES
    for choice in others:
        if choice.owns(source) and wanted not in (None, choice.name):
            raise BadOption(
                f"A {choice.title} DataFrame is read by {choice.title}: leave out "
                f"engine={wanted!r}."
            )
    for choice in others:
        asked_for = any(getattr(options, option) for option in choice.chosen_by)
        if wanted == choice.name or choice.owns(source) or asked_for:
            return choice
    return default
