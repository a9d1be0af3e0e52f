"""Who takes part and what is shown: Python, JavaScript and SQL decide the same, as was planned."""

import json
import os
import subprocess
from collections import Counter
from itertools import permutations
from pathlib import Path

import duckdb
import numpy as np
import playwright
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdrift.core.dialects import DIALECTS
from rankdrift.core.errors import BadOption
from rankdrift.experiments import assigning
from rankdrift.experiments.designs import allocation, fairpairs, random_pair, shuffle, swap, swaps
from rankdrift.experiments.experiment import Experiment

NODE = Path(playwright.__file__).parent / "driver" / "node"
SIZE = 10
IDS = [f"{i} ü'{i % 7}\\" for i in range(2_500)]
EXPERIMENTS = [
    Experiment("one swap", swap(1, 5), share=0.3),
    Experiment("o'x\\", swaps([(1, 2), (2, 5), (3, 7)], [0.5, 0.2, 0.3]), share=0.6),
    Experiment("pairs", fairpairs(2, 9), share=0.9, salt="another"),
    Experiment("all", shuffle(1, 6), share=1.0, unit="user"),
]
# A share of 2,500 draws is within four standard errors.
FOUR_ERRORS = 4 * 0.5 / np.sqrt(len(IDS))


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_three_languages_decide_the_same_on_ten_thousand_ids(experiment):
    here = [experiment.assign(each, SIZE) for each in IDS]
    program = (
        "const a = require(process.argv[1]);"
        "const [e, ids, n] = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(ids.map((id) => a.assign(e, id, n))));"
    )
    script = Path(assigning.__file__).with_name("assign.js")
    done = subprocess.run(
        [NODE, "-e", program, os.fspath(script)],
        input=json.dumps([experiment.to_dict(), IDS, SIZE]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [tuple(order) if order else None for order in json.loads(done.stdout)] == here
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t AS SELECT unnest(?) AS id", [IDS])
        rows = database.execute(
            f"SELECT id, rank, {experiment.sql(unit='id')} FROM"
            f" (SELECT id, unnest(range(1, {SIZE + 1})) AS rank FROM t)"
        ).fetchall()
    found = {each: [0] * SIZE for each in IDS}
    part = {}
    for each, rank, randomised, shown in rows:
        found[each][shown - 1] = rank
        part[each] = randomised
    assert [tuple(found[each]) if part[each] else None for each in IDS] == here
    assert abs(np.mean([order is not None for order in here]) - experiment.share) < FOUR_ERRORS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sql_is_sql_in_every_dialect(dialect):
    for experiment in EXPERIMENTS:
        sqlglot.parse_one(f"SELECT {experiment.sql(dialect=dialect)} FROM t", dialect=dialect)


@pytest.mark.parametrize(
    "design",
    [swap(2, 4), swaps([(1, 2), (2, 5)], [0.3, 0.7]), random_pair(1, 4), fairpairs(1, 5)],
    ids=["swap", "swaps", "random pair", "fairpairs"],
)
def test_docs_are_shown_where_the_allocation_says(design):
    experiment = Experiment("x", design, share=1.0)
    found = np.zeros((6, 6))
    for each in IDS:
        for shown, before in enumerate(experiment.assign(each, 6)):
            found[before - 1, shown] += 1 / len(IDS)
    assert np.abs(found - allocation(design, 6)).max() < FOUR_ERRORS
    assert np.allclose(allocation(design, 6).sum(axis=0), 1)
    assert np.allclose(allocation(design, 6).sum(axis=1), 1)


def test_a_shuffle_has_every_order_as_often():
    experiment = Experiment("x", shuffle(2, 4), share=1.0)
    orders = Counter(experiment.assign(each, 5) for each in IDS)
    assert set(orders) == {(1, *order, 5) for order in permutations((2, 3, 4))}
    assert all(abs(n / len(IDS) - 1 / 6) < FOUR_ERRORS for n in orders.values())
    assert np.allclose(allocation(experiment.design)[1:, 1:], 1 / 3)


def test_neighbours_are_swapped_independently_of_each_other():
    experiment = Experiment("x", fairpairs(1, 4), share=1.0)
    orders = Counter(experiment.assign(each, 4) for each in IDS)
    # 1-2 and 3-4 by themselves, half of the time; 2-3, the other half.
    assert set(orders) == {(1, 2, 3, 4), (2, 1, 3, 4), (1, 2, 4, 3), (2, 1, 4, 3), (1, 3, 2, 4)}
    assert abs(orders[2, 1, 4, 3] / len(IDS) - 1 / 8) < FOUR_ERRORS


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=8), st.integers(0, 12), st.sampled_from(EXPERIMENTS))
def test_an_order_is_of_all_ranks_and_does_not_depend_on_anything_else(unit, size, experiment):
    order = experiment.assign(unit, size)
    assert order == experiment.assign(unit, size)
    if size < assigning.deepest(experiment.design):
        assert order is None
    if order is not None:
        assert sorted(order) == list(range(1, size + 1))
        docs = [f"doc {i}" for i in range(size)]
        shown, original, randomised = experiment.arrange(unit, docs)
        assert randomised and [docs[rank - 1] for rank in original] == shown


def test_lists_too_short_docs_twice_and_the_switch():
    experiment = Experiment("x", swap(1, 5), share=1.0)
    assert experiment.arrange("a", list("abcd")) == (list("abcd"), (1, 2, 3, 4), False)
    assert experiment.assign("a", 5) is not None
    assert experiment.switched(False).assign("a", 5) is None
    with pytest.raises(BadOption, match="1 of 5 docs are there twice"):
        experiment.arrange("a", list("abcda"))


def test_searches_and_salts_are_drawn_by_themselves():
    one, other = (Experiment("x", swap(1, 2), share=0.5, salt=salt) for salt in ("a", "b"))
    both = [(one.assign(i, 2) is None, other.assign(i, 2) is None) for i in IDS]
    assert abs(np.mean([a == b for a, b in both]) - 0.5) < FOUR_ERRORS


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"design": {"kind": "swaps", "swaps": [[1, 1]], "chances": [1]}}, "two different ranks"),
        ({"design": {"kind": "swaps", "swaps": [], "chances": []}}, "swaps nothing"),
        ({"design": {"kind": "swaps", "swaps": [[1, 2]], "chances": [0.5]}}, "1 in all"),
        ({"design": {"kind": "shuffle", "first": 3, "last": 3}}, "2 to 50 ranks"),
        ({"design": {"kind": "magic"}}, "there are swaps, fairpairs and shuffle"),
        ({"design": swap(1, 5), "share": 0}, "above 0"),
        ({"design": swap(1, 5), "unit": "page"}, "use search or user"),
        ({"design": swap(1, 5), "never": [1, 2]}, "rank 1, which must never be touched"),
        ({"design": swap(1, 5), "never": [0]}, "ranks from 1 to 500, not 0"),
        ({"design": swap(1, 5), "name": " "}, "needs a name"),
    ],
)
def test_what_cannot_be_run_is_refused(options, told):
    with pytest.raises(BadOption, match=told):
        Experiment(**{"name": "x", **options})


def test_a_file_is_read_as_written_and_its_switch_can_be_turned(tmp_path):
    path = tmp_path / "x.json"
    for experiment in EXPERIMENTS:
        experiment.save(path)
        assert Experiment.load(path).to_dict() == experiment.to_dict()
    path.write_text(path.read_text().replace('"on": true', '"on": false'))
    assert not Experiment.load(path).on
    path.write_text(path.read_text().replace('"share": 1.0', '"share": 0.5'))
    with pytest.raises(BadOption, match="changed since it was written"):
        Experiment.load(path)
    deep = "[" * 100_000
    for text, told in [
        ("{", "no JSON"),
        (deep, "no JSON"),
        ("{}", "no experiment"),
        ("[]", "no experiment"),
    ]:
        path.write_text(text)
        with pytest.raises(BadOption, match=told):
            Experiment.load(path)
    with pytest.raises(BadOption, match="Cannot read"):
        Experiment.load(tmp_path / "none.json")


def test_the_file_that_decides_needs_nothing_but_python():
    script = Path(assigning.__file__).read_text()
    done = subprocess.run(
        [
            "python3",
            "-I",
            "-S",
            "-c",
            f"{script}\nprint(assign({EXPERIMENTS[0].to_dict()!r}, 'a', 9))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == repr(EXPERIMENTS[0].assign("a", 9))
