from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No platform of the developer's own is reached by a test."""
    for variable in ("URL", "API_KEY"):
        monkeypatch.delenv(f"DOUBLECHECK_{variable}", raising=False)
    for variable in ("TOOL_ID", "TOOL_HOST", "TOOL_SCHEME", "TOOL_REGION", "TOOL_TTL"):
        monkeypatch.delenv(f"PLATFORM_{variable}", raising=False)
    for variable in ("ACCESS_KEY", "SECRET_KEY"):
        monkeypatch.delenv(f"PLATFORM_{variable}", raising=False)
