"""A longer limit for the tests of nodes: a cluster takes its time to start."""

from __future__ import annotations

from pathlib import Path

import pytest

LIMIT_S = 600
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the limit of each test in this folder."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
