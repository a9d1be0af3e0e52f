"""Old names that were documented: they still work for one version, and say what to use instead."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of `import rankdrift`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# Everything that the documentation of 0.1.0 named, below `rankdrift`.
MOVED = {
    "baselines": "methods",
    "baselines.ratio": "methods.two_ranks",
    "comparing": "methods.comparing",
    "curves": "estimation.curves",
    "errors": "core.errors",
    "files": "core.files",
    "funnel": "counts.funnel",
    "inspection": "diagnosis.inspection",
    "interventions": "methods.interventions",
    "matrix": "ranking.matrix",
    "matrix_reading": "ranking.matrix_reading",
    "rank": "ranking",
    "rank.comparison": "ranking.comparison",
    "rank.evaluation": "ranking.evaluation",
    "rank.exporting": "ranking.exporting",
    "rank.gains": "ranking.gains",
    "rank.ranker": "ranking.ranker",
    "rank.training": "ranking.training",
    "report.report_page": "pipeline",
    "warehouse": "harvesting.warehouse",
}


class _MovedModules:
    """Finds an old name as an empty module that passes every look-up on to the new one.

    A finder and loader by its methods: deriving from those of importlib.abc would import a dozen
    modules each time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, _, name = fullname.partition(".")
        if root != "rankdrift" or name not in MOVED:
            return None
        from importlib.machinery import ModuleSpec

        package = any(moved.startswith(f"{name}.") for moved in MOVED)
        return ModuleSpec(fullname, self, is_package=package)  # type: ignore[arg-type]  # has its methods

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        new = f"rankdrift.{MOVED[module.__name__.partition('.')[2]]}"
        import warnings
        from importlib import import_module

        warnings.warn(
            f"{module.__name__} is now {new}; the old name goes with the next version.",
            DeprecationWarning,
            stacklevel=2,
        )
        found = import_module(new)
        module.__doc__ = found.__doc__
        module.__dict__["__getattr__"] = lambda name: getattr(found, name)


def warn_renamed(old: str, new: str) -> None:
    """Warn whoever called the function that calls this: what it was asked for by the name `old`
    is now called `new`."""
    import warnings

    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)


def find_moved(fullname: str) -> ModuleSpec | None:
    """Find the module that an old name stands for; None if it is no name in MOVED."""
    return _MovedModules().find_spec(fullname, None)
