"""Every public name says what it is for, in one style.

A docstring begins with one sentence: what the thing is for. A public function of more than two
parameters, or a method, names each of them in a section `Parameters`, as NumPy's docs do.

`python tests/test_public_names.py` prints what lacks in all packages.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import rankdrift

SOURCE = Path(rankdrift.__file__).parent
FEW = 2  # so many parameters may be left to their names
PUBLIC = re.compile(r"[A-Za-z]")


def package(thing: Any) -> str:
    """The package or flat module that a thing is defined in."""
    return str(thing.__module__).split(".")[1]


def unwrapped(thing: Any) -> Any:
    """The function behind a property, a static or a class method."""
    if isinstance(thing, property):
        return thing.fget
    return getattr(thing, "func", None) or getattr(thing, "__func__", thing)


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """(name, function) of what a class defines under a public name, and none that it is one of."""
    for name, member in vars(kind).items():
        function = unwrapped(member)
        inherited = any(hasattr(base, name) for base in kind.__mro__[1:])
        if PUBLIC.match(name) and inspect.isfunction(function) and not inherited:
            yield f"{kind.__name__}.{name}", function


def public_api() -> Iterator[tuple[str, Any]]:
    """(name, thing) of everything that `import rankdrift` offers, and its methods."""
    for name in rankdrift.__all__:
        thing = getattr(rankdrift, name)
        if not isinstance(thing, str):  # the version
            yield name, thing
        if inspect.isclass(thing):
            yield from methods(thing)


def public_in_modules() -> Iterator[tuple[str, Any]]:
    """(name, thing) of every function, class and method that a module defines without a _."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        if parts[-1] == "__main__":
            continue
        if parts[-1] == "spark" and "engines" in parts and not find_spec("pyspark"):
            continue  # cannot be imported without the extra, which `make test` has
        module = import_module(".".join(parts).removesuffix(".__init__"))
        for name, thing in vars(module).items():
            if not PUBLIC.match(name) or getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                yield from ((f"{module.__name__}.{m}", function) for m, function in methods(thing))


def no_docstring(thing: Any) -> str:
    """Whether it has none of its own: a dataclass gets its signature for one."""
    text = (thing.__doc__ if inspect.isclass(thing) else inspect.getdoc(thing)) or ""
    return "no docstring" if not text or text.startswith(f"{thing.__name__}(") else ""


def no_summary(thing: Any) -> str:
    """Why the first paragraph of its docstring does not say what it is for; "" if it does."""
    if lacks := no_docstring(thing):
        return lacks
    summary = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    if summary.startswith("Eq. "):
        return "begins with the label of an equation"
    if not re.match(r"[A-Z(\"`'0-9]", summary):
        return f"does not begin with a capital: {summary}"
    return "" if re.search(r"[.?:](\"|`|'|\))?$", summary) else f"is not a sentence: {summary}"


def described(text: str) -> set[str]:
    """The names in the section `Parameters` of a docstring."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.M | re.S)
    heads = re.findall(r"^(\*{0,2}\w[^\n:]*)", found[1], re.M) if found else []
    return {name.strip(" *") for head in heads for name in head.split(",")}


def no_parameters(thing: Any) -> str:
    """Which of its parameters its docstring does not describe, if there are more than a few."""
    if not inspect.isfunction(thing):
        return ""
    names = [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    if len(names) <= FEW:
        return ""
    missing = [name for name in names if name not in described(inspect.getdoc(thing) or "")]
    return f"not described: {', '.join(missing)}" if missing else ""


Check = Callable[[Any], str]
CHECKS: tuple[tuple[Callable[[], Iterator[tuple[str, Any]]], Check], ...] = (
    (public_api, no_summary),
    (public_api, no_parameters),
    (public_in_modules, no_docstring),
)


def lacking(things: Callable[[], Iterator[tuple[str, Any]]], check: Check) -> dict[str, str]:
    """What is lacking, by the package and name of what lacks it."""
    found = ((package(thing), name, check(thing)) for name, thing in things())
    return {f"{room}: {name}": why for room, name, why in found if why}


@pytest.mark.parametrize(
    ("things", "check"), CHECKS, ids=lambda function: getattr(function, "__name__", "")
)
def test_public_names_say_what_they_are_for(things, check):
    assert not lacking(things, check)


def test_names_are_in_the_order_of_the_flow_and_all_are_there():
    assert set(rankdrift.__all__) == set(rankdrift._HOME)
    order = [name for name in rankdrift._HOME if name in FLOW]
    assert order == FLOW
    assert all(f"`{name}`" in rankdrift.__doc__ for name in rankdrift._HOME if name[0] != "_")


FLOW = [
    "read_log", "inspect", "harvest", "merge", "estimate", "diagnose", "train", "evaluate",
    "make_report",
]  # fmt: skip


@pytest.mark.parametrize(
    ("doc", "names"),
    [
        ("Do.\n\nParameters\n----------\na\n    One.\nb, c\n    Two.", {"a", "b", "c"}),
        ("Do.\n\nParameters\n----------\na : int\n    One.\n\nReturns\n-------\nx\n    It.", {"a"}),
        ("Do.\n\nParameters\n----------\n**options\n    Of it.", {"options"}),
        ("Do what `a` says.", set()),
    ],
)
def test_sections_are_read(doc, names):
    assert described(doc) == names


if __name__ == "__main__":
    for things, check in CHECKS:
        print(f"{things.__name__}, {check.__name__}")
        for name, why in lacking(things, check).items():
            print(f"  {name}: {why}")
