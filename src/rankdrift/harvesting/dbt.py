"""The same plan as a package for dbt: a model for everything that is kept on the way, one for the
counts, and a macro that says where the log is."""

import json
import re
from collections.abc import Mapping
from typing import Any

from rankdrift.core.dialects import Dialect
from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.errors import BadOption
from rankdrift.core.version import __version__
from rankdrift.harvesting.warehouse import warehouse_plan
from rankdrift.log.sql.plan import renamed

PACKAGE = "rankdrift"
_LOG = "rankdrift_log_goes_here"
_JINJA = re.compile(r"\{[{%#]|[}%#]\}")
_COMMENT = "-- Made by rankdrift {version}: change its options and make it again.\n"
_MACRO = """\
{# Where the log is: the source of models/sources.yml, or a model of yours,
   --vars '{rankdrift_log: my_model}'. #}
{% macro rankdrift_log() %}
  {%- if var('rankdrift_log', none) is not none -%}
    {{ return(ref(var('rankdrift_log'))) }}
  {%- endif -%}
  {{ return(source('rankdrift', 'log')) }}
{% endmacro %}
"""
_PROJECT = """\
name: rankdrift
version: "1.0.0"
config-version: 2
profile: {profile}
model-paths: [models]
macro-paths: [macros]
models:
  rankdrift:
    +materialized: table
"""


def dbt_package(
    table: str, *, dialect: str, appearances: bool = False, **options: Any
) -> dict[str, str]:
    """The harvest of a table in a warehouse as a package for dbt.

    Parameters
    ----------
    table, dialect, appearances, options
        As for `warehouse_sql`.

    Returns
    -------
    dict
        Path in the package -> text. The model `rankdrift_counts`, or `rankdrift_appearances`, is
        the table whose export `import_counts`, or `judge`, takes.

    Raises
    ------
    BadOption
        As for `warehouse_sql`; or a dialect whose settings no model can hold.
    MissingColumns
        A column that is needed was not named.
    """
    written_for = find_dialect(dialect)
    if written_for.opening:
        raise BadOption(
            f"No package for dbt on {dialect}: the plan needs settings of a session there, which a "
            "model cannot hold. Leave out --dbt and run the script that is printed."
        )
    plan = warehouse_plan(_LOG, written_for, appearances=appearances, **options)
    tables = plan.tables(written_for)
    last = f"{PACKAGE}_appearances" if appearances else f"{PACKAGE}_counts"
    models = {name: f"{PACKAGE}_{name}" for name, _ in tables[:-1]}
    files = {
        f"models/{models.get(name, last)}.sql": _model(select, models, written_for)
        for name, select in tables
    }
    return {
        "dbt_project.yml": _PROJECT.format(profile=PACKAGE),
        "macros/rankdrift_log.sql": _MACRO,
        "models/sources.yml": _sources(table),
        "models/models.yml": _described(last, list(models.values())),
        **files,
    }


def _model(select: str, models: Mapping[str, str], d: Dialect) -> str:
    """A SELECT of the plan, in which other models are named as dbt wants it."""
    text = _JINJA.sub(lambda found: f"{{{{ '{found[0]}' }}}}", select)
    text = renamed(text, {name: f"{{{{ ref('{model}') }}}}" for name, model in models.items()})
    text = text.replace(_LOG, "{{ rankdrift_log() }}")
    known = '{{ config(post_hook="ANALYZE {{ this }}") }}\n' if "ANALYZE" in d.keep else ""
    return f"{_COMMENT.format(version=__version__)}{known}{text}\n"


def _sources(table: str) -> str:
    """Where the log is, as YAML; JSON's texts are YAML's too."""
    *above, name = table.split(".")
    places = [*zip(("schema", "database"), reversed(above), strict=False)]
    lines = [f"    {key}: {json.dumps(value)}" for key, value in places]
    return "\n".join(
        [
            "version: 2",
            "sources:",
            f"  - name: {PACKAGE}",
            *lines,
            "    tables:",
            "      - name: log",
            f"        identifier: {json.dumps(name)}",
            "",
        ]
    )


def _described(last: str, others: list[str]) -> str:
    described = [(last, "What rankdrift takes in: export it with its column names.")]
    described += [(name, "A step of the plan; nobody else needs it.") for name in others]
    lines = [f"  - name: {name}\n    description: {json.dumps(about)}" for name, about in described]
    return "\n".join(["version: 2", "models:", *lines, ""])
