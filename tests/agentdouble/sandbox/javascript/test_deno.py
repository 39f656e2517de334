from __future__ import annotations

import sys

import pytest

from agentdouble.sandbox.javascript import deno
from tests.agentdouble.sandbox.javascript.session import Session, failure

pytestmark = pytest.mark.once


def test_a_missing_deno_error_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "deno", None)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agentdouble\[emulator\]'"):
        deno.find()


def test_a_kernel_without_deno_survives_and_says_why() -> None:
    """Every cell gets the same error."""
    session = Session(deno="/nowhere/deno")
    try:
        error = failure(session("1"))

        assert "EngineNotStarted" == error.ename
        assert "/nowhere/deno" in (error.evalue or "")
    finally:
        session.close()
