"""A comparison as a table: for programs, for a paper, for a notebook."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import write_text
from rankdrift.core.notebook import html_table
from rankdrift.core.version import __version__
from rankdrift.ranking.comparison import Comparison, Improvement, Pair, percent

COLUMNS = (
    "measure", "rank", "rows", "clicks", "model", "value", "baseline", "improvement", "sd",
    "p_value", "note",
)  # fmt: skip
ENDINGS = (".csv", ".json", ".tex", ".png", ".svg", ".html")


def table(c: Comparison) -> dict[str, list[Any]]:
    rows = list(_rows(c))
    return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}


def _rows(c: Comparison) -> Iterator[tuple[Any, ...]]:
    for at in c.at_rank:
        yield from _lines(c, ("AUC", at.rank, at.rows, at.clicks), at.auc, at.improvements, at.gap)
    yield from _lines(c, ("AUC, all ranks", None, None, None), {}, c.overall, None)
    for measure in c.measures:
        yield from _lines(
            c, (measure.name, None, None, None), measure.value, measure.improvements, None
        )


def _lines(
    c: Comparison,
    head: tuple[Any, ...],
    value: Mapping[str, float],
    improvements: Mapping[Pair, Improvement],
    gap: str | None,
) -> Iterator[tuple[Any, ...]]:
    for model in c.models:
        bases = [base for base in c.baselines if base != model]
        for base in (*bases, *([] if bases else [None])):
            found = improvements.get((model, base)) if base else None
            told = (found.mean, found.sd, found.p_value) if found else (None, None, None)
            if value or found or gap:
                yield (*head, model, value.get(model), base, *told, gap)


def to_dict(c: Comparison) -> dict[str, Any]:
    columns = table(c)
    return {
        "rankdrift": __version__,
        "models": list(c.models),
        "baselines": list(c.baselines),
        "verdicts": c.verdicts,
        "bootstrap": c.bootstrap,
        "seed": c.seed,
        "queries": c.queries,
        "propensities": c.propensities,
        "remarks": list(c.remarks),
        "data": dict(c.data),
        "table": [
            dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
    }


def to_csv(c: Comparison) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows(c))
    return text.getvalue()


def to_latex(c: Comparison) -> str:
    heads = [f"{_tex(model)} over {_tex(base)}" for model, base in c.pairs]
    lines = [
        rf"\begin{{tabular}}{{r{'r' * len(heads)}}}",
        r"\hline",
        " & ".join(["Rank", *heads]) + r" \\",
        r"\hline",
    ]
    for at in c.at_rank:
        cells = [_tex_cell(at.improvements.get(pair)) for pair in c.pairs]
        lines.append(" & ".join([f"${at.rank}$", *cells]) + r" \\")
    cells = [_tex_cell(c.overall.get(pair)) for pair in c.pairs]
    lines += [r"\hline", " & ".join(["all", *cells]) + r" \\", r"\hline", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _tex_cell(found: Improvement | None) -> str:
    return "--" if found is None else rf"${100 * found.mean:.1f}\pm{100 * found.sd:.1f}\%$"


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


def to_html(c: Comparison) -> str:
    heads = ["rank", "clicks", *(f"AUC, {m}" for m in c.models),
             *(f"{m} over {b}" for m, b in c.pairs)]  # fmt: skip
    rows = []
    for at in c.at_rank:
        cells = [str(at.rank), f"{at.clicks:,} of {at.rows:,}"]
        if at.gap:
            rows.append([*cells, at.gap])
            continue
        cells += [f"{at.auc[m]:.4f}" for m in c.models]
        rows.append(cells + [percent(at.improvements.get(pair)) for pair in c.pairs])
    blank = ["all", "", *("" for _ in c.models)]
    rows.append(blank + [percent(c.overall.get(pair)) for pair in c.pairs])
    for measure in c.measures:
        cells = [measure.name, "", *(f"{measure.value[m]:.4f}" for m in c.models)]
        rows.append(cells + [percent(measure.improvements.get(pair)) for pair in c.pairs])
    told = "<br>".join(map(escape, [*c.verdicts, *c.remarks]))
    return f"<p>{told}</p>{html_table(heads, rows)}"


def check_ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise BadOption(
            f"A comparison cannot be written as {ending or 'a file without an ending'!r}."
            f"{did_you_mean(ending, ENDINGS)} Use {', '.join(ENDINGS)}."
        )
    return ending


def save(c: Comparison, path: str | os.PathLike[str]) -> None:
    ending = check_ending(path)
    if ending == ".csv":
        write_text(path, to_csv(c))
    elif ending == ".json":
        write_text(path, json.dumps(to_dict(c), indent=1, allow_nan=False) + "\n")
    elif ending == ".tex":
        write_text(path, to_latex(c))
    else:
        c.plot().save(path)
