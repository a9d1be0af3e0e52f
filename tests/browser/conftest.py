"""One browser for the tests of a file."""

import pytest
from find_browser import find_browser


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright  # a second, which only one worker needs

    path = find_browser()
    if path is None:
        pytest.fail("These tests need a browser: .venv/bin/python tools/find_browser.py brings one")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
