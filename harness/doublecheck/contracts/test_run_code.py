"""Checks of the agent-side tool run_code (RUN)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import run_code
from agentdouble.core import environment
from agentdouble.errors import CredentialsMissingError, PlatformError, ToolIdMissingError
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_caller, for_each
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sandboxes import JAVASCRIPT, PYTHON, TYPES_OF_DATA
from doublecheck.contracts.sentences import instead, listed

if TYPE_CHECKING:
    from doublecheck.fixtures import PlatformEnv


class ContextState(dict[str, Any]):
    """The state of a tool context."""


@for_caller.register
def _state_of_caller(state: ContextState, number: int, _stack: ExitStack) -> ContextState:
    return ContextState({**state, "session_id": f"{state['session_id']}-{number}"})


KEYS = (environment.ACCESS_KEY, environment.SECRET_KEY)
WRONG = {environment.ACCESS_KEY: "AKLTnobody", environment.SECRET_KEY: "wrong"}
TYPES = {"success": "bool", "message": "str", "data": "dict"}
FAILURES = (
    ("print('before')\n1 / 0", PYTHON, "ZeroDivisionError"),
    ("def f(:", PYTHON, "SyntaxError"),
    ("throw new RangeError('on purpose')", JAVASCRIPT, "RangeError"),
)


@pytest.fixture
def state(leftovers: Leftovers) -> ContextState:
    """The state of a tool context: a session that only this check uses."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    return ContextState(
        {"user_id": "doublecheck", "session_id": session_id, environment.TOOL_TTL: "120"}
    )


@pytest.fixture
def keys(platform_env: PlatformEnv) -> Mapping[str, str]:
    """The key pair that the platform knows, which is also in the environment."""
    return {name: os.environ[name] for name in KEYS}


@clause("RUN-01")
@for_each(text=inputs.texts())
def test_it_returns_the_result(platform_env: PlatformEnv, state: ContextState, text: str) -> None:
    """Code with any characters runs unchanged; the result of 2.7 has all fields and outputs."""
    codes = {
        PYTHON: f"import sys\nprint('err', file=sys.stderr)\nprint({text!r})\n6 * 7",
        JAVASCRIPT: f"console.log({json.dumps(text)}); 6 * 7",
    }
    for language, code in codes.items():
        result, data = _ran(code, state, language)

        types = wire.types(result, TYPES)
        assert TYPES == types, f"the result has fields {instead(types, TYPES)}"
        types = wire.types(data, TYPES_OF_DATA)
        assert TYPES_OF_DATA == types, f"data has fields {instead(types, TYPES_OF_DATA)}"
        assert result["success"] is True, "code that ran has no success"
        assert "ok" == data["status"], f"code that ran has the status {data['status']!r}"
        assert code == data["code"], f"code is {instead(data['code'], code)}"
        out, err = _stream(data), _stream(data, "stderr")
        expected = f"{text}\n"
        assert expected == out, f"stdout is {instead(out, expected)}"
        expected = "err\n" if language == PYTHON else ""
        assert expected == err, f"stderr is {instead(err, expected)}"
        datas = [output["data"] for output in data["outputs"] if output.get("data")]
        values = [value.get("text/plain") for value in datas]
        assert ["42"] == values, f"the values of the code are {listed(values)}"


@clause("RUN-01")
def test_it_returns_a_failure(platform_env: PlatformEnv, state: ContextState) -> None:
    """Failed code returns a result with name, value and traceback; the next code runs."""
    for code, language, name in FAILURES * 2:
        _, data = _ran(code, state, language)

        errors = [output for output in data["outputs"] if output.get("ename")]
        assert 1 == len(errors), f"{len(errors)} outputs have an ename after {name}"
        failed = errors[0]
        assert name == failed["ename"], f"ename is {instead(failed['ename'], name)}"
        assert failed["evalue"], f"{name} has no evalue"
        assert failed["traceback"], f"{name} has no traceback"
        assert "ok" != data["status"], "code that raises has the status ok"
        expected, printed = "before\n" if "before" in code else "", _stream(data)
        assert expected == printed, f"stdout before {name} is {instead(printed, expected)}"
        _require_ok(state, language)


@clause("RUN-02")
@pytest.mark.parametrize("value", [None, ""], ids=["absent", "empty"])
def test_it_says_that_the_tool_id_is_missing(
    platform_env: PlatformEnv,
    monkeypatch: pytest.MonkeyPatch,
    state: ContextState,
    value: str | None,
) -> None:
    """The error names the variable, even after a successful call; no other variable replaces it."""
    _require_ok(state)
    monkeypatch.setenv("TOOL_ID", os.environ[environment.TOOL_ID])
    _set(monkeypatch, {environment.TOOL_ID: value})

    with pytest.raises(ToolIdMissingError, match="PLATFORM_TOOL_ID"):
        run_code("1", PYTHON, state)


@clause("RUN-03")
def test_the_contexts_credentials_come_first(
    keys: Mapping[str, str], state: ContextState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context's credentials are used, right or wrong, before the current environment's."""
    wrong = (WRONG, {**keys, environment.SECRET_KEY: "wrong"})
    for context, variables, is_right in (
        *(({}, keys, True), (keys, keys, True)),
        *((pair, keys, False) for pair in wrong),
        *(({}, pair, False) for pair in wrong),
        *((keys, variables, True) for variables in (WRONG, dict.fromkeys(KEYS))),
        ({}, keys, True),
    ):
        _set(monkeypatch, variables)
        with nullcontext() if is_right else pytest.raises(PlatformError):
            _require_ok({**state, **context})


@clause("RUN-03")
@pytest.mark.parametrize("present", [(), KEYS[:1], KEYS[1:]], ids=["none", "key", "secret"])
def test_it_says_that_credentials_are_missing(
    keys: Mapping[str, str],
    state: ContextState,
    monkeypatch: pytest.MonkeyPatch,
    present: tuple[str, ...],
) -> None:
    """Without both, the error names the missing variables, even after a successful call.

    Variables without the prefix are not used instead.
    """
    _require_ok(state)
    _set(monkeypatch, {name.removeprefix("PLATFORM_"): key for name, key in keys.items()})
    _set(monkeypatch, {name: keys[name] if name in present else None for name in KEYS})

    with pytest.raises(CredentialsMissingError) as caught:
        run_code("1", PYTHON, state)
    unnamed = [name for name in KEYS if name not in present and name not in str(caught.value)]
    assert [] == unnamed, f"the error does not name {listed(unnamed)}"


def _ran(
    code: str, state: Mapping[str, Any], language: str = PYTHON
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON of 2.7 that run_code returns, and its ``data``."""
    return wire.inner({"Result": run_code(code, language, state)})


def _require_ok(state: Mapping[str, Any], language: str = PYTHON) -> None:
    status = _ran("1", state, language)[1]["status"]
    assert "ok" == status, f"the status of {language} code is {status!r}"


def _stream(data: dict[str, Any], name: str = "stdout") -> str:
    """Return what code wrote to a stream, in one or several outputs."""
    return "".join(output["text"] for output in data["outputs"] if output.get("name") == name)


def _set(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
