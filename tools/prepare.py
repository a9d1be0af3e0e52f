"""What a target of make needs, brought into .venv: python3 tools/prepare.py demo

Needs nothing but Python itself, and says what it is doing. It is run by make before every target
and has nothing to do when all is there; everything is looked at again when pyproject.toml changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import python_packages
import system_packages

OLDEST = (3, 11)
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PROJECT = ROOT / "pyproject.toml"
EXTRAS = {
    "demo": "rank",
    "quick": "test,lint,rank,xgboost",
    "test": "test,lint,docs,spark,rank,xgboost",
    "lint": "lint",
    "docs": "docs,rank",  # its pictures come from a run, with rankers
    "picture": "lint,rank",
    "bench": "bench,spark,rank,xgboost",
}
BROWSER = ("test",)  # targets that need one
TRAINING = ("rank", "xgboost")  # extras that need the system's OpenMP
OPENMP, OPENMP_PACKAGE = "libgomp.so.1", "libgomp1"


def prepare(target: str) -> None:
    extras = EXTRAS[target]
    ready = VENV / f".ready-{target}"
    state = hashlib.sha256(f"{VERSION} {extras}\n{PROJECT.read_text()}".encode()).hexdigest()
    if not (runs() and ready.is_file() and ready.read_text() == state):
        if not runs():
            make_environment()
        if not set(TRAINING).isdisjoint(extras.split(",")):
            bring_openmp()
        install(target, extras)
        ready.write_text(state)
    elif target in BROWSER and (code := find_browser().wait()):
        sys.exit(code)


def install(target: str, extras: str) -> None:
    """The browser is looked for while all else is installed."""
    browser = None
    if target in BROWSER:
        if not _quietly("import playwright"):
            print("Installing Playwright, to look for a browser before all else ...", flush=True)
            import tomllib  # not there in a Python that is too old, which is told so first

            wanted = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["test"]
            python_packages.install(PYTHON, *(w for w in wanted if w.startswith("playwright")))
        browser = find_browser()
    print(f"Installing what `make {target}` uses into .venv ...", flush=True)
    python_packages.install(PYTHON, "-e", f"{ROOT}[{extras}]", beside=browser)
    if browser and browser.wait():
        sys.exit(browser.returncode)


# -- Python ----------------------------------------------------------------------------------------


def check_python() -> None:
    """Go on with a Python that is new enough, if there is one."""
    if sys.version_info >= OLDEST:
        return
    for minor in range(29, OLDEST[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, *sys.argv])
    sys.exit(
        f"rankdrift needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}. "
        "Install a newer one, or name it: make PYTHON=/path/to/python3.12 ..."
    )


def runs() -> bool:
    """Whether there is an environment, with pip, of the Python that runs this."""
    ask = "import sys, pip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == VERSION


def make_environment() -> None:
    """By whichever way works: Debian and Ubuntu keep half of `python3 -m venv` in a package."""
    package = f"python{VERSION}-venv"
    print(f"Making an environment in .venv with Python {VERSION} ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    if importlib.util.find_spec("virtualenv"):
        made = here("-m", "virtualenv", "--quiet", str(VENV))
    elif importlib.util.find_spec("ensurepip") or system_packages.install(package):
        made = here("-m", "venv", str(VENV))
    else:
        made = here("-m", "venv", "--without-pip", str(VENV)) and unpack_pip()
    if not (made and runs()):
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(
            f"{sys.executable} -m venv cannot make an environment. On Debian and Ubuntu, install "
            f"the rest of it as root and try again:\n    apt-get install {package}\n"
            f"It was not installed for you, as {system_packages.why_not()}."
        )


def unpack_pip() -> bool:
    """pip, for those who may not install the package that has it."""
    folder = VENV / "packages"
    if not system_packages.unpack("python3-pip-whl", folder):
        return False
    wheel = next(folder.rglob("pip-*.whl"))
    done = subprocess.run([str(PYTHON), f"{wheel}/pip", "install", "--quiet", "pip"])
    return done.returncode == 0


def here(*words: str) -> bool:
    return subprocess.run([sys.executable, *words], timeout=300).returncode == 0


# -- what is not Python's --------------------------------------------------------------------------


def bring_openmp() -> None:
    """LightGBM's wheel does not bring the library it runs its threads with."""
    loads = f"import ctypes; ctypes.CDLL({OPENMP!r})"
    if sys.platform != "linux" or _quietly(loads):
        return
    if system_packages.install(OPENMP_PACKAGE) and _quietly(loads):
        return
    folder = VENV / "packages"
    if system_packages.unpack(OPENMP_PACKAGE, folder):
        library = next(folder.rglob(OPENMP))
        site = next((VENV / "lib").glob("python*/site-packages"))
        # Loaded once by its path, it is there for whoever asks for it by name.
        (site / "openmp.pth").write_text(f"import ctypes; ctypes.CDLL({str(library)!r})\n")
        if _quietly(loads):
            return
    sys.exit(
        f"Rankers are trained with LightGBM, which needs {OPENMP}. On Debian and Ubuntu, install "
        f"it as root and try again:\n    apt-get install {OPENMP_PACKAGE}\n"
        f"It was not installed for you, as {system_packages.why_not()}."
    )


def _quietly(code: str) -> bool:
    return subprocess.run([str(PYTHON), "-c", code], capture_output=True).returncode == 0


def find_browser() -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(PYTHON), str(ROOT / "tools" / "find_browser.py")])


if __name__ == "__main__":
    check_python()
    if sys.argv[1:2] == [] or sys.argv[1] not in EXTRAS:
        sys.exit(f"usage: python3 tools/prepare.py {'|'.join(EXTRAS)}")
    prepare(sys.argv[1])
