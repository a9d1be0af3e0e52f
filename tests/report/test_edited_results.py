"""Results that somebody edited: a page, or an error that names the field; nothing else."""

import copy
import json
import random

import pytest
from support import curve_example
from support.results_example import made

from rankdrift import Propensities, make_report
from rankdrift.core.errors import RankdriftError
from rankdrift.diagnosis.diagnosing import diagnose

ODD = (
    None, "x", "", "1", -1, 0, 1.5, 1e308, float("nan"), float("inf"), 10**30, True,
    [], {}, [None], {"a": 1}, "\ud800",
)  # fmt: skip
EDITS = 60


def propensities(path):
    curve_example.by_device().save(path)
    return {**json.loads(path.read_text()), "digest": None}


def document(kind, path):
    if kind == "propensities":
        return propensities(path)
    if kind == "truth":
        return made().truth
    result = diagnose(made().counts) if kind == "diagnosis" else getattr(made(), kind)
    return json.loads(json.dumps(result.to_dict()))


def places(value, at=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*at, key)
        if isinstance(item, dict | list):
            yield from places(item, (*at, key))


def edited(value, rng):
    value = copy.deepcopy(value)
    *way, last = rng.choice(list(places(value)))
    holder = value
    for key in way:
        holder = holder[key]
    if rng.random() < 0.2:
        del holder[last]
    else:
        holder[last] = copy.deepcopy(rng.choice(ODD))
    return value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["rankers", "methods", "click_models", "diagnosis", "truth", "propensities"]
)
def test_an_edited_result_is_a_page_or_an_error(kind, tmp_path):
    path = tmp_path / "result.json"
    whole, rng = document(kind, path), random.Random(kind)
    with_curve = [made().curve] if kind == "truth" else []
    refused = 0
    for _ in range(EDITS):
        path.write_text(json.dumps(edited(whole, rng)))
        try:
            make_report([path, *with_curve])
            if kind == "propensities":
                used(Propensities.load(path), tmp_path)
        except RankdriftError as error:
            assert "result.json" in str(error)
            refused += 1
    assert 0 < refused < EDITS


def used(curve, folder):
    repr(curve), curve.summary(), curve.table(), curve.interval(simultaneous=True)
    curve.weights(curve.ranks, clip=10)
    for ending in ("json", "parquet", "csv"):
        curve.save(folder / f"again.{ending}")


def judged(document):
    return next(row for row in document["table"] if row["improvement"] is not None)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("rankers", lambda d: judged(d).update(p_value="0.1"), r"table\.p_value is '0\.1'"),
        ("rankers", lambda d: judged(d).pop("sd"), r"table\.sd is missing"),
        ("methods", lambda d: d["table"]["loglog"].__setitem__(0, "1"), r"table\.loglog is '1'"),
        ("methods", lambda d: d["distances"][0].update(low=float("inf")), r"distances\.low is inf"),
        ("diagnosis", lambda d: d.update(verdict="fine"), "verdict is 'fine', not one of good"),
        ("propensities", lambda d: d["curves"][0].update(method=3), r"curves\.method is 3"),
        ("propensities", lambda d: d["curves"][0].update(df=-2), r"curves\.df is -2"),
    ],
)
def test_the_field_is_named(kind, change, words, tmp_path):
    path = tmp_path / "result.json"
    found = document(kind, path)
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(RankdriftError, match=words):
        make_report([path])


@pytest.mark.filterwarnings("ignore")
def test_an_interval_that_is_there_at_some_ranks_only(tmp_path):
    found = document("methods", tmp_path)
    name = next(name for name in found["table"] if f"{name}_low" in found["table"])
    found["table"][f"{name}_low"][2] = None
    path = tmp_path / "methods.json"
    path.write_text(json.dumps(found))
    with pytest.raises(RankdriftError, match="intervals at some of its ranks only"):
        make_report([path])
