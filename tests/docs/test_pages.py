"""Every command and every code block of the pages is run, in order, in an empty directory."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```(python|bash)\n(.*?)```", re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(kind, code) for skip, kind, code in found if not skip]


def commands(code: str) -> list[str]:
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path) -> None:
    """Python blocks of a page share one namespace; each runs as a file, up to the next command."""
    script = ""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
    }
    for kind, code in blocks(page):
        if kind == "python":
            script += code
            run([sys.executable, "-c", script], tmp_path, env)
            continue
        for line in commands(code):
            words = shlex.split(line)
            if words[0] in ("make", "pip"):  # set-up: what runs this test has done it
                assert words[0] != "make" or f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
                continue
            assert words[0] == "rankdrift", f"{page.name} shows a command of someone else: {line}"
            run(["bash", "-c", line], tmp_path, env)


def run(words: list[str], where: Path, env: dict[str, str]) -> None:
    done = subprocess.run(words, cwd=where, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words[-1]}\n{done.stdout}\n{done.stderr}"
