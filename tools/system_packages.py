"""Packages of Debian and Ubuntu: installed where we may, unpacked beside the project where not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ASKING, FETCHING, INSTALLING = 10, 120, 900  # seconds at most
PATIENCE = [
    "-o", "DPkg::Lock::Timeout=60", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20",
]  # fmt: skip


def may_install() -> list[str] | None:
    """The words to put before a command of root's, if there is a way without a password."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _works(["sudo", "-n", "true"], ASKING):
        return ["sudo", "-n"]
    return None


def why_not() -> str:
    if not shutil.which("apt-get"):
        return "there is no apt-get here"
    if may_install() is not None:
        return "apt-get could not do it: the lines above say why"
    return "you are neither root nor may you use sudo without a password"


def install(*packages: str) -> bool:
    """Whether they could be installed."""
    root = may_install()
    if root is None:
        return False
    print(f"Installing {', '.join(packages)} from the system's packages ...", flush=True)
    get = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *PATIENCE]
    _works([*get, "update"], FETCHING)  # what was known before may do
    return _works([*get, "install", "-y", "--no-install-recommends", *packages], INSTALLING)


def unpack(package: str, folder: Path) -> bool:
    """Whether its files are now under the folder, for which nobody needs to be root."""
    if not shutil.which("apt-get"):
        return False
    print(f"Unpacking {package} of the system's packages into {folder} ...", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    lists = folder / "apt"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={lists}"]
    if not _works(["apt-get", *PATIENCE, "download", package], FETCHING, folder):
        _works(["apt-get", *PATIENCE, *own, "update"], FETCHING, folder)
        _works(["apt-get", *PATIENCE, *own, "download", package], FETCHING, folder)
    shutil.rmtree(lists)
    files = list(folder.glob(f"{package}_*.deb"))
    return bool(files) and _works(["dpkg-deb", "-x", str(files[0]), str(folder)], FETCHING)


def _works(command: list[str], seconds: int, folder: Path | None = None) -> bool:
    """Run it without its talk; what it said is shown when it failed."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command)}: not done after {seconds} seconds, given up")
        return False
    except OSError as error:
        print(f"{' '.join(command)}: {error}")
        return False
    if done.returncode and command[:2] != ["sudo", "-n"]:
        print("\n".join(done.stdout.splitlines()[-3:]))
    return done.returncode == 0
