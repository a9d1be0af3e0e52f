import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rankdrift.core import files
from rankdrift.core.errors import CannotWrite
from rankdrift.core.files import (
    folder_for,
    read_text,
    remove_leftovers,
    replacing,
    together,
    write_text,
)


def names(directory):
    return sorted(os.listdir(directory))


def python(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def test_writes_a_new_file_and_the_directories_above_it(tmp_path):
    write_text(tmp_path / "a" / "b" / "new.json", "é\n")
    assert (tmp_path / "a" / "b" / "new.json").read_bytes() == "é\n".encode()
    assert names(tmp_path / "a" / "b") == ["new.json"]


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    "address",
    ["s3://me:secret@bucket/a/c.json", "https://host/c.json?key=secret", "file:///c.json"],
)
def test_an_address_is_no_place_to_write_to(address, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (lambda path: write_text(path, "x"), folder_for):
        with pytest.raises(
            CannotWrite, match="it is an address, and what is written stays"
        ) as said:
            write(kind(address))
        assert f"Cannot write {address.split(':')[0]}://" in str(said.value)
        assert "secret" not in str(said.value)
    assert not names(tmp_path)


def test_a_name_with_a_colon_is_a_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("a:b/x", "12:/x", "./s3:x", "c:/x"):  # C:/ is a disk of Windows
        write_text(place, "x")
        assert Path(place).read_text() == "x"


def test_a_folder_is_made_or_told_why_not(tmp_path):
    assert folder_for(tmp_path / "a" / "b").is_dir()
    write_text(tmp_path / "file", "x")
    with pytest.raises(CannotWrite, match="is a file, not a directory"):
        folder_for(tmp_path / "file" / "b")


def test_reads_text_that_has_an_end(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes("é\r\nb\rc\n".encode())
    assert read_text(path) == read_text(path, 8) == path.read_text(encoding="utf-8") == "é\nb\nc\n"
    assert read_text(os.devnull) == ""
    for args in ((path, 7), ("/dev/zero",), ("/dev/zero", 1 << 40)):
        with pytest.raises(OSError, match="it has more than"):
            read_text(*args)


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with replacing(path) as part:
        assert part.parent == path.parent
        assert part.name.startswith(".") and part.name.endswith(".part")
        part.write_text("ne")
        assert path.read_text() == "old"
        part.write_text("new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("broken", ["one", "two", "three", "disk"])
def test_files_of_one_result_change_together_or_not_at_all(tmp_path, monkeypatch, broken):
    """Whichever of them cannot be put in its place, or written at all."""
    (tmp_path / "one").write_text("old one")
    (tmp_path / "three").write_text("old three")

    def write():
        with together():
            for name in ("one", "two", "three"):
                write_text(tmp_path / name, f"new {name}")
            if broken == "disk":
                write_text(tmp_path / "one" / "below a file", "")

    def replace(source, target, of=os.replace):
        if Path(target).name == broken and Path(source).read_text().startswith("new"):
            raise PermissionError(13, "no", str(target))
        of(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", replace)
        with pytest.raises(CannotWrite, match="is unchanged"):
            write()
    assert names(tmp_path) == ["one", "three"]
    assert (tmp_path / "one").read_text() == "old one"
    assert (tmp_path / "three").read_text() == "old three"
    broken = None
    write()
    assert [(tmp_path / name).read_text() for name in names(tmp_path)] == [
        "new one", "new three", "new two",
    ]  # fmt: skip


def test_two_at_once_do_not_meet(tmp_path):
    with replacing(tmp_path / "out") as one, replacing(tmp_path / "out") as two:
        assert one != two
        one.write_text("1")
        two.write_text("2")
    assert (tmp_path / "out").read_text() == "1"


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600


def test_a_directory_is_not_a_file(tmp_path):
    with pytest.raises(CannotWrite, match=r"Is a directory.*Give the name of a file"):
        write_text(tmp_path, "x")
    assert names(tmp_path) == []


def test_the_root_is_not_a_file():
    with pytest.raises(CannotWrite, match="Is a directory"):
        write_text("/", "x")


@pytest.mark.parametrize("below", ["out", "deeper/out"])
def test_a_file_is_not_a_directory(tmp_path, below):
    (tmp_path / "file").write_text("old")
    with pytest.raises(CannotWrite, match="is a file, not a directory: choose another path"):
        write_text(tmp_path / "file" / below, "x")
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with a path")
def test_a_pipe_is_left_alone(tmp_path):
    pipe = tmp_path / "out"
    os.mkfifo(pipe)
    with pytest.raises(CannotWrite, match=r"a device or a pipe\. Choose a file"):
        write_text(pipe, "x")
    assert pipe.is_fifo() and names(tmp_path) == ["out"]


def test_a_place_one_may_not_write_to(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", source)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(CannotWrite, match=r"out: Permission denied\. .*unchanged.*may write to"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_trouble_with_another_file_is_not_ours(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "out"):
        (tmp_path / "input").read_text()
    assert names(tmp_path) == []


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    run = python(
        """
        import resource, sys
        from rankdrift.core.errors import CannotWrite
        from rankdrift.core.files import write_text
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_text(sys.argv[1], "x" * 100_000)
        except CannotWrite as error:
            print(error)
        """,
        path,
    )
    said, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (0, "")
    assert "File too large" in said and "unchanged" in said and "choose another place" in said
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_killed_run_leaves_the_old_file_and_its_leftover_goes_next_time(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    run = python(
        """
        import sys, time
        from rankdrift.core.files import replacing
        with replacing(sys.argv[1]) as part:
            part.write_text("half of the new")
            print("writing", flush=True)
            time.sleep(600)
        """,
        path,
    )
    try:
        assert run.stdout.readline() == "writing\n"
        assert remove_leftovers(tmp_path) == []  # it is still alive
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()
    assert path.read_text() == "old"
    assert len(names(tmp_path)) == 2
    write_text(path, "new")
    assert names(tmp_path) == ["out"] and path.read_text() == "new"


def test_only_our_own_leftovers_are_removed(tmp_path):
    others = [".download.part", "movie.part", ".rankdrift-notes.part", ".rankdrift-1-2-3.part"]
    for name in others:
        (tmp_path / name).write_text("keep")
    elsewhere = tmp_path / ".rankdrift-00000000-1-89abcdef.part"  # of a run on another machine
    elsewhere.write_text("may be being written")
    assert remove_leftovers(tmp_path) == []
    os.utime(elsewhere, (0, 0))
    assert remove_leftovers(tmp_path) == [elsewhere]
    assert names(tmp_path) == sorted(others)


def test_no_directory_no_leftovers(tmp_path):
    assert remove_leftovers(Path(tmp_path / "none")) == []
