"""Draws docs/figures/packages.svg from what the packages really import: make picture.

Rows are the layers of the import contract in pyproject.toml. An arrow says "imports"; arrows that
others imply are left out (where A imports B and B imports C, A may use C too), and so are the
imports of charts by methods named `plot`.
"""

import tomllib
from collections.abc import Iterable
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "figures" / "packages.svg"

Edge = tuple[str, str]

# What a box says below its name. A package that is not named here is drawn all the same.
WORDS = {
    "cli": "a file a verb",
    "pipeline": "the whole story",
    "reproduce": "the paper's figures and table",
    "monitoring": "the night job, drift",
    "report": "page and terminal",
    "simulate": "worlds of known truth",
    "charts": "one chart a file",
    "experiments": "plan, assign, analyse",
    "clickmodels": "a file a model",
    "judging": "Judgments",
    "methods": "other ways to the curve",
    "ranking": "Ranker, Comparison",
    "diagnosis": "a check a file",
    "estimation": "Counts → Propensities",
    "harvesting": "Log → Counts",
    "log": "Log, engines",
    "counts": "Counts",
    "propensities": "Propensities",
    "core": "errors, files, words, dialects",
}
# Where in its row a package stands, 0 to 1, so that the flow reads from left to right.
PLACES = {
    "pipeline": 0.3,
    "monitoring": 0.3,
    "reproduce": 0.75,
    "report": 0.2,
    "simulate": 0.72,
    "charts": 0.55,
    "experiments": 0.3,
    "clickmodels": 0.05,
    "methods": 0.3,
    "diagnosis": 0.5,
    "ranking": 0.85,
    "estimation": 0.62,
    "harvesting": 0.2,
    "log": 0.15,
    "counts": 0.48,
    "propensities": 0.82,
}
WIDTH, ROW, WIDE, HIGH = 760, 78, 190, 44


def layers() -> list[list[str]]:
    """The packages of each layer, top to bottom."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    of_layers = next(contract for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in of_layers["layers"]]


def imports() -> set[Edge]:
    """(A, B) where a module of package A imports one of B, wherever in its code."""
    graph = grimp.build_graph("rankdrift")
    rows = layers()
    depth = {name: row for row, names in enumerate(rows) for name in names}
    found = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            first, second = (name.split(".")[1:2] for name in (importer, imported))
            if first and second and first != second:
                found.add((first[0], second[0]))
    return {(a, b) for a, b in found if b != "charts" or depth[a] < depth["charts"]}


def without_implied(edges: Iterable[Edge]) -> list[Edge]:
    """The edges that no chain of others says already."""
    all_edges = set(edges)

    def reached(start: str) -> set[str]:
        found, waiting = set(), [start]
        while waiting:
            for a, b in all_edges:
                if a == waiting[-1] and b not in found:
                    found.add(b)
                    waiting.insert(0, b)
            waiting.pop()
        return found

    beyond = {name: reached(name) for edge in all_edges for name in edge}
    return sorted(
        (a, b)
        for a, b in all_edges
        if not any(b in beyond[c] for first, c in all_edges if first == a and c != b)
    )


def draw() -> str:
    """The picture as SVG."""
    rows = layers()
    at = {
        name: (PLACES.get(name, (i + 1) / (len(names) + 1)) * WIDTH, 14 + row * ROW)
        for row, names in enumerate(rows)
        for i, name in enumerate(names)
    }
    height = 14 + (len(rows) - 1) * ROW + HIGH + 14
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" text-anchor="middle">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#5a6b74"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for a, b in without_implied(imports()):
        (x1, y1), (x2, y2) = at[a], at[b]
        bend = (y2 - y1 - HIGH) / 2
        lines.append(
            f'<path d="M{x1:.0f} {y1 + HIGH:.0f}C{x1:.0f} {y1 + HIGH + bend:.0f} '
            f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2 - 1:.0f}" fill="none" stroke="#5a6b74" '
            'stroke-width="1.3" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in at.items():
        lines.append(
            f'<rect x="{x - WIDE / 2:.0f}" y="{y:.0f}" width="{WIDE}" height="{HIGH}" rx="6" '
            'fill="#e6f2f0" stroke="#00796b"/>'
            f'<text x="{x:.0f}" y="{y + 19:.0f}" font-size="15" font-weight="bold" '
            f'fill="#12312c">{escape(name)}</text>'
            f'<text x="{x:.0f}" y="{y + 35:.0f}" font-size="12" fill="#33524d">'
            f"{escape(WORDS.get(name, ''))}</text>"
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"Drew {PICTURE.relative_to(ROOT)}")
