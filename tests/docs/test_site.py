"""The documentation builds as a site: no warning, no request, every page in the menu."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    commands = (tmp_path / "reference" / "commands.html").read_text()
    for verb in ("inspect", "harvest", "estimate", "train", "report"):
        assert f"rankdrift {verb}" in commands
