"""Mutants: what is changed and what is left alone, and that tests are told apart from luck."""

import ast
import os
import textwrap
import tomllib

import mutants
import pytest

CODE = '''
from math import floor


def kind(n: int = 3, *, wide: bool = True) -> str:
    """Words: 1 + 1."""
    if n < 2 and not wide:
        raise ValueError(f"{n + 1} is no number.")
    total = sum(sorted([n, 2.5], key=abs))
    total += max(n, 7)
    check(pow(n, 2))
    return "a" + "b" if total > 0 else str(floor(total))
'''


def changes(source):
    return {str(one).split("  ", 1)[1] for one in mutants.mutants("m.py", textwrap.dedent(source))}


def test_what_is_changed():
    found = changes(CODE)
    for expected in (
        "n < 2  ->  n <= 2", "n < 2  ->  n >= 2", "n < 2 and (not wide)  ->  n < 2 or not wide",
        "not wide  ->  wide", "2.5  ->  5.0", "total += max(n, 7)  ->  total -= max(n, 7)",
        "total += max(n, 7)  ->  pass", "max  ->  min", "7  ->  8", "pow(n, 2)  ->  pow(2, n)",
        "check(pow(n, 2))  ->  pass", "total > 0  ->  total >= 0", "3  ->  4", "True  ->  False",
    ):  # fmt: skip
        assert expected in found


def test_what_is_left_alone():
    """Words, annotations, imports, decorators; keywords that change nothing, and the order
    of what max is of."""
    found = changes(CODE)
    old = {one.split("  ->  ")[0] for one in found}
    assert not old & {"n + 1", "1 + 1", "'a' + 'b'", "1", "max(n, 7)"}
    assert not changes("from a import min\n@deco(1 + 1)\ndef f(x: Literal[3]) -> Literal[4]: ...")
    assert not changes("for a, b in zip(x, strict=True): pass")


def test_each_mutant_is_another_program_and_runs():
    every = mutants.mutants("m.py", CODE)
    sources = [one.source for one in every]
    plain = ast.unparse(ast.parse(CODE))
    assert len(set(sources)) == len(sources) and plain not in sources
    for source in sources:
        compile(source, "m.py", "exec")


def test_every_room_has_files_and_tests_that_there_are():
    for room in mutants.ROOMS.values():
        for words in room.files.split():
            assert list(mutants.PACKAGE.glob(words))
        for test in room.tests.split():
            assert (mutants.ROOT / "tests" / test).is_file()


def test_marks_of_plugins_that_mutants_are_tried_without_are_known():
    """Tests are marked for xdist, which is left out; a mark that nobody knows stops them all."""
    assert "no:xdist" in mutants.OPTIONS
    settings = tomllib.loads((mutants.ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    known = [mark.split(":")[0] for mark in settings["ini_options"]["markers"]]
    assert "xdist_group" in known


def test_a_sample_is_the_same_for_the_same_seed():
    one, same, other = (mutants.sampled("auc", 5, seed) for seed in (1, 1, 2))
    assert list(map(str, one)) == list(map(str, same)) != list(map(str, other))
    (again,) = mutants.sampled("auc", 5, 1, only=str(one[0]))
    assert str(again) == str(one[0])


def test_a_table():
    lived = {"auc": [None], "gains": []}
    assert mutants.table({"auc": 3, "gains": 2}, lived).splitlines()[2:] == [
        "| auc | 4 | 3 | 1 |", "| gains | 2 | 2 | 0 |", "| **all** | 6 | 5 | 1 |",
    ]  # fmt: skip


@pytest.fixture
def laboratory(monkeypatch, tmp_path):
    """A project of one function, `half`, and its test, which writes where it should not."""
    source = tmp_path / "there"
    package = source / "src" / "rankdrift"
    (source / "tests").mkdir(parents=True)
    package.mkdir(parents=True)
    (source / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    (package / "__init__.py").touch()
    (package / "halving.py").write_text("def half(n):\n    return n / 2\n")
    (source / "tests" / "test_halving.py").write_text(
        "import time\nfrom rankdrift.halving import half\n\n"
        "def test_half():\n    assert half(4) == 2\n\n"
        "def test_end():\n    while half(4) == 4 / 3: time.sleep(0.1)\n"
    )
    monkeypatch.setattr(mutants, "ROOT", source)
    monkeypatch.setattr(mutants, "COPIED", ("src", "tests", "pyproject.toml"))
    place = tmp_path / "laboratory"
    place.mkdir()
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    # Where root's Python is its own, nobody could not run it: mutants are then the one they are of.
    return mutants.Laboratory(place, nobody=os.getuid() == 0 and not mutants.readable())


def mutant_of(laboratory, change):
    every = mutants.mutants(
        "halving.py", (laboratory.copy / "src/rankdrift/halving.py").read_text()
    )
    return next(one for one in every if change in str(one))


def test_a_mutant_is_noticed_and_the_code_is_itself_again(laboratory):
    tests = ["tests/test_halving.py::test_half"]
    assert laboratory.run(tests, 60).passed
    noticed = laboratory.run(tests, 60, mutant_of(laboratory, "n / 2  ->  n * 2"))
    assert noticed.code == 1 and noticed.failing == ["tests/test_halving.py::test_half"]
    assert laboratory.run(tests, 60).passed


def test_a_mutant_that_nothing_notices_lives_and_one_that_does_not_end_is_ended(laboratory):
    tests = ["tests/test_halving.py::test_end"]
    assert laboratory.run(tests, 60, mutant_of(laboratory, "n / 2  ->  n * 2")).passed
    endless = laboratory.run(tests, 3, mutant_of(laboratory, "2  ->  3"))
    assert endless.code is None and not endless.passed


@pytest.mark.skipif(
    os.getuid() != 0 or bool(mutants.readable()),
    reason="only root becomes nobody, and only where nobody may read the Python that runs this",
)
def test_a_mutant_of_root_is_nobody(laboratory):
    test = laboratory.copy / "tests" / "test_writing.py"
    test.write_text(
        "import os, pathlib, pytest\n\n"
        "def test_writing(tmp_path):\n"
        f"    assert os.getuid() == {mutants.NOBODY}\n"
        "    (tmp_path / 'own').write_text('')\n"
        "    with pytest.raises(PermissionError):\n"
        "        pathlib.Path('src/more').write_text('')\n"
    )
    assert laboratory.run(["tests/test_writing.py"], 60).passed
