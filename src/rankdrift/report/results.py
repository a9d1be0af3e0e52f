"""The results that a report is on: any mix of them, saved or in memory, sorted by kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import (
    BESIDE,
    DRIFT_FILE,
    RESULT_ENDINGS,
    RUN_RECORD,
    ResultKind,
    kind_of_json,
)
from rankdrift.core.digests import what_changed
from rankdrift.core.errors import BadCounts, BadOption, BadPropensities
from rankdrift.core.plain import entries, entry, items, maybe, number, parsed, text, whole
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.counts import Counts, merge
from rankdrift.counts.file import load_both
from rankdrift.judging.file import holds_judgments
from rankdrift.judging.judgments import Judgments
from rankdrift.propensities.drift import Drift
from rankdrift.propensities.file import NoPropensities
from rankdrift.propensities.periods import Period, Steadiness
from rankdrift.propensities.propensities import Propensities

Plain = Mapping[str, Any]

_OF_RANKERS = "Of rankers, give what `rankdrift evaluate … -o comparison.json` writes."


@dataclass(frozen=True, eq=False)
class Results:
    """What was given to report on, by kind.

    counts: all that were given, added up; parts: as they were given, if there are several. curves:
    by name. methods, rankers, click_models: as `to_dict` of a comparison. truth: propensities of
    ranks 1, 2, 3 … by segment and by sort of the results, "" where there is but one. given: (name,
    kind) of everything, in order.
    """

    counts: Counts | None = None
    curves: Mapping[str, Propensities] = field(default_factory=dict)
    methods: tuple[Plain, ...] = ()
    rankers: tuple[Plain, ...] = ()
    click_models: tuple[Plain, ...] = ()
    diagnosis: Plain | None = None
    judgments: Judgments | None = None
    truth: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    given: tuple[tuple[str, ResultKind], ...] = ()
    parts: tuple[Counts, ...] = ()


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report tells: the results given, with a curve and a diagnosis made where counts came
    without.

    periods: the curve over time, if the counts were given a day each, with `steadiness`, or with
    `drift` if there are days enough for a test that may be looked at every day.
    estimated: how there came to be a curve that was not given, or why there is none. undiagnosed:
    why there is no diagnosis.
    """

    results: Results
    curves: Mapping[str, Propensities]
    diagnosis: Plain | None
    estimated: str = ""
    undiagnosed: str = ""
    periods: tuple[Period, ...] = ()
    steadiness: Steadiness | None = None
    drift: Drift | None = None


def gather(results: Any) -> Results:
    """Read and sort a path, a result, a list of them, or a mapping that names them."""
    found: list[tuple[str, ResultKind, Any]] = []  # (name, kind, result)
    given = [
        (name, each)
        for name, result in _named(results)
        for each in (_files(Path(result)) if isinstance(result, str | os.PathLike) else [result])
    ]
    counts, sums = _counts([each for _, each in given if isinstance(each, Path)])
    for name, each in given:
        if not isinstance(each, Path):
            found.append((name or "", *_recognise(each, name or "A result")))
        elif each in counts:
            found.append((name or each.name, ResultKind.COUNTS, counts[each]))
        else:
            found.append(_read(each, name))
    if not found:
        raise BadOption("There is nothing to report on. Give results, such as propensities.json.")

    def of(kind: ResultKind) -> list[Any]:
        return [result for _, its, result in found if its == kind]

    for kind in (ResultKind.DIAGNOSIS, ResultKind.TRUTH, ResultKind.JUDGMENTS):
        if len(of(kind)) > 1:
            a = "" if kind is ResultKind.JUDGMENTS else "a "
            raise BadOption(f"There are {len(of(kind))} results that are {a}{kind}. Give one.")
    counted = of(ResultKind.COUNTS)
    once = bool(sums) and len(counted) == len(counts)
    return Results(
        counts=merge(sums if once else counted) if counted else None,
        parts=tuple(counted) if len(counted) > 1 else (),
        curves=_curves(
            (name, result) for name, kind, result in found if kind is ResultKind.PROPENSITIES
        ),
        methods=tuple(of(ResultKind.METHODS)),
        rankers=tuple(of(ResultKind.RANKERS)),
        click_models=tuple(of(ResultKind.CLICK_MODELS)),
        diagnosis=next(iter(of(ResultKind.DIAGNOSIS)), None),
        judgments=next(iter(of(ResultKind.JUDGMENTS)), None),
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
        if not file.name.endswith(BESIDE) and file.name not in (RUN_RECORD, DRIFT_FILE)
    )
    if not files:
        raise BadOption(f"{path} holds no file of results ({', '.join(RESULT_ENDINGS)}).")
    return files


def _counts(paths: Sequence[Path]) -> tuple[dict[Path, Counts], list[Counts]]:
    """Of those that can be, and what they add up to, in parts: many files of counts are read
    together, and much faster. What is something else, or damaged, is told when it is read by
    itself."""
    counted = [path for path in dict.fromkeys(paths) if path.suffix.lower() == ".parquet"]
    with suppress(BadCounts):
        if len(counted) > 1:
            apart, sums = load_both(counted)
            return dict(zip(counted, apart, strict=True)), sums
    return {}, []


def _read(path: Path, name: str | None) -> tuple[str, ResultKind, Any]:
    """(name, kind, result) of a file."""
    if not path.is_file():
        raise BadOption(f"{path} does not exist. Give files that rankdrift wrote.")
    ending = path.suffix.lower()
    known = name or path.name
    if ending == ".csv":
        return known, ResultKind.PROPENSITIES, Propensities.load(path)
    if ending == ".parquet":
        if holds_judgments(path):
            return known, ResultKind.JUDGMENTS, Judgments.load(path)
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
        plain = parsed(path.read_text("utf-8"))
    except ValueError as error:
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
    """(kind, result), the result as plain values unless it is counts, a curve or judgments."""
    if isinstance(result, Counts):
        return ResultKind.COUNTS, result
    if isinstance(result, Propensities):
        return ResultKind.PROPENSITIES, result
    if isinstance(result, Judgments):
        return ResultKind.JUDGMENTS, result
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
                f"version: {error}. Make it again."
            ) from error
    hint = ""
    if kind is ResultKind.PRINTED_ESTIMATE:
        hint = f" This is {kind}: give the file that its -o writes."
    raise BadOption(
        f"{where} is no result to report on. There are counts and judgments (.parquet), "
        "propensities (.json, .csv, .parquet), and the JSON of compare, evaluate, diagnose, models "
        "and simulate." + hint
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
    table = {
        name: items(column, f"table.{name}")
        for name, column in entries(plain["table"], "table").items()
    }
    names = [name for name in table if name != "rank" and f"{name}_low" in table]
    if len({*map(len, table.values())}) != 1 or not names or not table.get("rank"):
        raise ValueError("its table has no methods, or columns of different lengths")
    ranks = [whole(rank, "table.rank", 1) for rank in table["rank"]]
    if ranks != sorted({*ranks}):
        raise ValueError("the ranks of its table do not ascend")
    for name in names:
        for column in (name, f"{name}_low", f"{name}_high"):
            for value in entry(table, column, "table."):
                maybe(number, value, f"table.{column}", 0.0)
        bounds = zip(table[name], table[f"{name}_low"], table[f"{name}_high"], strict=True)
        if len({(low is None, high is None) for p, low, high in bounds if p is not None}) > 1:
            raise ValueError(f"table.{name} has intervals at some of its ranks only")
    for name, summary in entries(plain.get("summaries", {}), "summaries").items():
        reference = entries(summary, f"summaries.{name}").get("reference", 1)
        whole(reference, f"summaries.{name}.reference", 1)
    for distance in items(plain["distances"], "distances"):
        entries(distance, "distances")
        for name in ("first", "second", "verdict"):
            text(entry(distance, name, "distances."), f"distances.{name}")
        maybe(text, distance.get("meaning"), "distances.meaning")
        number(entry(distance, "mean_percent", "distances."), "distances.mean_percent")
        for name in ("low", "high"):
            maybe(number, distance.get(name), f"distances.{name}")
    left_out = entries(plain["left_out"], "left_out")
    for name, why in left_out.items():
        text(why, f"left_out.{name}")
    number(plain["level"], "level", 0.0, 1.0)
    return {**plain, "table": table, "names": names, "left_out": dict(left_out)}


def _rankers(plain: Plain) -> Plain:
    for name in ("models", "baselines", "verdicts", "remarks"):
        for value in items(plain.get(name, []), name):
            text(value, name)
    for name in ("bootstrap", "queries", "seed"):
        maybe(whole, plain.get(name), name)
    for name, value in entries(plain.get("data", {}), "data").items():
        if not isinstance(value, Mapping):
            _scalars(value, f"data.{name}")
    for name in ("rankdrift", "propensities"):
        maybe(text, plain.get(name), name)
    rows = items(plain["table"], "table")
    for row in rows:
        entries(row, "table")
        for name in ("measure", "model"):
            text(entry(row, name, "table."), f"table.{name}")
        for name in ("baseline", "note"):
            maybe(text, row.get(name), f"table.{name}")
        maybe(whole, entry(row, "rank", "table."), "table.rank", 1)
        maybe(whole, row.get("clicks"), "table.clicks")
        maybe(number, entry(row, "value", "table."), "table.value")
        if maybe(number, entry(row, "improvement", "table."), "table.improvement") is not None:
            number(entry(row, "sd", "table."), "table.sd", 0.0)
            number(entry(row, "p_value", "table."), "table.p_value", 0.0, 1.0)
    return plain


def _click_models(plain: Plain) -> Plain:
    for name in ("words", "best", "reference"):
        text(plain[name], name)
    for name in ("searches", "clicks"):
        for part in ("train", "test"):
            whole(entry(entries(plain[name], name), part, f"{name}."), f"{name}.{part}")
    rows = items(plain["models"], "models")
    for row in rows:
        entries(row, "models")
        for name in ("name", "title"):
            text(entry(row, name, "models."), f"models.{name}")
        for name in ("log_likelihood", "conditional_perplexity"):
            number(entry(row, name, "models."), f"models.{name}")
        for name in ("more", "more_low", "more_high"):
            maybe(number, entry(row, name, "models."), f"models.{name}")
    for name, why in entries(plain.get("left_out", {}), "left_out").items():
        text(why, f"left_out.{name}")
    for remark in items(plain.get("remarks", []), "remarks"):
        text(remark, "remarks")
    for name, value in entries(plain.get("options", {}), "options").items():
        _scalars(value, f"options.{name}")
    number(plain["level"], "level", 0.0, 1.0)
    return {**plain, "verdict": _verdict(plain["verdict"])}


def _scalars(value: Any, field: str) -> None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str):
            text(one, field)
        elif isinstance(one, Mapping | list):
            raise ValueError(f"{field} is not a value or a list of values")
        elif one is not None and not isinstance(one, bool):
            number(one, field, -1e300, 1e300)


def _diagnosis(plain: Plain) -> Plain:
    checks = []
    for check in items(plain["checks"], "checks"):
        said = entries(check, "checks")
        checks.append(
            {
                **{
                    name: text(said.get(name, ""), f"checks.{name}")
                    for name in ("name", "words", "advice")
                },
                "verdict": _verdict(said.get("verdict")),
                "curve": _difference(entries(said.get("numbers") or {}, "checks.numbers")),
            }
        )
    verdict, unseen = _verdict(plain["verdict"]), plain.get("unseen")
    if verdict is Verdict.GOOD and unseen is None:
        # Until 0.1.0 nothing wrong was enough to be good, whether or not anybody had looked.
        verdict = Verdict.CANNOT_TELL
    told = [text(one, "unseen") for one in items(unseen or [], "unseen")]
    return {"verdict": verdict, "unseen": told, "checks": checks}


def _verdict(value: Any) -> Verdict:
    try:
        return Verdict(value)
    except ValueError:
        raise ValueError(f"verdict is {value!r}, not one of {', '.join(Verdict)}") from None


def _difference(numbers: Plain) -> Mapping[str, list[float]] | None:
    """The curve that a check has to draw, if it has one."""
    given = {name: numbers.get(name) for name in ("ranks", "difference", "error")}
    if not all(isinstance(values, list) and None not in values for values in given.values()):
        return None
    found = {name: [number(one, name) for one in values or ()] for name, values in given.items()}
    if len({len(values) for values in found.values()}) > 1:
        raise ValueError("ranks, difference and error of a check are not of one length")
    ranks = found["ranks"]
    return found if len(ranks) > 1 and 1 <= ranks[0] < ranks[-1] else None


def _truth(plain: Plain) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Of a simulated market, by platform and sort; or one list, of simulated pairs."""
    found = plain.get("truth", plain.get("propensities"))
    if not isinstance(found, Mapping):
        found = {"": {"": found}}
    truth: dict[str, dict[str, list[float]]] = {}
    for segment, sorts in found.items():
        for sort, values in entries(sorts, f"truth of {segment!r}").items():
            where = f"truth of {segment!r}"
            curve = [number(p, where, 0.0) for p in items(values, where)]
            if not curve or not min(curve) > 0:
                raise ValueError(f"the {where} is not all above 0")
            truth.setdefault(str(segment), {})[str(sort)] = curve
    if not truth:
        raise ValueError("it has no propensities")
    return truth


_CHECKS: Mapping[ResultKind, Callable[[Plain], Any]] = {
    ResultKind.METHODS: _methods,
    ResultKind.RANKERS: _rankers,
    ResultKind.CLICK_MODELS: _click_models,
    ResultKind.DIAGNOSIS: _diagnosis,
    ResultKind.TRUTH: _truth,
}
