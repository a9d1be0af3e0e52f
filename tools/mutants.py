"""Are there tests that notice when the code is wrong? make mutants MINUTES=25 SEED=1

A mutant is the code with one thing changed: < for <=, + for -, a condition turned round, a number,
two arguments in each other's place, a statement left out. The fast tests of its room should fail;
where they pass, something is not tested, or the change makes no difference. Prints a table, and
each mutant that lived; exit code 1 if a test fails by itself.

Mutants do strange things, so each is a process of its own in a copy of the project that it cannot
write to, with a home that is thrown away, little time, and as nobody if root starts it.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import gc
import importlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "rankdrift"
COPIED = ("src", "tests", "tools", "docs", "pyproject.toml")
OPTIONS = "-x -q -rfE --tb=no -W ignore -p no:cacheprovider -p no:xdist --hypothesis-seed=0".split()
FAST = "not slow and not spark and not browser and not data"
NOBODY = 65534
# A mutant may take so many times what the tests take, and so many seconds more.
TIMES, SECONDS = 4.0, 15.0
LARGEST_FILE = 2**30
# Imported once, before the processes fork; nothing of rankdrift, which is what differs.
PRELOADED = """pytest _pytest.assertion.rewrite hypothesis numpy numpy.testing scipy.special
    scipy.stats scipy.sparse.linalg scipy.optimize duckdb click rich.console jinja2""".split()


@dataclass(frozen=True)
class Room:
    """Files that belong together (patterns below src/rankdrift), and the tests (below tests) that
    should notice what goes wrong in them, the likeliest first."""

    files: str
    tests: str


ROOMS = {
    "likelihood": Room(
        "estimation/likelihood.py", "oracle/test_likelihood.py oracle/test_estimate.py"
    ),
    "curves": Room("estimation/curves.py", "estimation/test_curves.py oracle/test_estimate.py"),
    "covariance": Room(
        "estimation/covariance.py",
        "oracle/test_estimate.py estimation/test_jackknife.py properties/test_estimate.py",
    ),
    "score test": Room(
        "estimation/score_test.py", "estimation/test_score_test.py diagnosis/test_agreement.py"
    ),
    "part test": Room("estimation/part_test.py", "estimation/test_part_test.py"),
    "choice of a curve": Room(
        "estimation/auto_curve.py",
        "estimation/test_search_of_a_curve.py estimation/test_auto_curve.py",
    ),
    "adjusting": Room("estimation/adjusting.py", "estimation/test_adjusting.py"),
    "levels": Room("estimation/levels.py", "estimation/test_levels.py"),
    "shrinkage": Room("estimation/shrinkage.py", "estimation/test_shrinkage.py"),
    "harvest": Room(
        "harvesting/plan.py harvesting/pairs.py harvesting/ranks.py harvesting/counting.py "
        "harvesting/result.py",
        "engines/test_harvest.py engines/test_splits.py engines/test_singles.py "
        "engines/test_by_day.py",
    ),
    "counts": Room(
        "counts/counts.py counts/funnel.py",
        "counts/test_counts.py counts/test_funnel.py counts/test_overflow.py "
        "counts/test_restricting.py counts/test_checks.py properties/test_counts.py",
    ),
    "gains": Room("ranking/gains.py", "ranking/test_gains.py"),
    "auc": Room("ranking/auc.py", "ranking/test_auc.py"),
    "verdict": Room(
        "diagnosis/verdict.py diagnosis/agreement.py diagnosis/together.py diagnosis/assumption.py",
        "diagnosis/test_agreement.py diagnosis/test_verdict.py diagnosis/test_assumption.py",
    ),
    "diagnosis": Room(
        "diagnosis/diagnosing.py diagnosis/checks/*.py",
        "diagnosis/test_checks.py diagnosis/test_segments.py diagnosis/test_diagnosis.py",
    ),
    "steps": Room("propensities/steps.py", "propensities/test_steps.py"),
    "intervals": Room("propensities/intervals.py", "propensities/test_intervals.py"),
    "inspection page": Room(
        "report/page/inspection.py", "report/test_inspection_page.py cli/test_page.py"
    ),
    "relevance": Room("judging/shrinkage.py", "judging/test_shrinkage.py"),
    "drift": Room(
        "monitoring/drift*.py", "monitoring/test_drift_changes.py monitoring/test_drift.py"
    ),
    "click models": Room(
        "clickmodels/chain.py clickmodels/products.py",
        "clickmodels/test_likelihoods.py clickmodels/test_fitting.py",
    ),
    "posterior": Room(
        "estimation/bayes/*.py",
        "estimation/bayes/test_posterior_by_hand.py estimation/bayes/test_convergence.py "
        "estimation/bayes/test_beta_nodes.py",
    ),
}


# -- what is changed -------------------------------------------------------------------------------

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
REPLACED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "left": "right"}
NAMES |= {new: old for old, new in NAMES.items()}
EITHER_WAY = ("min", "max", "minimum", "maximum", "clip", "hypot", "array_equal", "union1d")
HARMLESS = """strict copy stacklevel frozen eq order slots overwrite_a overwrite_b
    check_finite""".split()  # keywords


@dataclass(frozen=True, eq=False)
class Mutant:
    """The file at `path`, below src/rankdrift, with the node `new` in place of `old`."""

    path: str
    tree: ast.Module
    old: ast.expr | ast.stmt
    new: ast.expr | ast.stmt

    @property
    def source(self) -> str:
        """The whole file."""
        changed = _replace(self.tree, self.old, self.new)
        return ast.unparse(ast.fix_missing_locations(changed))

    def __str__(self) -> str:
        old, new = (_short(ast.unparse(node)) for node in (self.old, self.new))
        return f"{self.path}:{self.old.lineno}  {old}  ->  {new}"


def mutants(path: str, source: str) -> list[Mutant]:
    """All mutants of a file, in its order."""
    tree = ast.parse(source)
    return [Mutant(path, tree, old, new) for old in _changeable(tree) for new in _others(old)]


def sampled(room: str, each: int, seed: int, only: str = "") -> list[Mutant]:
    """Some mutants of a room, the same for the same seed and code; of those that are printed with
    the text `only`."""
    files = sorted({f for words in ROOMS[room].files.split() for f in PACKAGE.glob(words)})
    every = [
        mutant
        for file in files
        for mutant in mutants(str(file.relative_to(PACKAGE)), file.read_text(encoding="utf-8"))
        if only in str(mutant)
    ]
    return random.Random(f"{seed} {room}").sample(every, min(each, len(every)))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:87]}..."


def _changeable(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """Every node that does something: no annotation, no decorator, no word of a message."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Global):
            continue
        if isinstance(node, ast.expr | ast.stmt):
            yield node
        inner: list[ast.AST] = []
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "ctx"):
                continue
            if isinstance(node, ast.If) and name == "test" and _of_types(node.test):
                continue
            values = value if isinstance(value, list) else [value]
            inner += [v for v in values if isinstance(v, ast.AST) and not _harmless(v)]
        waiting += reversed(inner)


def _of_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _harmless(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in HARMLESS


def _others(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """What a node could be instead."""
    match node:
        case ast.Compare(left, ops, comparators):
            for i, op in enumerate(ops):
                for new in COMPARED[type(op)]:
                    yield ast.Compare(left, [*ops[:i], new(), *ops[i + 1 :]], comparators)
        case ast.BinOp(left, op, right) if type(op) in REPLACED and not _text(left, right):
            yield ast.BinOp(left, REPLACED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in REPLACED and not _text(value):
            yield ast.AugAssign(target, REPLACED[type(op)](), value)
            yield ast.Pass()
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield operand
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(float(value)):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.Constant(str(value)) if value in NAMES:
            yield ast.Constant(NAMES[value])
        case ast.Name(name) if name in NAMES:
            yield ast.Name(NAMES[name], node.ctx)
        case ast.Attribute(value, name) if name in NAMES:
            yield ast.Attribute(value, NAMES[name], node.ctx)
        case ast.If(test, body, orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Call(func, [first, second, *rest], keywords) if _swappable(node):
            yield ast.Call(func, [second, first, *rest], keywords)


def _text(*operands: ast.expr) -> bool:
    """Whether one of them is text, so that nothing but + makes sense."""
    return any(
        isinstance(o, ast.JoinedStr) or (isinstance(o, ast.Constant) and isinstance(o.value, str))
        for o in operands
    )


def _swappable(call: ast.Call) -> bool:
    """Whether it matters which of the first two arguments comes first."""
    first, second, *_ = call.args
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
    return name not in EITHER_WAY and not starred and ast.dump(first) != ast.dump(second)


def _replace(node: ast.AST, old: ast.AST, new: ast.AST) -> ast.AST:
    if node is old:
        return new
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(made, name, _replace(value, old, new))
        elif isinstance(value, list):
            parts = [_replace(v, old, new) if isinstance(v, ast.AST) else v for v in value]
            setattr(made, name, parts)
    return made


# -- what comes of it ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """How a run of tests ended: pytest's exit code (None: not in time), what it said, seconds."""

    code: int | None
    said: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no test noticed anything."""
        return self.code == 0

    @property
    def failing(self) -> list[str]:
        """The tests that failed."""
        return re.findall(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", self.said, re.MULTILINE)


class Laboratory:
    """A copy of the project that mutants cannot write to, under a directory of its own."""

    def __init__(self, place: Path, nobody: bool | None = None) -> None:
        self.nobody = os.getuid() == 0 if nobody is None else nobody
        self.copy = place / "project"
        self.scratch = place / "scratch"
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source, self.copy / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, self.copy / name)
        compileall.compile_dir(self.copy / "src", quiet=1)
        place.chmod(0o755)

    def run(self, tests: Sequence[str], limit: float, mutant: Mutant | None = None) -> Trial:
        """Run tests, of `mutant` instead of the code as it is, for no longer than `limit` s."""
        if mutant is None:
            return self._tried(tests, limit)
        file = self.copy / "src" / "rankdrift" / mutant.path
        right = file.read_bytes()
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()
        try:
            file.write_text(mutant.source, encoding="utf-8")
            return self._tried(tests, limit)
        finally:
            file.write_bytes(right)

    def _tried(self, tests: Sequence[str], limit: float) -> Trial:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        if self.nobody:
            os.chown(self.scratch, NOBODY, NOBODY)
        said, start = self.scratch / "said", time.monotonic()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            self._become(tests, said, limit)
        code: int | None = None
        end = start + limit * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # others wait
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.02)
        with suppress(ProcessLookupError):  # whatever it has started goes with it
            os.killpg(child, signal.SIGKILL)
        if code is None:
            os.waitpid(child, 0)
        text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
        return Trial(code, text, time.monotonic() - start)

    def _become(self, tests: Sequence[str], said: Path, limit: float) -> NoReturn:
        """The process that runs the tests: it never returns."""
        code = 70
        # What the parent's libraries have made must not be taken apart here, where their threads
        # are not: neither by the collector nor as modules go.
        gc.freeze()
        kept = dict(sys.modules)
        try:
            os.setsid()
            if self.nobody:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
            resource.setrlimit(resource.RLIMIT_CPU, (int(2 * limit) + 1,) * 2)
            sources = str(self.copy / "src")
            real = [str(ROOT / name) for name in COPIED]  # of which the copy is to be used
            paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            others = [p for p in paths if p and p not in real]
            own = {name: str(self.scratch) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
            os.environ.update(
                own,
                PYTHONPATH=os.pathsep.join([sources, *others]),
                PYTHONDONTWRITEBYTECODE="1",
                HYPOTHESIS_STORAGE_DIRECTORY=str(self.scratch / "hypothesis"),
            )
            tempfile.tempdir = None
            sys.dont_write_bytecode = True
            sys.path[:] = [sources, *(p for p in sys.path if p not in real)]
            for name in kept:
                if name.split(".")[0] == "rankdrift":
                    del sys.modules[name]
            os.chdir(self.copy)
            import pytest
            from hypothesis import Phase, settings

            # A failure is enough: no smaller example of it, and none for being slow.
            settings.register_profile(
                "mutants", deadline=None, database=None, phases=(Phase.explicit, Phase.generate)
            )
            settings.load_profile("mutants")
            code = int(pytest.main([*OPTIONS, f"--basetemp={self.scratch / 'made'}", *tests]))
        except BaseException as error:
            print(repr(error))
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)


def readable() -> str:
    """What nobody may not read though tests need it, if root starts them; empty if all is well."""
    if os.getuid():
        return ""
    for needed in (os.__file__, importlib.import_module("numpy").__file__ or ""):
        for folder in Path(needed).resolve().parents:
            if not folder.stat().st_mode & 0o001:
                return str(folder)
    return ""


def breed(rooms: Sequence[str], each: int, minutes: float, seed: int, only: str = "") -> int:
    """Try mutants of every room in turn until the time is up; print what came of them."""
    end = time.monotonic() + 60 * minutes
    made = {room: those for room in rooms if (those := sampled(room, each, seed, only))}
    rooms = list(made)
    lived: dict[str, list[Mutant]] = {room: [] for room in rooms}
    killed = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        laboratory = Laboratory(Path(place))
        tests, limits, broken = {}, {}, []
        for room in rooms:
            files = [f"tests/{name}" for name in ROOMS[room].tests.split()]
            trial = laboratory.run(["-m", FAST, "--maxfail=1000", *files], 600)
            broken += trial.failing
            if not trial.passed and not trial.failing:
                print(f"The tests of {room} cannot be run:\n{trial.said[-2000:]}")
                return 1
            left_out = [f"--deselect={name}" for name in trial.failing]
            tests[room], limits[room] = ["-m", FAST, *left_out, *files], TIMES * trial.seconds
            print(f"{room}: {trial.seconds:.1f} s without a mutant", flush=True)
        for number in range(each):
            for room in rooms:
                if number >= len(made[room]) or time.monotonic() > end:
                    continue
                mutant = made[room][number]
                trial = laboratory.run(tests[room], limits[room] + SECONDS, mutant)
                if trial.passed:
                    lived[room].append(mutant)
                else:
                    killed[room] += 1
                by = (trial.failing or [f"code {trial.code}"])[0].split("::")[-1]
                print(f"{'LIVED' if trial.passed else by}: {mutant}", flush=True)
    print(table(killed, lived))
    for mutant in chain(*lived.values()):
        print(f"lived: {mutant}")
    if broken:
        print("These tests fail by themselves, and were left out:", *broken, sep="\n  ")
    return int(bool(broken))


def table(killed: Mapping[str, int], lived: Mapping[str, Sequence[Mutant]]) -> str:
    """How many mutants were made, killed and lived, by room, in Markdown."""
    rows = [(room, killed[room], len(those)) for room, those in lived.items()]
    rows.append(("**all**", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = [f"| {room} | {dead + alive} | {dead} | {alive} |" for room, dead, alive in rows]
    return "\n".join(["| room | made | killed | lived |", "|---|---:|---:|---:|", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}; all, if none is named")
    parser.add_argument("--each", type=int, default=14, help="mutants a room, at the most")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="such as are printed with this text")
    given = parser.parse_args()
    unknown = [room for room in given.rooms if room not in ROOMS]
    if unknown:
        parser.error(f"no such room: {', '.join(unknown)}. There are: {', '.join(ROOMS)}")
    hidden = readable()
    if hidden:
        sys.exit(
            f"Mutants run as nobody, who may not look into {hidden}. Start as another user; or, if "
            "it is Python that is there, with one that everybody may read, in an environment of "
            "its own:\n    rm -r .venv && make mutants PYTHON=/usr/bin/python3"
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads and forks do not go together
    for name in PRELOADED:
        importlib.import_module(name)
    rooms = given.rooms or list(ROOMS)
    sys.exit(breed(rooms, given.each, given.minutes, given.seed, given.only))


if __name__ == "__main__":
    main()
