"""What a notebook shows, it shows without a network: tables and charts, in the kernel and in the
browser."""

import re

import nbformat
import pytest
from find_browser import find_browser
from nbclient import NotebookClient
from support.results_example import EVIL, made

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]

# The kernel's own sockets are made in C: only what Python code would open is refused, and what
# honours a proxy is sent to a port where nobody listens.
NO_NETWORK = """
import os, socket
for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
    os.environ[name] = "http://127.0.0.1:9"
def refuse(*args, **options):
    raise OSError("there is no network")
socket.create_connection = socket.getaddrinfo = refuse
"""
READ = """
import rankdrift
counts = rankdrift.Counts.load("counts.parquet")
curve = rankdrift.Propensities.load("propensities.json")
"""
SHOWN = {
    "counts": "text/html",
    "counts.funnel": "text/html",
    "curve": "text/html",
    "rankdrift.diagnose(counts, curve='loglog')": "text/html",
    "curve.ratio(10, 1)": "text/html",
    "curve.plot()": "image/svg+xml",
    "counts.plot()": "image/svg+xml",
    "counts.funnel.plot()": "image/svg+xml",
}
# Names of languages, which nobody fetches.
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each line of SHOWN gives, by kind, in a kernel without a network."""
    folder = tmp_path_factory.mktemp("notebook")
    made().counts.save(folder / "counts.parquet")
    made().curve.save(folder / "propensities.json")
    cells = [nbformat.v4.new_code_cell(code) for code in (NO_NETWORK, READ, *SHOWN)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(folder))
    last = {cell.source: cell.outputs[-1].data for cell in notebook.cells if cell.outputs}
    return {code: last[code] for code in SHOWN}


def test_results_are_tables_and_charts_are_pictures(outputs):
    for code, kind in SHOWN.items():
        assert kind in outputs[code], code
        assert len(outputs[code]["text/plain"]) < 400, code
        assert {*re.findall(r"https?://[^\s\"'<>)]+", str(outputs[code]))} <= NAMESPACES, code
        assert "<script" not in outputs[code][kind], code


def test_a_browser_draws_them_without_asking_anybody(outputs, tmp_path):
    from playwright.sync_api import sync_playwright

    shown = [outputs[code][kind] for code, kind in SHOWN.items()]
    page_file = tmp_path / "notebook.html"
    page_file.write_text(
        "<!DOCTYPE html><meta charset=utf-8>" + "".join(f"<div>{one}</div>" for one in shown),
        encoding="utf-8",
    )
    path = find_browser()
    if path is None:
        pytest.fail("These tests need a browser: .venv/bin/python tools/find_browser.py brings one")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append("a script ran") or dialog.dismiss())
        page.goto(page_file.as_uri())
        assert requests == [page_file.as_uri()]
        assert complaints == []
        charts = page.locator("svg")
        assert charts.count() == list(SHOWN.values()).count("image/svg+xml")
        for chart in charts.all():
            box = chart.bounding_box()
            assert box["width"] > 300 and box["height"] > 100
            # Lines, areas or bars that have a size, and words.
            sizes = chart.locator("path").evaluate_all(
                "paths => paths.map(p => { const b = p.getBBox(); return b.width * b.height; })"
            )
            assert max(sizes) > 1_000
            assert "Rank" in chart.text_content() or "rows" in chart.text_content().lower()
        assert EVIL in page.text_content("body")  # as text
        browser.close()
