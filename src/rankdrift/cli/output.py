"""Places to write to, looked at before the long work starts."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rankdrift.core.artefacts import CHART_ENDINGS, chart_ending
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
    """Raise BadOption if writing there could replace an input, or would become a part of one.

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
    inputs, folder = list(inputs), os.path.isdir(path)
    if os.path.exists(path):
        given = [name for name in more if name and os.path.exists(name)]
        for name in [*_files(inputs, format), *given]:
            if os.path.samefile(os.path.dirname(name) if folder else name, path):
                what = "has the input in it" if folder else "is also an input"
                raise BadOption(
                    f"{path!r} {what}, which would be lost. Choose another place for it."
                )
    _refuse_within(path, inputs)


def _refuse_within(path: str, inputs: Iterable[str]) -> None:
    """Of a folder all files are read, but for those whose names begin with a dot or underscore;
    pages and pictures are taken for no log."""
    place = Path(os.path.abspath(path))
    for name in inputs:
        inside = Path(os.path.abspath(name)) if os.path.isdir(name) else None
        if not inside or inside not in place.parents or place.suffix in CHART_ENDINGS:
            continue
        if not any(part.startswith((".", "_")) for part in place.relative_to(inside).parts):
            raise BadOption(
                f"{path!r} is in the folder {name!r}, all of which is read: next time it would be "
                "a part of that. Choose a place outside it, such as "
                f"{outside(place.name, [name])!r}, or name the files of the log by a pattern."
            )


def outside(name: str, logs: Iterable[str]) -> str:
    """Where a result of that name can go: here or, if that is in a folder that is read as a whole,
    beside the folder."""
    for folder in filter(os.path.isdir, logs):
        whole = os.path.abspath(folder)
        if os.path.commonpath([whole, os.path.abspath(name)]) == whole:
            return os.path.join(os.path.relpath(os.path.dirname(whole)), name)
    return name


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
