"""Any mix of results, saved or in memory, told apart by what they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import PROPENSITIES_KIND
from rankdrift.core.errors import BadCounts, BadOption, BadPropensities
from rankdrift.counts.counts import Counts, merge
from rankdrift.propensities.file import NoPropensities
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.ranker import BESIDE

Plain = Mapping[str, Any]

COUNTS, CURVE, METHODS = "counts", "propensities", "comparison of methods"
RANKERS, DIAGNOSIS, TRUTH = "comparison of rankers", "diagnosis", "truth"
ENDINGS = (".parquet", ".json", ".csv")
# What each kind of JSON has that no other has: results are plain there, or a file to load.
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (METHODS, ("table", "distances", "left_out", "level")),
    (RANKERS, ("models", "baselines", "table", "verdicts")),
    (DIAGNOSIS, ("verdict", "checks")),
    (TRUTH, ("truth",)),
    (TRUTH, ("propensities", "options")),
)
_OF_RANKERS = "Of rankers, give what `rankdrift evaluate … -o comparison.json` writes."


@dataclass(frozen=True, eq=False)
class Results:
    """counts: all that were given, added up. curves: by name. methods, rankers: as `to_dict` of
    a comparison. truth: propensities of ranks 1, 2, 3 … by segment and by sort of the results, ""
    where there is but one. given: (name, kind) of everything, in order."""

    counts: Counts | None = None
    curves: Mapping[str, Propensities] = field(default_factory=dict)
    methods: tuple[Plain, ...] = ()
    rankers: tuple[Plain, ...] = ()
    diagnosis: Plain | None = None
    truth: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    given: tuple[tuple[str, str], ...] = ()


def gather(results: Any) -> Results:
    """`results`: a path, a result, a list of them, or a mapping that names them."""
    found: list[tuple[str, str, Any]] = []  # (name, kind, result)
    for name, result in _named(results):
        if isinstance(result, str | os.PathLike):
            found += (_read(path, name) for path in _files(Path(result)))
        else:
            found.append((name or "", *_recognise(result, name or "A result")))
    if not found:
        raise BadOption("There is nothing to report on. Give results, such as propensities.json.")

    def of(kind: str) -> list[Any]:
        return [result for _, its, result in found if its == kind]

    for kind in (DIAGNOSIS, TRUTH):
        if len(of(kind)) > 1:
            raise BadOption(f"There are {len(of(kind))} results that are a {kind}. Give one.")
    return Results(
        counts=merge(of(COUNTS)) if of(COUNTS) else None,
        curves=_curves((name, result) for name, kind, result in found if kind == CURVE),
        methods=tuple(of(METHODS)),
        rankers=tuple(of(RANKERS)),
        diagnosis=next(iter(of(DIAGNOSIS)), None),
        truth=next(iter(of(TRUTH)), {}),
        given=tuple((name, kind) for name, kind, _ in found),
    )


def _named(results: Any) -> Iterable[tuple[str | None, Any]]:
    if isinstance(results, Mapping) and not any(_marked(results, m) for _, m in _MARKS):
        return results.items()
    alone = isinstance(results, str | os.PathLike | Mapping) or not isinstance(results, Iterable)
    return [(None, one) for one in ([results] if alone else results)]


def _files(path: Path) -> list[Path]:
    """The file, or those of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(
        f for f in path.iterdir()
        if f.suffix.lower() in ENDINGS and f.is_file() and not f.name.endswith(BESIDE)
    )  # fmt: skip
    if not files:
        raise BadOption(f"{path} holds no file of results ({', '.join(ENDINGS)}).")
    return files


def _read(path: Path, name: str | None) -> tuple[str, str, Any]:
    """(name, kind, result) of a file."""
    if not path.is_file():
        raise BadOption(f"{path} does not exist. Give files that rankdrift wrote.")
    ending = path.suffix.lower()
    known = name or path.name
    if ending == ".csv":
        return known, CURVE, Propensities.load(path)
    if ending == ".parquet":
        try:
            return known, COUNTS, Counts.load(path)
        except BadCounts as error:
            return known, CURVE, _curve(path, error)
    if ending != ".json":
        raise BadOption(
            f"{path} is no result to report on: those end in {', '.join(ENDINGS)}. {_OF_RANKERS}"
        )
    try:
        plain = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{path} is not JSON, or cut short. Write it again.") from error
    if isinstance(plain, Mapping) and plain.get("kind") == PROPENSITIES_KIND:
        return known, CURVE, Propensities.load(path)
    return known, *_recognise(plain, str(path))


def _curve(path: Path, no_counts: BadCounts) -> Propensities:
    try:
        return Propensities.load(path)
    except BadPropensities as error:
        why = no_counts if isinstance(error.__cause__, NoPropensities) else error
        raise BadOption(
            f"{path} holds neither counts nor propensities that can be read. {why}"
        ) from error


def _recognise(result: Any, where: str) -> tuple[str, Any]:
    """(kind, result), the result as plain values unless it is counts or a curve."""
    if isinstance(result, Counts):
        return COUNTS, result
    if isinstance(result, Propensities):
        return CURVE, result
    plain = result if isinstance(result, Mapping) else _plain(result)
    if _marked(plain, ("backend", "features", "model")):
        raise BadOption(f"{where} tells of a ranker, not how it did. {_OF_RANKERS}")
    for kind, marks in _MARKS:
        if _marked(plain, marks):
            try:
                return kind, _CHECKS[kind](plain)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise BadOption(
                    f"{where} looks like a {kind}, but it is damaged or was written by another "
                    f"version ({error!r}). Make it again."
                ) from error
    hint = ""
    if _marked(plain, ("table", "summary")):
        hint = " This is what `estimate --json` prints: give the file that its -o writes."
    raise BadOption(
        f"{where} is no result to report on. There are counts (.parquet), propensities (.json, "
        ".csv, .parquet), and the JSON of compare, evaluate, diagnose and simulate." + hint
    )


def _plain(result: Any) -> Any:
    told = getattr(result, "to_dict", None)
    return told() if callable(told) else result


def _marked(plain: Any, marks: Sequence[str]) -> bool:
    return isinstance(plain, Mapping) and all(mark in plain for mark in marks)


def _curves(named: Iterable[tuple[str, Propensities]]) -> dict[str, Propensities]:
    """By name: that of the file, or the method; a number tells equal names apart."""
    curves: dict[str, Propensities] = {}
    for name, curve in named:
        stem = (Path(name).stem if Path(name).suffix in ENDINGS else name) or curve.method
        many = sum(known == stem or known.startswith(f"{stem} (") for known in curves)
        curves[f"{stem} ({many + 1})" if many else stem] = curve
    return curves


# -- plain values that a page can rely on ------------------------------------------------------


def _methods(plain: Plain) -> Plain:
    table = plain["table"]
    names = [name for name in table if name != "rank" and f"{name}_low" in table]
    lengths = {len(table[column]) for column in table}
    if len(lengths) != 1 or not names:
        raise ValueError("its table has no methods, or columns of different lengths")
    for distance in plain["distances"]:
        float(distance["mean_percent"]), str(distance["first"]), str(distance["verdict"])
    return {**plain, "names": names, "left_out": dict(plain["left_out"])}


def _rankers(plain: Plain) -> Plain:
    for row in plain["table"]:
        str(row["measure"]), str(row["model"]), row["rank"], row["improvement"], row["value"]
    return plain


def _diagnosis(plain: Plain) -> Plain:
    checks = [
        {name: str(check.get(name, "")) for name in ("name", "verdict", "words", "advice")}
        for check in plain["checks"]
    ]
    return {"verdict": str(plain["verdict"]), "checks": checks}


def _truth(plain: Plain) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Of a simulated market, by platform and sort; or one list, of simulated pairs."""
    found = plain.get("truth", plain.get("propensities"))
    if not isinstance(found, Mapping):
        found = {"": {"": found}}
    told = {
        str(segment): {str(sort): [float(p) for p in values] for sort, values in sorts.items()}
        for segment, sorts in found.items()
    }
    if any(not p > 0 for sorts in told.values() for values in sorts.values() for p in values):
        raise ValueError("its propensities are not all above 0")
    return told


_CHECKS: Mapping[str, Any] = {
    METHODS: _methods,
    RANKERS: _rankers,
    DIAGNOSIS: _diagnosis,
    TRUTH: _truth,
}
