"""Both servers, started once for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_targets.agents.servers import INSTALL, both, has_both


@pytest.fixture(scope="package", params=[(), ("--state", "sqlite:///state.db")], ids=["", "kept"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The addresses of ``adk api_server`` and of the double, in memory and with a database."""
    python = os.environ.get("DOUBLECHECK_ADK_PYTHON", "")
    if not python or not has_both(python):
        pytest.skip(f"DOUBLECHECK_ADK_PYTHON names no Python with both: {INSTALL}")
    folder: Path = tmp_path_factory.mktemp("agents")
    with both(python, folder, request.param) as addresses:
        yield addresses
