"""Checks of the agent-side tool run_code (RUN)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import environment, run_code
from agentdouble.errors import CredentialsMissingError, PlatformError, ToolIdMissingError
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.leftovers import Leftovers

if TYPE_CHECKING:
    from doublecheck.fixtures import PlatformEnv

WRONG = {environment.ACCESS_KEY: "AKLTnobody", environment.SECRET_KEY: "wrong"}


@pytest.fixture
def state(leftovers: Leftovers) -> dict[str, Any]:
    """The state of a tool context: a session that no other check uses."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    return {
        "user_id": "doublecheck",
        "session_id": session_id,
        environment.TOOL_TTL: "120",
    }


@clause("RUN-01")
def test_it_returns_the_result(platform_env: PlatformEnv, state: dict[str, Any]) -> None:
    """The call takes code and language, and returns the JSON of 2.7."""
    result, data = wire.inner({"Result": run_code("print(6 * 7)", "python3", state)})

    told = (result.get("success"), data.get("status"), data.get("code"))
    assert (True, "ok", "print(6 * 7)") == told
    assert ["42\n"] == [output.get("text") for output in data.get("outputs", ())]


@clause("RUN-02")
def test_it_says_that_the_tool_id_is_missing(
    platform_env: PlatformEnv, state: dict[str, Any]
) -> None:
    """The error names the variable."""
    platform_env.unset(environment.TOOL_ID)

    with pytest.raises(ToolIdMissingError, match="PLATFORM_TOOL_ID"):
        run_code("1", "python3", state)


@clause("RUN-03")
def test_the_contexts_credentials_come_first(
    platform_env: PlatformEnv, state: dict[str, Any]
) -> None:
    """Wrong credentials in the context are refused although the environment's are right."""
    with pytest.raises(PlatformError):
        run_code("1", "python3", {**state, **WRONG})


@clause("RUN-03")
def test_the_environments_credentials_come_next(
    platform_env: PlatformEnv, state: dict[str, Any]
) -> None:
    """Without credentials in the context, the environment's are used."""
    result, _ = wire.inner({"Result": run_code("1", "python3", state)})

    assert result.get("success") is True, result


@clause("RUN-03")
def test_it_says_that_credentials_are_missing(
    platform_env: PlatformEnv, state: dict[str, Any]
) -> None:
    """Without both, the error names both variables."""
    platform_env.unset(environment.ACCESS_KEY, environment.SECRET_KEY)

    with pytest.raises(CredentialsMissingError, match=r"PLATFORM_ACCESS_KEY.*PLATFORM_SECRET_KEY"):
        run_code("1", "python3", state)
