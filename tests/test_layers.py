"""The rules of the house, checked in the code itself: who may import whom, and which files may be.

`python tests/test_layers.py` prints what breaks them, in all packages.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankdrift.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rankdrift"
TESTS = ROOT / "tests"
CHARTS = "rankdrift.charts"
FLAT = {"__init__.py", "pipeline.py", "py.typed"}
LONGEST = 600  # lines
# What a package that shows results may not call: the steps that find them.
STEPS = {"harvest", "inspect", "estimate", "diagnose", "compare", "train", "evaluate", "fit"}
# Loaded by name: the verbs, and what `python -m` runs.
ENTRIES = {"rankdrift.cli.__main__", *(f"rankdrift.cli.{module}" for module, _ in VERBS.values())}


def modules() -> dict[str, Path]:
    """Every module by its name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def package(module: str) -> str:
    """`charts` of `rankdrift.charts.style`; `pipeline` of `rankdrift.pipeline`."""
    return module.split(".")[1] if "." in module else ""


def imported(tree: ast.AST) -> Iterator[tuple[str, str, list[ast.AST]]]:
    """(module, name or "", the nodes around it) of every import, wherever in the code it is."""

    def visit(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[str, str, list[ast.AST]]]:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", around) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name, around) for alias in node.names)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, [*around, node])

    return visit(tree, [])


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def targets(path: Path) -> set[str]:
    """The modules of rankdrift that a file imports, itself or a name from them."""
    found = set()
    for module, name, _ in imported(parsed(path)):
        found |= {m for m in (module, f"{module}.{name}") if m in MODULES}
    return found


def below_charts() -> list[str]:
    """Packages in the layers under `charts`."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    rows = [[name.strip() for name in layer.split("|")] for layer in layers]
    place = next(i for i, row in enumerate(rows) if "charts" in row)
    return [name for row in rows[place + 1 :] for name in row]


def only_for_types(around: list[ast.AST]) -> bool:
    """Is it under `if TYPE_CHECKING`?"""
    return any(
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for node in around
    )


def wrong_imports_of_charts(tree: ast.AST) -> list[str]:
    """Those that are neither inside a function named `plot` nor the type `Figure`."""
    return [
        f"{module}.{name}"
        for module, name, around in imported(tree)
        if module == CHARTS or module.startswith(f"{CHARTS}.")
        if not (only_for_types(around) and name == "Figure")
        if not any(isinstance(n, ast.FunctionDef) and n.name == "plot" for n in around)
    ]


def test_imports_go_down_the_layers():
    from importlinter.cli import lint_imports

    assert lint_imports(str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_only_plot_imports_charts_from_below():
    wrong = {
        module: found
        for module, path in MODULES.items()
        if package(module) in below_charts()
        if (found := wrong_imports_of_charts(parsed(path)))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("def plot(self):\n    from rankdrift.charts.style import Figure", []),
        ("if TYPE_CHECKING:\n    from rankdrift.charts.style import Figure", []),
        ("from rankdrift.charts.style import Figure", ["rankdrift.charts.style.Figure"]),
        ("if TYPE_CHECKING:\n    from rankdrift.charts import style", ["rankdrift.charts.style"]),
        ("def draw():\n    import rankdrift.charts.style", ["rankdrift.charts.style."]),
    ],
)
def test_the_exception_is_as_narrow_as_it_says(code, wrong):
    assert wrong_imports_of_charts(ast.parse(code)) == wrong


def test_a_report_calls_no_step_and_works_nothing_out():
    wrong = {
        module: found
        for module, path in MODULES.items()
        if package(module) == "report"
        if (found := STEPS & {name for _, name, _ in imported(parsed(path))})
    }
    assert not wrong


def test_the_folders_are_the_flow():
    assert {path.name for path in SOURCE.iterdir() if path.is_file()} == FLAT


def long_files() -> dict[str, int]:
    """Modules that are longer than a file may be, with their lines."""
    lengths = {m: len(path.read_text("utf-8").splitlines()) for m, path in MODULES.items()}
    return {module: lines for module, lines in lengths.items() if lines > LONGEST}


def lonely_files() -> dict[str, str]:
    """Modules that exist only because another was long, with that other: one module imports them,
    it is in the same folder, and no test is theirs: neither one named test_<module>.py nor one
    that imports them.

    Counted are imports within src, wherever in the code, but for those of a package's __init__.
    """
    importers: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, path in MODULES.items():
        for target in targets(path) - {module}:
            if path.name != "__init__.py":
                importers[target].add(module)
    tests = [path for path in TESTS.rglob("*.py") if "support" not in path.parts]
    tested = {target for path in tests for target in targets(path)}
    named = {path.stem.removeprefix("test_") for path in tests if path.stem.startswith("test_")}
    return {
        module: next(iter(importers[module]))
        for module, path in MODULES.items()
        if path.name != "__init__.py" and module not in ENTRIES
        if len(importers[module]) == 1
        if next(iter(importers[module])).rpartition(".")[0] == module.rpartition(".")[0]
        if module not in tested and module.rpartition(".")[2] not in named
    }


@pytest.mark.parametrize("offenders", [long_files, lonely_files])
def test_files_are_split_by_idea(offenders):
    found = offenders()
    assert not found


if __name__ == "__main__":
    for offenders in (long_files, lonely_files):
        print(offenders.__name__)
        for module, why in offenders().items():
            print(f"  {module}: {why}")
