"""The tables of docs/accuracy.md, from the results."""

from pathlib import Path
from typing import Any

from benchmarks.accuracy.scenarios import SCENARIOS
from rankdrift.core.files import write_text

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
BEGIN, END = "<!-- tables: made by python -m benchmarks.accuracy -->", "<!-- end of tables -->"
SURE = 2.0
SIZES = ("size-1000", "size-10000", "size-100000", "size-1000000")


def in_short(name: str, found: dict[str, Any]) -> str:
    lines = [f"{name}: {found['repetitions']} repetitions, {found['seconds']:.0f} s"]
    for estimator, entry in found["estimators"].items():
        if "blocks" not in entry:
            lines.append(f"  {estimator:24} failed {entry['failed']} times: {entry['says'][:90]}")
            continue
        worst = max(entry["blocks"], key=lambda b: abs(b["bias"]) / max(b["bias_error"], 1e-12))
        lines.append(
            f"  {estimator:24} rmse {entry['rmse']:.4f}  coverage {_percent(entry['coverage'])}  "
            f"efficiency {_efficiency(entry)}  worst bias {worst['bias']:+.4f} ± "
            f"{worst['bias_error']:.4f} at {worst['first']}–{worst['last']}  "
            f"{entry['seconds']:.2f} s"
        )
    return "\n".join(lines)


def write(results: dict[str, Any]) -> None:
    """Put the tables between the two marks of the page; the words around them stay."""
    results = {name: results[name] for name in SCENARIOS if name in results}
    old = PAGE.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    write_text(PAGE, f"{before}{BEGIN}\n\n{tables(results)}\n{END}{after}")


def tables(results: dict[str, Any]) -> str:
    parts = [overview(results)]
    if all(name in results for name in SIZES):
        parts.append(slope(results))
    parts += [detail(name, found) for name, found in results.items() if name not in SIZES]
    return "\n".join(parts)


def overview(results: dict[str, Any]) -> str:
    lines = [
        "### All scenarios at a glance",
        "",
        "| scenario | estimator | RMSE of log p | blocks with a bias | all blocks, p "
        "| 95% covers | efficiency |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in results.items():
        for estimator, entry in found["estimators"].items():
            if "blocks" not in entry:
                lines.append(f"| {name} | {estimator} | could not be made | | | | |")
                continue
            biased = [b for b in entry["blocks"] if abs(b["bias"]) > SURE * b["bias_error"]]
            word = f"{estimator}" if entry["holds"] else f"*{estimator}*"
            lines.append(
                f"| {name} | {word} | {entry['rmse']:.3f} | {len(biased)} of "
                f"{len(entry['blocks'])} | {_p_value(entry['bias_p'])} | "
                f"{_percent(entry['coverage'])} | {_efficiency(entry)} |"
            )
    return "\n".join([*lines, ""])


def slope(results: dict[str, Any]) -> str:
    lines = [
        "### From 1,000 to 1,000,000 pairs",
        "",
        "| pairs | RMSE of log p | times √pairs | 95% covers | efficiency |",
        "|---|---|---|---|---|",
    ]
    for name in SIZES:
        entry = results[name]["estimators"]["loglog"]
        n = int(name.split("-")[1])
        lines.append(
            f"| {n:,} | {entry['rmse']:.4f} | {entry['rmse'] * n**0.5:.1f} | "
            f"{_percent(entry['coverage'])} | {_efficiency(entry)} |"
        )
    return "\n".join([*lines, ""])


def detail(name: str, found: dict[str, Any]) -> str:
    lines = [f"### {found['title']}", "", f"`{name}`, {found['repetitions']} repetitions."]
    if found["note"]:
        lines[-1] += f" Note: {found['note']}."
    blocks = max((e.get("blocks", []) for e in found["estimators"].values()), key=len)
    heads = [
        f"{b['first']}–{b['last']}" if b["last"] > b["first"] else f"{b['first']}" for b in blocks
    ]
    lines += [
        "",
        f"| bias ± its error; RMSE | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for estimator, entry in found["estimators"].items():
        cells = {b["first"]: b for b in entry.get("blocks", [])}
        row = [
            f"{cells[b['first']]['bias']:+.3f} ± {cells[b['first']]['bias_error']:.3f}; "
            f"{cells[b['first']]['rmse']:.3f}"
            if b["first"] in cells
            else "–"
            for b in blocks
        ]
        lines.append(f"| {estimator} | {' | '.join(row)} |")
    return "\n".join([*lines, ""])


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _p_value(p: float | None) -> str:
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _efficiency(entry: dict[str, Any]) -> str:
    told = entry.get("efficiency")
    return f"{told['share']:.0%} ± {told['error']:.0%}" if told else "–"
