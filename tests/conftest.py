"""In which order tests are run."""

import pytest


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
