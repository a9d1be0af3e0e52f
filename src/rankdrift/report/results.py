"""The results that a report is on: any mix of them, saved or in memory, sorted by kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import RESULT_ENDINGS, ResultKind, kind_of_json
from rankdrift.core.digests import what_changed
from rankdrift.core.errors import BadCounts, BadOption, BadPropensities
from rankdrift.counts.counts import Counts, merge
from rankdrift.propensities.file import NoPropensities
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.ranker import BESIDE

Plain = Mapping[str, Any]

_OF_RANKERS = "Of rankers, give what `rankdrift evaluate … -o comparison.json` writes."


@dataclass(frozen=True, eq=False)
class Results:
    """What was given to report on, by kind.

    counts: all that were given, added up. curves: by name. methods, rankers: as `to_dict` of a
    comparison. truth: propensities of ranks 1, 2, 3 … by segment and by sort of the results, ""
    where there is but one. given: (name, kind) of everything, in order.
    """

    counts: Counts | None = None
    curves: Mapping[str, Propensities] = field(default_factory=dict)
    methods: tuple[Plain, ...] = ()
    rankers: tuple[Plain, ...] = ()
    diagnosis: Plain | None = None
    truth: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    given: tuple[tuple[str, ResultKind], ...] = ()


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report tells: the results given, with a curve and a diagnosis made where counts came
    without.

    estimated: how there came to be a curve that was not given, or why there is none. undiagnosed:
    why there is no diagnosis.
    """

    results: Results
    curves: Mapping[str, Propensities]
    diagnosis: Plain | None
    estimated: str = ""
    undiagnosed: str = ""


def gather(results: Any) -> Results:
    """Read and sort a path, a result, a list of them, or a mapping that names them."""
    found: list[tuple[str, ResultKind, Any]] = []  # (name, kind, result)
    for name, result in _named(results):
        if isinstance(result, str | os.PathLike):
            found += (_read(path, name) for path in _files(Path(result)))
        else:
            found.append((name or "", *_recognise(result, name or "A result")))
    if not found:
        raise BadOption("There is nothing to report on. Give results, such as propensities.json.")

    def of(kind: ResultKind) -> list[Any]:
        return [result for _, its, result in found if its == kind]

    for kind in (ResultKind.DIAGNOSIS, ResultKind.TRUTH):
        if len(of(kind)) > 1:
            raise BadOption(f"There are {len(of(kind))} results that are a {kind}. Give one.")
    return Results(
        counts=merge(of(ResultKind.COUNTS)) if of(ResultKind.COUNTS) else None,
        curves=_curves(
            (name, result) for name, kind, result in found if kind is ResultKind.PROPENSITIES
        ),
        methods=tuple(of(ResultKind.METHODS)),
        rankers=tuple(of(ResultKind.RANKERS)),
        diagnosis=next(iter(of(ResultKind.DIAGNOSIS)), None),
        truth=next(iter(of(ResultKind.TRUTH)), {}),
        given=tuple((name, kind) for name, kind, _ in found),
    )


def _named(results: Any) -> Iterable[tuple[str | None, Any]]:
    """(name or None, result) of each."""
    itself = kind_of_json(results) in (*_CHECKS, ResultKind.RANKER)
    if isinstance(results, Mapping) and not itself:
        return results.items()
    alone = isinstance(results, str | os.PathLike | Mapping) or not isinstance(results, Iterable)
    return [(None, one) for one in ([results] if alone else results)]


def _files(path: Path) -> list[Path]:
    """The file, or those of a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in RESULT_ENDINGS and file.is_file()
        if not file.name.endswith(BESIDE)
    )
    if not files:
        raise BadOption(f"{path} holds no file of results ({', '.join(RESULT_ENDINGS)}).")
    return files


def _read(path: Path, name: str | None) -> tuple[str, ResultKind, Any]:
    """(name, kind, result) of a file."""
    if not path.is_file():
        raise BadOption(f"{path} does not exist. Give files that rankdrift wrote.")
    ending = path.suffix.lower()
    known = name or path.name
    if ending == ".csv":
        return known, ResultKind.PROPENSITIES, Propensities.load(path)
    if ending == ".parquet":
        try:
            return known, ResultKind.COUNTS, Counts.load(path)
        except BadCounts as error:
            return known, ResultKind.PROPENSITIES, _curve(path, error)
    if ending != ".json":
        raise BadOption(
            f"{path} is no result to report on: those end in {', '.join(RESULT_ENDINGS)}. "
            f"{_OF_RANKERS}"
        )
    try:
        plain = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{path} is not JSON, or cut short. Write it again.") from error
    if kind_of_json(plain) is ResultKind.PROPENSITIES:
        return known, ResultKind.PROPENSITIES, Propensities.load(path)
    changed = what_changed(plain) if kind_of_json(plain) else None
    if changed:
        raise BadOption(f"{path}: {changed}")
    return known, *_recognise(plain, str(path))


def _curve(path: Path, no_counts: BadCounts) -> Propensities:
    try:
        return Propensities.load(path)
    except BadPropensities as error:
        why = no_counts if isinstance(error.__cause__, NoPropensities) else error
        raise BadOption(
            f"{path} holds neither counts nor propensities that can be read. {why}"
        ) from error


def _recognise(result: Any, where: str) -> tuple[ResultKind, Any]:
    """(kind, result), the result as plain values unless it is counts or a curve."""
    if isinstance(result, Counts):
        return ResultKind.COUNTS, result
    if isinstance(result, Propensities):
        return ResultKind.PROPENSITIES, result
    to_dict = getattr(result, "to_dict", None)
    plain = to_dict() if callable(to_dict) and not isinstance(result, Mapping) else result
    kind = kind_of_json(plain)
    check = _CHECKS.get(kind) if kind else None
    if kind is ResultKind.RANKER:
        raise BadOption(f"{where} tells of a ranker, not how it did. {_OF_RANKERS}")
    if kind and check:
        try:
            return kind, check(plain)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BadOption(
                f"{where} looks like a {kind}, but it is damaged or was written by another "
                f"version ({error!r}). Make it again."
            ) from error
    hint = ""
    if kind is ResultKind.PRINTED_ESTIMATE:
        hint = f" This is {kind}: give the file that its -o writes."
    raise BadOption(
        f"{where} is no result to report on. There are counts (.parquet), propensities (.json, "
        ".csv, .parquet), and the JSON of compare, evaluate, diagnose and simulate." + hint
    )


def _curves(named: Iterable[tuple[str, Propensities]]) -> dict[str, Propensities]:
    """By name: that of the file, or the method; a number tells equal names apart."""
    curves: dict[str, Propensities] = {}
    for name, curve in named:
        stem = (Path(name).stem if Path(name).suffix in RESULT_ENDINGS else name) or curve.method
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
    truth = {
        str(segment): {str(sort): [float(p) for p in values] for sort, values in sorts.items()}
        for segment, sorts in found.items()
    }
    if any(not p > 0 for sorts in truth.values() for values in sorts.values() for p in values):
        raise ValueError("its propensities are not all above 0")
    return truth


_CHECKS: Mapping[ResultKind, Callable[[Plain], Any]] = {
    ResultKind.METHODS: _methods,
    ResultKind.RANKERS: _rankers,
    ResultKind.DIAGNOSIS: _diagnosis,
    ResultKind.TRUTH: _truth,
}
