"""Every artefact knows whether it is what was written: a single changed bit does not pass."""

import json
import random

import numpy as np
import pytest
from support import curve_example
from support.counts_example import by_device, with_comparisons
from support.results_example import made

from rankdrift.core.digests import KEY, MARK, digest, sealed, what_changed
from rankdrift.core.errors import RankdriftError
from rankdrift.core.lineage import lineage, made_by
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.ranker import Ranker
from rankdrift.report.results import gather

FLIPS = 40


def test_the_digest_is_of_the_content():
    plain = {"b": [1.5, None, "é"], "a": {"x": True}}
    stored = sealed(plain)
    again = json.loads(json.dumps(dict(reversed(stored.items())), indent=3, ensure_ascii=False))
    assert what_changed(again) is None
    assert what_changed(plain) is None  # of a version that wrote none
    assert KEY not in what_changed({**stored, "b": 1}, by_hand=False).split("Copy")[1]
    assert f'"{KEY}": null' in what_changed({**stored, "b": 1})
    assert digest(plain) == stored[KEY]


def save_ranker(path):
    Ranker("mine", "lightgbm", "tree\nof a kind", (), trees=3, history=(0.5, 0.25)).save(path)
    path.unlink()
    (path.parent / (path.name + ".meta.json")).rename(path)


def load_ranker(path):
    model = path.parent / "model.txt"
    model.write_text("tree\nof a kind")
    (path.parent / "model.txt.meta.json").write_bytes(path.read_bytes())
    return Ranker.load(model)


def saved(make):
    """What a verb prints of it with --json."""
    return lambda path: path.write_text(
        json.dumps(sealed(json.loads(json.dumps(make().to_dict()))))
    )


def told(comparisons):
    """What they tell: all but the digest, and a digest whose name is damaged is one more key."""
    names = made().rankers.to_dict()
    return [{name: one.get(name) for name in names} for one in comparisons]


ARTEFACTS = {
    "counts": (".parquet", with_comparisons().save, Counts.load, Counts.equals),
    "counts by segment": (".parquet", by_device().save, Counts.load, Counts.equals),
    "propensities": (
        ".json",
        curve_example.by_device().save,
        Propensities.load,
        Propensities.equals,
    ),
    "their columns": (
        ".parquet",
        curve_example.by_device().save,
        Propensities.load,
        Propensities.equals,
    ),
    "record": (".txt", save_ranker, load_ranker, lambda a, b: vars(a) == vars(b)),
    "comparison": (
        ".json",
        saved(lambda: made().rankers),
        gather,
        lambda a, b: told(a.rankers) == told(b.rankers),
    ),
    "methods": (
        ".json",
        saved(lambda: made().methods),
        gather,
        lambda a, b: a.methods == b.methods,
    ),
    "diagnosis": (
        ".json",
        saved(lambda: diagnose(made().counts)),
        gather,
        lambda a, b: a.diagnosis == b.diagnosis,
    ),
}


@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_flipped_bit_is_an_error_or_changes_nothing(name, tmp_path):
    ending, save, load, same = ARTEFACTS[name]
    path = tmp_path / f"artefact{ending}"
    save(path)
    written = path.read_bytes()
    whole = load(path)
    moment, refused = random.Random(name), 0
    for _ in range(FLIPS):
        flipped = bytearray(written)
        flipped[moment.randrange(len(flipped))] ^= 1 << moment.randrange(8)
        path.write_bytes(flipped)
        try:
            found = load(path)
        except RankdriftError as error:
            assert "artefact" in str(error) or "model.txt" in str(error)
            refused += 1
        else:
            assert same(found, whole)
    assert refused > FLIPS / 4


@pytest.mark.parametrize("name", ARTEFACTS)
def test_damage_to_the_name_of_the_digest_is_noticed(name, tmp_path):
    ending, save, load, _ = ARTEFACTS[name]
    path = tmp_path / f"artefact{ending}"
    save(path)
    written = path.read_bytes()
    path.write_bytes(written.replace(b'"digest"', b'"dihest"'))
    with pytest.raises(RankdriftError, match='its entry "digest" is missing'):
        load(path)
    path.write_bytes(written.replace(b'"sealed"', b'"sealee"'))
    with pytest.raises(RankdriftError, match="it was changed"):
        load(path)


def test_files_without_a_digest_are_read(tmp_path):
    """Of earlier versions, and edited by hand if they say so."""
    path = tmp_path / "p.json"
    curve_example.by_device().save(path, full=True)
    document = json.loads(path.read_text())
    document["level"] = 0.5
    path.write_text(json.dumps(document))
    with pytest.raises(RankdriftError, match='write "digest": null in it'):
        Propensities.load(path)
    path.write_text(json.dumps({k: v for k, v in document.items() if k != KEY}))
    with pytest.raises(RankdriftError, match='write "digest": null in it'):
        Propensities.load(path)
    path.write_text(json.dumps({k: v for k, v in document.items() if k not in (KEY, MARK)}))
    assert Propensities.load(path).equals(curve_example.by_device())
    path.write_text(json.dumps({**document, KEY: None}))
    assert Propensities.load(path).equals(curve_example.by_device())


def test_what_a_run_makes_says_so():
    document, arrays = {"a": 1}, [np.arange(3)]
    plain = sealed(document, iter(arrays))
    assert "lineage" not in plain
    with made_by("one", {"log": "abc"}):
        first = sealed(document, iter(arrays))
    with made_by("two", {"log": "abc"}):
        second = sealed(first, iter(arrays))  # written again, by another run
    assert first["lineage"] == {"run": "one", "inputs": {"log": "abc"}, "content": plain["digest"]}
    assert second["lineage"]["run"] == "two"
    assert second["lineage"]["content"] == plain["digest"] != second["digest"] != first["digest"]
    assert what_changed(first, arrays) is None
    forged = {**first, "lineage": {**first["lineage"], "run": "three"}}
    assert "it was changed" in what_changed(forged, arrays)
    assert lineage() is None
