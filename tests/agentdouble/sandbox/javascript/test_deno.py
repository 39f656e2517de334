from __future__ import annotations

import sys

import pytest

from agentdouble.sandbox.javascript import deno
from tests.agentdouble.sandbox.javascript.session import Session, failure

pytestmark = pytest.mark.once


def test_a_missing_deno_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without deno the error names the pip command."""
    monkeypatch.setitem(sys.modules, "deno", None)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agentdouble\[emulator\]'"):
        deno.find()


def test_a_kernel_without_deno_answers_every_cell_so() -> None:
    """A kernel whose engine cannot start lives and says why."""
    session = Session(deno="/nowhere/deno")
    try:
        error = failure(session("1"))

        assert "EngineNotStarted" == error.ename
        assert "/nowhere/deno" in (error.evalue or "")
    finally:
        session.close()
