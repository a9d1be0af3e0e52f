"""In which order tests are run."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What takes long comes first: at the end no core waits for the last long one of another."""
    items.sort(
        key=lambda item: (not item.get_closest_marker("spark"), not item.get_closest_marker("slow"))
    )
