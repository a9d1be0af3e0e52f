"""The blocks of a page, and how they are run: `python pages.py PAGE`, in an empty folder.

All blocks run in the order of the page: commands in a shell each, Python in one process, so that
names stay known from block to block.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUNNER = Path(__file__)
FENCED = re.compile(r"^ *(?P<fence>```+|~~~+) *(\S*)[^\n]*\n(.*?)^ *(?P=fence) *$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, code) of everything fenced."""
    return [(kind, code) for _, kind, code in FENCED.findall(page.read_text(encoding="utf-8"))]


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The lines of its shell blocks, as typed and as words."""
    for kind, code in blocks(page):
        if kind == "bash":
            yield from _lines(code)


def _lines(code: str) -> Iterator[tuple[str, list[str]]]:
    for line in code.replace("\\\n", " ").splitlines():
        if line.strip():
            yield line, shlex.split(line)


def run(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (kind, code) in enumerate(blocks(page), start=1):
        if kind == "python":
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)
        for line, words in _lines(code) if kind == "bash" else ():
            if words[0] == "rankdrift":
                print(f"$ {line}", flush=True)
                subprocess.run(["bash", "-c", line], check=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
