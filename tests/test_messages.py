"""What holds for every message, whoever writes it: read from the source, as no run has them all."""

import ast
import re
from pathlib import Path

import rankdrift

SOURCE = Path(rankdrift.__file__).parent
THINGS = (
    "rows pairs clicks ranks queries searches segments days files comparisons buckets features "
    "columns replays rounds values results groups samples docs checks"
).split()
COUNTED = re.compile(rf"^ (?:usable |listed |more )?(?:{'|'.join(THINGS)})\b")
OF_MANY = re.compile(r"\b(?:of|one in) (?:the )?(?:first )?$")  # "1 of 20 rows" has its plural
# There are two or more of these wherever the sentence is printed, or a form for one is beside it.
MORE_THAN_ONE = {
    "len(options)",
    "period",
    "counts.n_clicks",
    "log.rules.window",
    "window",
    "span",
    "len(source.paths)",
    "len(of(kind))",
    "c.bootstrap",
    "' or '.join(map(str, sorted(many)))",
    "most",
}
LARGE = "reproduce"  # its sizes are fixed, in thousands


def f_strings():
    """(file, what stands before, the value, what stands after) of every value in a message."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [None, *node.values, None]
                for before, part, after in zip(parts, parts[1:], parts[2:], strict=False):
                    if isinstance(part, ast.FormattedValue):
                        around = (str(getattr(side, "value", "")) for side in (before, after))
                        yield path.relative_to(SOURCE), next(around), part.value, next(around)


def test_things_are_counted_by_the_one_function_that_knows_of_one():
    """`many(1, "row")` is 1 row, while {n:,} and " rows" would be 1 rows."""
    found = [
        (str(path), ast.unparse(value), after)
        for path, before, value, after in f_strings()
        if COUNTED.match(after)
        and not OF_MANY.search(before)
        and not ast.unparse(value).isupper()
        and not ast.unparse(value).startswith("verb(")
        and ast.unparse(value) not in MORE_THAN_ONE
        and LARGE not in path.parts
        and "ranking" not in path.parts
    ]
    assert not found


def test_ranks_are_named_by_the_one_function_that_knows_of_one():
    """`named_ranks([3])` is rank 3, while "ranks " and `ranges([3])` would be ranks 3."""
    found = [
        (str(path), before, ast.unparse(value))
        for path, before, value, _ in f_strings()
        if re.search(r"\branks? $", before) and ast.unparse(value).startswith("ranges(")
    ]
    assert not found
