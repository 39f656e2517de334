from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import postgresql


@pytest.fixture
def server() -> Iterator[postgresql.Server]:
    """A PostgreSQL server that the test may stop and start."""
    with postgresql.serving(postgresql.required()) as server:
        yield server
