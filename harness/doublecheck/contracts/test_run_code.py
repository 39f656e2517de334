"""Checks of the agent-side tool run_code (RUN)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import run_code
from agentdouble.core import environment
from agentdouble.errors import CredentialsMissingError, PlatformError, ToolIdMissingError
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_caller, for_each
from doublecheck.contracts.leftovers import Leftovers

if TYPE_CHECKING:
    from doublecheck.fixtures import PlatformEnv


class State(dict[str, Any]):
    """The state of a tool context."""


@for_caller.register
def _state_of_caller(state: State, number: int, _stack: ExitStack) -> State:
    return State({**state, "session_id": f"{state['session_id']}-{number}"})


PYTHON, JAVASCRIPT = "python3", "javascript"
KEYS = (environment.ACCESS_KEY, environment.SECRET_KEY)
WRONG = {environment.ACCESS_KEY: "AKLTnobody", environment.SECRET_KEY: "wrong"}
WRONG_SECRET = {environment.SECRET_KEY: "wrong"}
TYPES = {"success": "bool", "message": "str", "data": "dict"}
TYPES_OF_DATA = {
    **dict.fromkeys(("kernel_name", "session_id", "status", "code", "msg_id"), "str"),
    "execution_count": "int",
    "outputs": "list",
}
SEVERAL = """
import sys
print("first")
print("second", file=sys.stderr)
"third"
"""
FAILURES = {
    "runtime": ("print('before')\n1 / 0", PYTHON, "ZeroDivisionError"),
    "syntax": ("def f(:", PYTHON, "SyntaxError"),
    "javascript": ("throw new RangeError('on purpose')", JAVASCRIPT, "RangeError"),
}


@pytest.fixture
def state(leftovers: Leftovers) -> State:
    """The state of a tool context: a session that only this check uses."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    return State({"user_id": "doublecheck", "session_id": session_id, environment.TOOL_TTL: "120"})


@pytest.fixture
def keys(platform_env: PlatformEnv) -> Mapping[str, str]:
    """The key pair that the platform knows, which is also in the environment."""
    return {name: os.environ[name] for name in KEYS}


@clause("RUN-01")
@pytest.mark.parametrize(
    ("language", "code"), [(PYTHON, "print(6 * {})"), (JAVASCRIPT, "console.log(6 * {})")]
)
def test_it_returns_the_result(
    platform_env: PlatformEnv, state: State, language: str, code: str
) -> None:
    """Each call takes code and language, and returns the JSON of 2.7 with all its fields."""
    for number in (7, 8):
        result, data = _ran(code.format(number), state, language)

        assert TYPES == wire.types(result, TYPES)
        assert TYPES_OF_DATA == wire.types(data, TYPES_OF_DATA)
        assert (True, "ok", code.format(number)) == (
            result["success"],
            data["status"],
            data["code"],
        )
        assert f"{6 * number}\n" == _stream(data)


@clause("RUN-01")
@for_each(text=inputs.texts())
def test_it_runs_the_whole_code(platform_env: PlatformEnv, state: State, text: str) -> None:
    """Code of any length with any characters runs unchanged, and its output arrives unchanged."""
    code = f"import sys\nwritten = sys.stdout.write({text!r})"

    _, data = _ran(code, state)

    assert (code, text) == (data["code"], _stream(data))


@clause("RUN-01")
def test_it_returns_every_output(platform_env: PlatformEnv, state: State) -> None:
    """Both streams and the value of the last line arrive."""
    _, data = _ran(SEVERAL, state)

    values = [output["data"] for output in data["outputs"] if output.get("data")]
    assert ("first\n", "second\n") == (_stream(data), _stream(data, "stderr"))
    assert ["'third'"] == [value.get("text/plain") for value in values]


@clause("RUN-01")
@pytest.mark.parametrize("kind", list(FAILURES))
def test_it_returns_a_failure(platform_env: PlatformEnv, state: State, kind: str) -> None:
    """Failed code returns a result with name, value and traceback; the next code runs."""
    code, language, name = FAILURES[kind]
    for _ in range(2):
        _, data = _ran(code, state, language)

        failed = [output for output in data["outputs"] if output.get("ename")]
        assert [name] == [output["ename"] for output in failed]
        assert "ok" != data["status"]
        assert failed[0]["evalue"]
        assert failed[0]["traceback"]
        assert ("before\n" if "before" in code else "") == _stream(data)
        assert "ok" == _ran("1", state, language)[1]["status"]


@clause("RUN-02")
@pytest.mark.parametrize("value", [None, ""], ids=["absent", "empty"])
def test_it_says_that_the_tool_id_is_missing(
    platform_env: PlatformEnv, monkeypatch: pytest.MonkeyPatch, state: State, value: str | None
) -> None:
    """The error names the variable, also after a successful call; no other variable replaces it."""
    assert "ok" == _ran("1", state)[1]["status"]
    monkeypatch.setenv("TOOL_ID", os.environ[environment.TOOL_ID])
    platform_env.unset(environment.TOOL_ID)
    if value is not None:
        monkeypatch.setenv(environment.TOOL_ID, value)

    with pytest.raises(ToolIdMissingError, match="PLATFORM_TOOL_ID"):
        run_code("1", PYTHON, state)


@clause("RUN-03")
def test_the_contexts_credentials_come_first(
    keys: Mapping[str, str], state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context's credentials are used, right or wrong, whatever the environment has."""
    assert "ok" == _ran("1", {**state, **keys})[1]["status"]

    _refused({**state, **WRONG})
    _refused({**state, **keys, **WRONG_SECRET})
    _set(monkeypatch, WRONG)
    assert "ok" == _ran("2", {**state, **keys})[1]["status"]
    _set(monkeypatch, dict.fromkeys(KEYS))
    assert "ok" == _ran("3", {**state, **keys})[1]["status"]


@clause("RUN-03")
def test_the_environments_credentials_come_next(
    keys: Mapping[str, str], state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without credentials in the context, each call uses the environment's current ones."""
    assert "ok" == _ran("1", state)[1]["status"]

    for wrong in (WRONG, {**keys, **WRONG_SECRET}):
        _set(monkeypatch, wrong)
        _refused(state)
    _set(monkeypatch, keys)
    assert "ok" == _ran("2", state)[1]["status"]


@clause("RUN-03")
@pytest.mark.parametrize("present", [(), KEYS[:1], KEYS[1:]], ids=["none", "key", "secret"])
def test_it_says_that_credentials_are_missing(
    keys: Mapping[str, str], state: State, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...]
) -> None:
    """Without both, the error names the missing variables, also after a successful call.

    Variables without the prefix are not used instead.
    """
    assert "ok" == _ran("1", state)[1]["status"]
    for name in KEYS:
        monkeypatch.setenv(name.removeprefix("PLATFORM_"), keys[name])
    _set(monkeypatch, {name: keys[name] if name in present else None for name in KEYS})

    with pytest.raises(CredentialsMissingError) as caught:
        run_code("1", PYTHON, state)
    assert [] == [name for name in KEYS if name not in present and name not in str(caught.value)]


def _ran(
    code: str, state: Mapping[str, Any], language: str = PYTHON
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON of 2.7 that run_code returns, and its ``data``."""
    return wire.inner({"Result": run_code(code, language, state)})


def _stream(data: dict[str, Any], name: str = "stdout") -> str:
    """Return what code wrote to a stream, in one or several outputs."""
    return "".join(output["text"] for output in data["outputs"] if output.get("name") == name)


def _refused(state: Mapping[str, Any]) -> None:
    with pytest.raises(PlatformError):
        run_code("1", PYTHON, state)


def _set(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
