"""The documentation builds as a site: no warning, no request, every page in the menu."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = r"[-+]?\d+(?:\.\d+)?"
LARGEST = 60_000  # bytes of a picture
# Of a number in a picture: other versions of LightGBM and NumPy make slightly other rankers.
SAME = 0.15
# What a page would fetch from somewhere else; links to follow are no requests.
FETCHED = re.compile(r"""<(?:script|img|link|iframe)[^>]+(?:src|href)=["']?(https?:)?//""")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        html = re.sub(r'<link[^>]+rel="?(canonical|edit|next|prev)"?[^>]*>', "", page.read_text())
        assert not FETCHED.search(html), page.name
    check_formulas(tmp_path)
    check_pictures(tmp_path / "figures")
    commands = (tmp_path / "reference" / "commands.html").read_text()
    for verb in ("inspect", "harvest", "estimate", "train", "report"):
        assert f"rankdrift {verb}" in commands


def check_formulas(site: Path) -> None:
    """Formulas are typeset, and none is left as LaTeX."""
    method = (site / "method.html").read_text()
    assert method.count("<math") > 40 and method.count('display="block"') >= 8
    for page in site.glob("*.html"):
        html = page.read_text()
        assert "arithmatex" not in html and "\\frac" not in html, page.name
        assert "<merror" not in html, page.name


def check_pictures(drawn: Path) -> None:
    """The pictures in the repository, which the README shows, say what a run says now."""
    kept = ROOT / "docs" / "figures"
    for picture in sorted(kept.glob("first-*.svg")):
        assert picture.stat().st_size < LARGEST
        now, then = (
            re.findall(r"<text[^>]*>([^<]*)</text>", (folder / picture.name).read_text())
            for folder in (drawn, kept)
        )
        assert len(now) == len(then) > 5, f"{picture.name} is another picture: make picture"
        for new, old in zip(now, then, strict=True):
            words, numbers = zip(*map(split, (new, old)), strict=True)
            assert words[0] == words[1], f"{picture.name}: {old} is now {new}: make picture"
            assert numbers[0] == pytest.approx(numbers[1], rel=SAME, abs=SAME), picture.name


def split(text: str) -> tuple[str, list[float]]:
    """The words of a text, and its numbers."""
    return re.sub(NUMBER, "", text), [float(n) for n in re.findall(NUMBER, text)]
