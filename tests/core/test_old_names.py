"""Names of the version before still work, and say what to use instead."""

import sys
from importlib import import_module

import numpy as np
import pytest
from support.curve_example import by_device, small_counts

from rankdrift.core.moved import MOVED
from rankdrift.propensities.exports import sql_case


@pytest.mark.parametrize("old", MOVED)
def test_an_old_module_warns_and_has_what_the_new_one_has(old, monkeypatch):
    for name in [n for n in sys.modules if n.removeprefix("rankdrift.") in MOVED]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.warns(DeprecationWarning, match=f"rankdrift.{old} is now rankdrift.{MOVED[old]};"):
        found = import_module(f"rankdrift.{old}")
    new = import_module(f"rankdrift.{MOVED[old]}")
    assert found.__doc__ == new.__doc__
    public = [name for name in vars(new) if not name.startswith("_")]
    assert all(getattr(found, name) is getattr(new, name) for name in public)
    with pytest.raises(AttributeError):
        found.no_such_name  # noqa: B018  # asking for it is what must fail


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("rankdrift.no_such_module")


@pytest.mark.parametrize(("old", "new"), [("comparisons", "rank_pairs"), ("held", "overflow")])
def test_old_names_of_tables_of_counts(old, new):
    counts = small_counts()
    with pytest.warns(DeprecationWarning, match=f"^{old} is now {new}$") as warned:
        assert getattr(counts, old) is getattr(counts, new)
    assert warned[0].filename == __file__


def test_leaning_is_shrunk():
    p = by_device()
    with pytest.warns(DeprecationWarning, match="^leaning is now shrunk$") as warned:
        assert p.leaning is p.shrunk
    assert warned[0].filename == __file__


@pytest.mark.parametrize("shrunk", [True, False])
def test_leaning_as_an_option_is_shrunk(shrunk, tmp_path):
    p = by_device()
    segment = next(iter(p.by_segment))
    with pytest.warns(DeprecationWarning, match="^leaning= is now shrunk=$") as warned:
        found = p.segment(*segment, leaning=shrunk)
    assert warned[0].filename == __file__
    assert found is p.segment(*segment, shrunk=shrunk)
    with pytest.warns(DeprecationWarning, match="leaning= is now shrunk="):
        text = sql_case(p, by_segment=True, leaning=shrunk)
    assert text == sql_case(p, by_segment=True, shrunk=shrunk)
    with pytest.warns(DeprecationWarning, match="leaning= is now shrunk="):
        p.export(tmp_path / "w.sql", "sql", by_segment=True, leaning=shrunk)
    assert (tmp_path / "w.sql").read_text() == text + "\n"


def test_compare_of_two_curves_is_distance_to():
    p = by_device()
    other = next(iter(p.by_segment.values()))
    with pytest.warns(DeprecationWarning, match="^compare is now distance_to$") as warned:
        found = p.compare(other)
    assert warned[0].filename == __file__
    assert found == p.distance_to(other)
    assert np.isfinite(found["mean_percent"])
