"""What `diagnose` says in every world of the lab, those in which the curve is right and others.

python -m benchmarks.accuracy.verdicts [--world NAME] [--pairs 2000,35000,100000] [--seeds 100]
    [--first 0] [--jobs 2] [--without COLUMN,…] [--strength 1] [--curve auto] [--add] [--page-only]

Of each world: the mean error of log p over ranks 2 to the last, relative to rank 1, of the plain
curve and of those adjusted by score and by ranker; coverage of their intervals; in what share of
the seeds each check objected; and the verdicts. Adds to benchmarks/accuracy/verdicts.json, from
which the tables of docs/reading-the-diagnoses.md are made, and their sum in docs/accuracy.md. What
is there of a world is replaced, or, with --add, counted together with other seeds.
"""

import argparse
import json
import os
import tempfile
import time
import warnings
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from rankdrift import diagnose, estimate, harvest, read_log
from rankdrift.core.errors import RankdriftError
from rankdrift.core.files import write_text
from rankdrift.simulate import world
from rankdrift.simulate.worlds import WORLDS

RESULTS = Path(__file__).with_name("verdicts.json")
DOCS = Path(__file__).parents[2] / "docs"
PAGE, IN_SHORT = DOCS / "reading-the-diagnoses.md", DOCS / "accuracy.md"
BEGIN = "<!-- verdict tables: made by python -m benchmarks.accuracy.verdicts -->"
END = "<!-- end of verdict tables -->"
COLUMNS = ("score", "ranker", "user", "outcome")
ADJUSTED = ("", "score", "ranker")
WORDS = ("good", "cannot tell", "caution", "serious")
HARM = 0.10  # a bias of log p beyond this does harm


def trial(task: tuple[str, int, int, float, tuple[str, ...], str]) -> dict[str, Any]:
    """One world: how far the curves are off, and what the checks say."""
    name, seed, pairs, strength, columns, curve = task
    warnings.simplefilter("ignore")
    made = world(name, seed=seed, pairs=pairs, strength=strength, columns=columns)
    with tempfile.TemporaryDirectory() as folder:
        counts = harvest(read_log(made.write(folder, by_day=False), time="time", threads=1))
    row: dict[str, Any] = {"seed": seed, "pairs": counts.n_pairs, "off": {}, "covered": {}}
    for how in ADJUSTED:
        if how and how not in columns:
            continue
        try:
            found = estimate(counts, curve=curve, adjust=how or None)
        except RankdriftError as error:
            row["off"][how] = None
            row.setdefault("failed", {})[how] = str(error)
            continue
        truth = np.log(made.truth[found.ranks - 1] / made.truth[found.reference - 1])
        rest = found.ranks != found.reference
        low, high = (np.log(bound) for bound in found.interval())
        row["off"][how] = float((found.log_p - truth)[rest].mean())
        row["covered"][how] = float(((low <= truth) & (truth <= high))[rest].mean())
    start = time.perf_counter()
    diagnosis = diagnose(counts, curve=curve)
    row["seconds"] = time.perf_counter() - start
    row["verdict"] = str(diagnosis.verdict)
    row["checks"] = {
        check.name: {
            "verdict": str(check.verdict),
            **{k: check.numbers.get(k) for k in ("p_value", "beyond_noise", "noise", "reach")},
        }
        for check in diagnosis.checks
    }
    return row


def run(
    name: str,
    pairs: int,
    seeds: range,
    strength: float,
    columns: tuple[str, ...],
    curve: str,
    jobs: int,
) -> dict[str, Any]:
    """Many seeds of one world, summed up."""
    tasks = [(name, seed, pairs, strength, columns, curve) for seed in seeds]
    with get_context("spawn").Pool(jobs) as pool:
        rows = list(pool.imap_unordered(trial, tasks, chunksize=1))
    return {
        "world": name,
        "valid": WORLDS.get(name).valid or strength == 0,
        "pairs": pairs,
        "strength": strength,
        "columns": list(columns),
        "curve": curve,
        **summed_up(rows),
    }


def summed_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"seeds": len(rows), "off": {}, "covered": {}, "checks": {}}
    for how in rows[0]["off"]:
        off = np.array([row["off"][how] for row in rows if row["off"].get(how) is not None], float)
        covered = [row["covered"][how] for row in rows if how in row["covered"]]
        found["off"][how] = {
            "mean": float(off.mean()) if len(off) else None,
            "sd": float(off.std()) if len(off) else None,
            "made": len(off) / len(rows),
        }
        found["covered"][how] = float(np.mean(covered)) if covered else None
    for check in rows[0]["checks"]:
        told = [row["checks"][check] for row in rows]
        p = np.array([np.nan if one["p_value"] is None else one["p_value"] for one in told], float)
        noise = np.array([np.nan if one["noise"] is None else one["noise"] for one in told], float)
        found["checks"][check] = {
            "p01": float(np.mean(p < 0.01)),
            "p001": float(np.mean(p < 0.001)),
            "noise": float(np.nanmean(noise)) if np.isfinite(noise).any() else None,
            "verdicts": dict(Counter(one["verdict"] for one in told)),
        }
    found["verdicts"] = dict(Counter(row["verdict"] for row in rows))
    found["seconds"] = float(np.mean([row["seconds"] for row in rows]))
    return found


def added(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Two results of one world, of different seeds, as one."""
    seeds = old["seeds"], new["seeds"]
    both = {**new, "seeds": sum(seeds), "off": {}, "covered": {}, "checks": {}}

    def mean(*values: float | None) -> float | None:
        known = [(v, n) for v, n in zip(values, seeds, strict=True) if v is not None]
        return sum(v * n for v, n in known) / sum(n for _, n in known) if known else None

    for how, one in new["off"].items():
        before = old["off"].get(how) or {"mean": None, "sd": None, "made": 0.0}
        centre = mean(before["mean"], one["mean"])
        squares = [
            None if part["mean"] is None else part["sd"] ** 2 + (part["mean"] - centre) ** 2
            for part in (before, one)
        ]
        square = mean(*squares)
        both["off"][how] = {
            "mean": centre,
            "sd": None if square is None else square**0.5,
            "made": mean(before["made"], one["made"]),
        }
        both["covered"][how] = mean(old["covered"].get(how), new["covered"].get(how))
    for check, one in new["checks"].items():
        before = old["checks"].get(check, {"p01": 0.0, "p001": 0.0, "noise": None, "verdicts": {}})
        numbers = {name: mean(before[name], one[name]) for name in ("p01", "p001", "noise")}
        told = dict(Counter(before["verdicts"]) + Counter(one["verdicts"]))
        both["checks"][check] = {**numbers, "verdicts": told}
    both["verdicts"] = dict(Counter(old["verdicts"]) + Counter(new["verdicts"]))
    both["seconds"] = mean(old["seconds"], new["seconds"])
    return both


def in_short(found: dict[str, Any]) -> str:
    """A few lines of text."""
    n = found["seeds"]
    off = ", ".join(
        f"{how or 'plain'} {v['mean']:+.3f} ± {v['sd']:.3f} covers {found['covered'][how]:.0%}"
        for how, v in found["off"].items()
        if v["mean"] is not None
    )
    said = ", ".join(f"{word} {many / n:.1%}" for word, many in sorted(found["verdicts"].items()))
    caught = ", ".join(
        f"{name} {sum(one['verdicts'].get(w, 0) for w in ('caution', 'serious')) / n:.0%}"
        f" ({one['p01']:.0%}/{one['p001']:.0%}"
        + (f", noise {one['noise']:.2f})" if one["noise"] is not None else ")")
        for name, one in found["checks"].items()
        if one["p01"] > 0.02 or one["noise"] is not None
    )
    lacking = set(COLUMNS) - set(found["columns"])
    without = f" without {', '.join(sorted(lacking))}" if lacking else ""
    return (
        f"{found['world']}{without}, {found['pairs']:,} pairs, {n} seeds: {said}\n"
        f"  off: {off}\n  caught: {caught}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.verdicts", description=__doc__
    )
    parser.add_argument("--world", choices=WORLDS.names, action="append")
    parser.add_argument("--pairs", default="2000,35000,100000")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--without", default="")
    parser.add_argument("--curve", default="auto")
    parser.add_argument("--add", action="store_true", help="count seeds together with those there")
    parser.add_argument("--page-only", action="store_true", help="only write the page again")
    asked = parser.parse_args()
    columns = tuple(c for c in COLUMNS if c not in asked.without.split(","))
    seeds = range(asked.first, asked.first + asked.seeds)
    sizes = [] if asked.page_only else [int(size) for size in asked.pairs.split(",")]
    for pairs in sizes:
        for name in asked.world or WORLDS.names:
            found = run(name, pairs, seeds, asked.strength, columns, asked.curve, asked.jobs)
            results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            key = f"{name}, {pairs}, {','.join(columns) or 'none'}, {asked.strength:g}"
            results[key] = added(results[key], found) if asked.add and key in results else found
            write_text(RESULTS, json.dumps(results, indent=1) + "\n")
            print(in_short(found), flush=True)
    write_page(json.loads(RESULTS.read_text()))


def write_page(results: dict[str, dict[str, Any]]) -> None:
    """Put the tables between the two marks of their pages; the words around them stay."""
    usual = [found for found in results.values() if found["strength"] == 1]
    parts = []
    for pairs in sorted({found["pairs"] for found in usual}):
        here = [found for found in usual if found["pairs"] == pairs]
        for valid, title in ((True, "the curve is right"), (False, "it is wrong")):
            rows = [found for found in here if found["valid"] == valid]
            if rows:
                rows.sort(
                    key=lambda found: (WORLDS.names.index(found["world"]), -len(found["columns"]))
                )
                parts.append(_table(f"{pairs:,} pairs, worlds in which {title}", rows))
    _put(PAGE, "\n\n".join(parts))
    _put(IN_SHORT, _sums(usual))


def _put(page: Path, tables: str) -> None:
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN, 1)
    write_text(page, f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.split(END, 1)[1]}")


def _sums(usual: list[dict[str, Any]]) -> str:
    """What is said in worlds of one sort, all their seeds together."""

    def sort_of(found: dict[str, Any]) -> str:
        if found["valid"]:
            return "the curve is right"
        if abs(WORLDS.get(found["world"]).bias) <= HARM:
            return "an assumption is broken, the curve is off by 10% at most"
        columns = "with" if found["columns"] else "without"
        return f"the curve is off by more than 10%, {columns} columns"

    lines = [
        f"| pairs | worlds in which | worlds | seeds | {' | '.join(WORDS)} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    sorts = {(found["pairs"], not found["valid"], sort_of(found)) for found in usual}
    for pairs, _, sort in sorted(sorts):
        some = [f for f in usual if f["pairs"] == pairs and sort_of(f) == sort]
        seeds = sum(found["seeds"] for found in some)
        said = [sum(found["verdicts"].get(word, 0) for found in some) for word in WORDS]
        shares = " | ".join(f"{many / seeds:.1%}" for many in said)
        lines.append(f"| {pairs:,} | {sort} | {len(some)} | {seeds:,} | {shares} |")
    return "\n".join(lines)


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    lines = [
        f"### {title}",
        "",
        "| world | seeds | off | by score | by ranker | good | cannot tell | caution | serious | "
        "objecting |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for found in rows:
        n = found["seeds"]
        lacking = [column for column in COLUMNS if column not in found["columns"]]
        name = f"`{found['world']}`" + (" without columns" if len(lacking) == len(COLUMNS) else "")
        off = [
            f"{one['mean']:+.2f}" if one and one["mean"] is not None and one["made"] > 0.5 else "–"
            for one in (found["off"].get(how) for how in ADJUSTED)
        ]
        said = [f"{found['verdicts'].get(word, 0) / n:.1%}" for word in WORDS]
        caught = {
            check: sum(one["verdicts"].get(w, 0) for w in ("caution", "serious")) / n
            for check, one in found["checks"].items()
            if check not in ("trend", "click probabilities")
        }
        most = sorted(caught.items(), key=lambda one: -one[1])[:3]
        told = ", ".join(f"{check} {share:.0%}" for check, share in most if share >= 0.05)
        cells = [name, str(n), *(cell.replace("-", "−") for cell in off), *said, told or "–"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
