"""The browser that opens the report in the tests: found, or brought here.

    .venv/bin/python tools/find_browser.py

prints where it is. One on PATH comes first, then Playwright's own download, then the system's
packages. Whichever it is must start: a browser whose libraries are missing is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import system_packages

NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge",
)  # fmt: skip
DRIVER_PACKAGE = "libatomic1"  # what Playwright's driver lacks on a bare Debian
STARTING, DOWNLOADING, CONNECTING = 60, 300, 10  # seconds at most


def find_browser() -> str | None:
    """The first that starts, on PATH or of Playwright."""
    return on_path() or next(filter(starts, _downloaded()), None)


def on_path() -> str | None:
    return next(filter(starts, filter(None, map(shutil.which, NAMES))), None)


def starts(path: str) -> bool:
    """Whether it shows an empty page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}",
            "--dump-dom", "about:blank",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=STARTING)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0 and "<html" in done.stdout


def _downloaded() -> Iterator[str]:
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as driver:
            path = driver.chromium.executable_path
    except Exception:  # not installed, or it does not start: bring_browser says which
        return
    if os.path.exists(path):
        yield path


def bring_browser() -> str:
    """One that starts, whatever it takes; ends the program with what to do if there is no way."""
    missing = _playwright("--version")
    if "libatomic" in missing and system_packages.install(DRIVER_PACKAGE):
        missing = _playwright("--version")
    found = on_path() if missing else find_browser()
    tried = []
    if missing:
        tried.append(f"Playwright, which drives it, does not start: {missing}.")
    elif not found:
        print("Downloading a browser with Playwright, as none on PATH starts ...", flush=True)
        failed = _playwright("install", "--no-shell", "chromium")
        tried.append(f"Playwright's own: {failed or 'does not start: it may lack libraries'}.")
        found = find_browser()
    if not found:
        tried.insert(0, f"None of these is on PATH and starts: {', '.join(NAMES)}.")
        if system_packages.may_install() is None:
            tried.append(f"The system's packages: {system_packages.why_not()}.")
        else:
            # Playwright's own may be here by now and lack only libraries.
            system_packages.install("chromium") or _playwright("install-deps", "chromium")
            tried.append("The system's packages: none that starts.")
            found = on_path() if missing else find_browser()
    if found and not missing:
        return found
    packages = (["chromium"] if not found else []) + ([DRIVER_PACKAGE] if missing else [])
    sys.exit(
        "The tests open the report in a browser, and that cannot be done here.\n  "
        + "\n  ".join(tried)
        + f"\nInstall what is missing as root and try again. On Debian:\n"
        f"    apt-get install {' '.join(packages)}\n"
        "Elsewhere, where Playwright can download:\n"
        f"    {sys.executable} -m playwright install --with-deps chromium\n"
        "Or run the tests that need no browser: make quick"
    )


def _playwright(*words: str) -> str:
    """What went wrong, in one line."""
    command = [sys.executable, "-m", "playwright", *words]
    waiting = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": str(1000 * CONNECTING)}
    try:
        done = subprocess.run(
            command, env=os.environ | waiting, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=DOWNLOADING,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not done after {DOWNLOADING} seconds"
    if done.returncode == 0:
        return ""
    lines = done.stdout.splitlines() or [f"{' '.join(words)} failed"]
    return next((line for line in lines if "error" in line.lower()), lines[-1]).strip()


if __name__ == "__main__":
    print(f"The browser of the tests: {bring_browser()}")
