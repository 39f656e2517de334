from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import Begun, eventually, http, run, text

NOTHING: list[str] = []


def query(double: Emulator, session: str, code: str, **fields: Any) -> dict[str, Any]:
    body = {"user_session_id": session, "code": code, **fields}
    response = http.post(f"{double.url}/_emulator/complete", json=body)
    assert 200 == response.status_code, response.text
    answer: dict[str, Any] = response.json()
    return answer


def completed(double: Emulator, session: str, code: str, **fields: Any) -> dict[str, Any]:
    """Ask until there are matches, since a busy kernel may miss its second."""
    return eventually(lambda: query(double, session, code, **fields), lambda data: data["matches"])


@pytest.mark.parametrize(
    ("language", "code", "prefix", "expected"),
    [
        pytest.param("python3", "colour_red = 1", "x = colour_r", ["colour_red"], id="python"),
        pytest.param("python3", "import os", "os.getpp", ["getppid"], id="a module's"),
    ],
)
def test_the_session_kernel_completes_names(
    shared: Emulator, language: str, code: str, prefix: str, expected: list[str]
) -> None:
    """Cursor positions count characters."""
    run(shared, code or "0", "complete", language=language)
    ask = completed if expected else query

    completion = ask(shared, "complete", "é = 1; " + prefix, language=language)

    start, end = completion["cursor_start"], completion["cursor_end"]
    assert len("é = 1; " + prefix) == end
    assert expected == [name.rpartition(".")[2] for name in completion["matches"]]
    assert all(name.startswith(("é = 1; " + prefix)[start:end]) for name in completion["matches"])


def test_a_session_without_a_kernel_completes_nothing(double: Emulator) -> None:
    """Completion does not start one."""
    assert {"matches": [], "cursor_start": 2, "cursor_end": 2} == query(double, "none", "pr")
    run(double, "1", "other")
    assert NOTHING == query(double, "other", "x", language="javascript")["matches"]

    (session,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    assert ("other", 1) == (session["UserSessionId"], session["executions"])
    assert 1 == len(session["pids"])


def test_completion_does_not_wait_for_running_code(shared: Emulator) -> None:
    """It answers with no matches at once."""
    code = Begun(shared, "complete-busy", "")
    assert NOTHING == query(shared, "complete-busy", "pri")["matches"]
    code.go()
    code.future.result()

    assert completed(shared, "complete-busy", "prin")["matches"]


@pytest.mark.slow
def test_slow_completion_is_interrupted(shared: Emulator) -> None:
    """An endless ``__dir__`` is stopped, and the session can run code."""
    endless = "class Endless:\n    def __dir__(self):\n        while True:\n            pass"
    run(shared, f"{endless}\nendless, kept = Endless(), 'kept'", "complete-endless")

    assert NOTHING == query(shared, "complete-endless", "endless.")["matches"]
    assert "kept\n" == text(shared, "print(kept)", "complete-endless")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"user_session_id": "s"}, "'code' Field required"),
        ({"user_session_id": "s", "code": "ab", "cursor_pos": 3}, "must be from 0 to 2"),
        ({"user_session_id": "s", "code": "", "language": "cobol"}, "Unknown language 'cobol'"),
    ],
)
def test_invalid_requests_are_refused(shared: Emulator, body: Any, message: str) -> None:
    """The message names the field."""
    response = http.post(f"{shared.url}/_emulator/complete", content=json.dumps(body))

    assert 400 == response.status_code
    assert message in response.json()["error"]["message"]
