"""The blocks of a page, and how they are run: `python doc_pages.py PAGE`, in an empty folder.

All blocks run in the order of the page, Python in one process, so that names stay known from block
to block; commands too, but those of README, which are run as typed. A block of `output` is
what the block before it prints, and must be that; one line of … stands for any number of lines.
`python doc_pages.py PAGE --write` puts what is printed now into these blocks, as many lines as they
had around the ….
"""

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from glob import glob
from pathlib import Path
from subprocess import PIPE
from typing import Any

from rankdrift import cli

RUNNER = Path(__file__)
AS_TYPED = ("README.md",)
# What only a shell understands, outside of quotes; a star in a word of its own we know as well.
QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
SHELL = re.compile(r"""[|<>$;&*?\[~{`"]""")
STARRED = re.compile(r"(?<= )[\w/.*-]*\*[\w/.*-]*(?= |$)")
ELISION = "…"
# Of a number that a page shows: other versions of LightGBM and NumPy make slightly other numbers.
SAME = 0.15
SAME_ERROR = 0.5  # of what stands behind a ±, which is itself uncertain
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_ERROR = re.compile(rf"({_NUMBER.pattern}) ± ({_NUMBER.pattern})")
_WORDS = re.compile(r"[^\W\d]+")
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


def alike(one: str, other: str) -> bool:
    """Whether two lines have the same words, and numbers that are the same to within SAME; what has
    an error behind it, to within that."""
    lines = one, other
    words = [_WORDS.findall(line) for line in lines]
    with_error = [[_floats(each) for each in _ERROR.findall(line)] for line in lines]
    others = [_floats(_NUMBER.findall(_ERROR.sub("", line))) for line in lines]
    if words[0] != words[1] or any(len(a) != len(b) for a, b in (with_error, others)):
        return False
    return all(
        abs(a - b) <= SAME * max(abs(a), abs(b), 1 / 3) for a, b in zip(*others, strict=True)
    ) and all(
        abs(a - b) <= max(e, f) and abs(e - f) <= SAME_ERROR * max(e, f)
        for (a, e), (b, f) in zip(*with_error, strict=True)
    )


def _floats(numbers: Sequence[str]) -> list[float]:
    return [float(number.replace(",", "")) for number in numbers]


def run(page: Path, write: bool = False) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for number, (kind, code) in enumerate(blocks(page), start=1):
        if kind == "output":
            _check(page, number, code, printed, write)
            continue
        out = io.StringIO()
        if kind == "python":
            with redirect_stdout(out):
                exec(compile(code, f"{page.name}, block {number}", "exec"), names)
            print(out.getvalue(), end="", flush=True)
        for line, words in _lines(code) if kind == "bash" else ():
            if words[0] == "rankdrift":
                print(f"$ {line}", flush=True)
                told = _told(page, line, words)
                print(told, end="", flush=True)
                out.write(told)
        printed = out.getvalue()


def _told(page: Path, line: str, words: list[str]) -> str:
    """What a command prints. Only README and what needs a shell start the command itself:
    to start Python, or Spark, and load everything anew takes longer than most."""
    bare = QUOTED.sub("", line)
    if page.name in AS_TYPED or SHELL.search(STARRED.sub("", bare)):
        return subprocess.run(["bash", "-c", line], check=True, stdout=PIPE, text=True).stdout
    starred = STARRED.findall(bare)
    words = [each for word in words for each in (sorted(glob(word)) if word in starred else [word])]
    out = io.StringIO()
    with redirect_stdout(out):
        code = cli.run(words[1:])
    if code:
        raise subprocess.CalledProcessError(code, line)
    return out.getvalue()


def _check(page: Path, number: int, shown: str, printed: str, write: bool) -> None:
    """Compare a block of output with what was printed, or put that into the page."""
    wanted, found = ([line.rstrip() for line in text.splitlines()] for text in (shown, printed))
    while found and not found[0]:
        found.pop(0)
    head = wanted.index(ELISION) if ELISION in wanted else len(found)
    tail = len(wanted) - head - 1 if ELISION in wanted else 0
    cut = [ELISION] if ELISION in wanted else []
    now = found[:head] + cut + (found[-tail:] if tail else [])
    if write:
        text, before = page.read_text(encoding="utf-8"), f"```output\n{shown}```"
        assert text.count(before) == 1, f"block {number} is there twice"
        after = "\n".join(["```output", *now, "```"])
        page.write_text(text.replace(before, after), encoding="utf-8")
    elif len(now) != len(wanted) or not all(map(alike, now, wanted)):
        shown_now = "\n".join(now)
        raise AssertionError(f"{page.name}, block {number}: printed is now\n{shown_now}")


if __name__ == "__main__":
    run(Path(sys.argv[1]), write="--write" in sys.argv)
