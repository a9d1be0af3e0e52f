"""In which order and by which worker tests are run, and with how many threads."""

import os

import pytest

# Libraries of numbers, which are not loaded yet, start as many threads as there are cores. Workers
# share these: threads of theirs would wait for each other, in loops that take all the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Tests that share what their file makes once go to one worker, as each would make its own.
    What forks comes first, from processes that have loaded little; then what takes long: at the
    end no core waits for the last long one of another."""
    for item in items:
        made_once = any(
            fixture.scope == "module"
            for fixtures in item._fixtureinfo.name2fixturedefs.values()
            for fixture in fixtures
        )
        if made_once and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name} {item.path.stem}"))
    result = yield
    items.sort(
        key=lambda item: (
            item.path.name != "test_mutants.py",
            not item.get_closest_marker("spark"),
            not item.get_closest_marker("slow"),
        )
    )
    return result
