"""In which order tests are run, and with how many threads."""

import os

import pytest

# Libraries of numbers, which are not loaded yet, start as many threads as there are cores. Workers
# share these: threads of theirs would wait for each other, in loops that take all the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What forks comes first, from processes that have loaded little; then what takes long: at the
    end no core waits for the last long one of another."""
    items.sort(
        key=lambda item: (
            item.path.name != "test_mutants.py",
            not item.get_closest_marker("spark"),
            not item.get_closest_marker("slow"),
        )
    )
