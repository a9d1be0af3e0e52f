"""Which engine reads a log. To add one: a module that has `open_engine(source, options)`, and a
line in `ENGINES`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.log.engines.engine import Engine
from rankdrift.log.options import Options


@dataclass(frozen=True)
class EngineChoice:
    """What can be said of an engine without loading it.

    Parameters
    ----------
    title
        Its name as it is written in a sentence.
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
ENGINES = {
    "duckdb": EngineChoice("DuckDB", "rankdrift.log.engines.duckdb.engine"),
    "spark": EngineChoice(
        "Spark",
        "rankdrift.log.engines.spark",
        tables="pyspark.",
        chosen_by=("session", "master"),
        refused={"memory": _SPARK_STARTS, "threads": _SPARK_STARTS},
    ),
}
"""The first reads what no other claims."""


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
    if wanted not in (None, *ENGINES):
        raise BadOption(
            f"No engine {wanted!r}.{did_you_mean(str(wanted), ENGINES)} "
            f"There are {' and '.join(ENGINES)}."
        )
    default, *others = ENGINES.items()
    for name, choice in others:
        if choice.owns(source) and wanted not in (None, name):
            raise BadOption(
                f"A {choice.title} DataFrame is read by {choice.title}: leave out "
                f"engine={wanted!r}."
            )
    for name, choice in others:
        asked_for = any(getattr(options, option) for option in choice.chosen_by)
        if wanted == name or choice.owns(source) or asked_for:
            return choice
    return default[1]
