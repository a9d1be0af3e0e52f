"""Formulas of the documentation as MathML, made when the site is built: a hook of mkdocs.

In the Markdown they stand between dollars, as GitHub shows them. Browsers draw MathML by
themselves, so that a page needs no script and asks nobody for anything.
"""

import re
from html import unescape
from typing import Any

# What pymdownx.arithmatex makes of $…$ and $$…$$.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?:\(|\[)(?P<latex>.*?)\\(?:\)|\])</(?P=tag)>', re.S
)

# As a mere name it would touch what follows it.
LOG = '<mo lspace="0.17em" rspace="0.17em">log</mo>'


def typeset(html: str) -> str:
    """The page with its formulas typeset."""
    from latex2mathml.converter import convert

    def in_mathml(found: re.Match[str]) -> str:
        display = "inline" if found["tag"] == "span" else "block"
        made = str(convert(unescape(found["latex"]).strip(), display=display))
        return made.replace("<mi>log</mi>", LOG)

    return FORMULA.sub(in_mathml, html)


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with every page."""
    return typeset(html)
