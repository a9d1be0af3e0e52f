"""Places to write to, looked at before the long work starts."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rankdrift.core.artefacts import chart_ending
from rankdrift.core.errors import BadOption, RankdriftError
from rankdrift.core.files import replacing
from rankdrift.log.sources import FORMATS, Files, Table, find


class _Fine(Exception):
    pass


def check_file(path: str) -> None:
    """Raise CannotWrite now rather than after the work."""
    with suppress(_Fine), replacing(path) as part:
        part.touch()
        raise _Fine


def check_chart(path: str) -> None:
    """Raise now if no chart can be written there."""
    chart_ending(path)
    check_file(path)


def check_folder(path: str) -> None:
    """Raise CannotWrite now if no file can be written to this folder later."""
    folder = Path(path)
    if folder.suffix == ".parquet" and not folder.is_dir():
        raise BadOption(f"With --by day, -o is a folder of files, one a day, but {path!r} is not.")
    check_file(str(folder / "YYYY-MM-DD.parquet"))


def refuse_input(
    path: str, inputs: Iterable[str], format: str | None = None, *, more: Iterable[str | None] = ()
) -> None:
    """Raise BadOption if writing there could replace an input.

    Parameters
    ----------
    path
        The file or folder that is to be written.
    inputs
        A log: files, folders and patterns.
    format
        Of the log, where names do not say.
    more
        Other files that are read.
    """
    folder = os.path.isdir(path)
    if not folder and not os.path.exists(path):
        return
    given = [name for name in more if name and os.path.exists(name)]
    for name in [*_files(inputs, format), *given]:
        if os.path.samefile(os.path.dirname(name) if folder else name, path):
            what = "has the input in it" if folder else "is also an input"
            raise BadOption(f"{path!r} {what}, which would be lost. Choose another place for it.")


def _files(inputs: Iterable[str], format: str | None) -> list[str]:
    """The files that these names stand for, as far as they are files."""
    with suppress(RankdriftError):
        of_files = format if format in FORMATS else None  # not one of a log, such as ubi
        found = find(list(inputs), format=of_files, every=format is not None)
        paths = (
            found.paths
            if isinstance(found, Files)
            else [found.path]
            if isinstance(found, Table)
            else []
        )
        return [path for path in paths if os.path.exists(path)]
    return []
