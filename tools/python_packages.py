"""Python's packages into an environment: by uv, which takes a quarter of pip's processor time, and
by pip where uv cannot be had or does not get through."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

SILENCE = 30  # seconds, after which a line says that it goes on
# What pip is told of indexes, as uv calls it: uv does not read pip's settings.
INDEXES = {
    "index-url": "--index-url", "extra-index-url": "--extra-index-url",
    "find-links": "--find-links", "trusted-host": "--allow-insecure-host",
}  # fmt: skip
VARIABLES = {"cert": "SSL_CERT_FILE", "client-cert": "SSL_CLIENT_CERT", "proxy": "ALL_PROXY"}


def install(python: Path, *packages: str, beside: subprocess.Popen[bytes] | None = None) -> None:
    """With a line for each large package, so that nobody wonders whether it still goes on; it stops
    when what goes on beside it fails, which has said why. Nothing is compiled ahead: most of what
    comes along is never imported, and Python compiles the rest when it is."""
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as folder:
        # Spark comes as source, of which a package is made first: one that is not compressed, as
        # it is unpacked at once.
        settings = Path(folder) / "stored.cfg"
        settings.write_text("[bdist_wheel]\ncompression = stored\n")
        environment = os.environ | {"DIST_EXTRA_CONFIG": str(settings)}
        uv = _uv(python, pip)
        if uv:
            options, variables = as_uv(pip_settings(pip))
            command = [*uv, "pip", "install", "--no-progress", "--python", str(python)]
            if not _run([*command, *options, *packages], environment | variables, beside)[0]:
                return
            print("  uv did not get through: with pip, then, which takes longer", flush=True)
        command = [*pip, "install", "--no-compile", "--progress-bar", "off", *packages]
        failed, said = _run(command, environment, beside)
    if failed:
        last = "".join(said[-15:])
        sys.exit(f"{last}pip install {' '.join(packages)} failed: the lines above say why.")


def pip_settings(pip: list[str]) -> dict[str, str]:
    """What pip's files and variables say, by name; variables win."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
    lines = [line.partition("=") for line in listed.splitlines() if "=" in line]
    lines.sort(key=lambda line: line[0].startswith(":env:"))
    return {name.rpartition(".")[2]: ast.literal_eval(value) for name, _, value in lines}


def as_uv(settings: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """uv's options and variables for the indexes that pip would ask, of all of which the newest
    version is taken, as pip does."""
    options = [
        word
        for name, option in INDEXES.items()
        for value in settings.get(name, "").split()
        for word in (option, value)
    ]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    variables = {VARIABLES[name]: value for name, value in settings.items() if name in VARIABLES}
    return [*options, "--index-strategy", "unsafe-best-match"], variables


def _uv(python: Path, pip: list[str]) -> list[str]:
    """How it is called, once it is there; nothing if it cannot be had."""
    uv = [str(python), "-m", "uv"]

    def there() -> bool:
        return subprocess.run([*uv, "--version"], capture_output=True).returncode == 0

    if not there():
        subprocess.run([*pip, "install", "--quiet", "uv"], capture_output=True)
    return uv if there() else []


def _run(
    command: list[str], environment: dict[str, str], beside: subprocess.Popen[bytes] | None
) -> tuple[int, list[str]]:
    """Its exit code, and all it said; large packages are told of as they come."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env=environment,
    )  # fmt: skip
    lines: Queue[str] = Queue()
    Thread(target=_read, args=(process, lines), daemon=True).start()
    said: list[str] = []
    while not said or said[-1]:  # the end is an empty line
        if beside and beside.poll():
            process.terminate()
            sys.exit(beside.returncode)
        try:
            said.append(lines.get(timeout=SILENCE))
        except Empty:
            print("  (still going on)", flush=True)
            continue
        told = said[-1].split()
        large = told[:1] == ["Downloading"] and said[-1].endswith((" MB)\n", "MiB)\n"))
        if large or told[:1] in (["Building"], ["Installed"]):
            print(f"  {said[-1].strip()}", flush=True)
        elif told[:2] == ["Installing", "collected"]:
            print(f"  Unpacking {len(told) - 3} packages", flush=True)
    return process.wait(), said


def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put("")
