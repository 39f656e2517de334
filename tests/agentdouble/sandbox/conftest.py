from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that heeds an interrupt has all the time that a busy machine needs for it."""
    monkeypatch.setattr("agentdouble.sandbox.kernel.INTERRUPT_GRACE_S", 30)
