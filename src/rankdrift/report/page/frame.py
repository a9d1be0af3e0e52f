"""What all pages share: one style, one set of blocks, and no way to fetch or run anything else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rankdrift.core.settings_used import in_page
from rankdrift.core.words import figure, percent, printable, ranges, rank_words, segment_words

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# What no line is to be broken in, unless it is longer than any that we write.
_WHOLE = re.compile(
    r"--[a-z][a-z-]{0,28}[a-z](?![a-z-])|p (?:=|&lt;) [0-9.e+-]{0,12}[0-9](?![0-9])"
)


def render(template: str, *, script: str | None = None, **values: Any) -> str:
    """Make the page of a template of this folder.

    Parameters
    ----------
    template
        Its file.
    script
        The one file of code that the page may run.
    values
        What the template shows.
    """
    from markupsafe import Markup  # our own files need no escapes

    style = read("page.css")
    code = read(script) if script else ""
    policy = f"default-src 'none'; style-src {_hash(style)}"
    if code:
        policy += f"; script-src {_hash(code)}"
    own = {"style": Markup(style), "script": Markup(code), "policy": Markup(policy)}
    page = environment().get_template(template).render(**own, **values)
    return page.replace("</head>", f"{in_page()}</head>", 1)


@cache
def environment() -> Environment:
    """What templates are read with: all that they show is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(read),
    )
    made.filters |= {
        "plain": lambda text: printable(str(text)),
        "prose": _prose,
        "count": lambda number: f"{number:,.0f}",
        "percent": percent,
        "figure": figure,
        "ranges": lambda ranks: ranges(ranks, most=16),
        "ranks": lambda part: rank_words(part.first, part.last),
        "segment": segment_words,
    }
    return made


def _prose(text: str) -> Markup:
    """Escaped, with options and p-values that no line is broken in."""
    from markupsafe import Markup, escape

    return Markup(_WHOLE.sub(r'<span class="one">\g<0></span>', str(escape(printable(text)))))


@cache
def read(name: str) -> str:
    """The text of a file of this folder."""
    return files("rankdrift.report.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
