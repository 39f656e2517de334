from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give code that handles an interrupt enough time on a busy machine."""
    monkeypatch.setattr("agentdouble.sandbox.kernel.INTERRUPT_GRACE_S", 30)
