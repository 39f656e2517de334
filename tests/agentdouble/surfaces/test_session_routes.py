"""The double's own routes about sessions, over a real socket with real kernels."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    Begun,
    act,
    eventually,
    http,
    pids_of,
    run,
    text,
)


def new_session(double: Emulator, name: str) -> str:
    """Create a session and return its SessionId."""
    created = act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=name)
    return str(created["SessionId"])


def request(double: Emulator, method: str, session: str, rest: str, **options: Any) -> Any:
    return http.request(method, f"{double.url}/_emulator/sessions/{session}/{rest}", **options)


@pytest.mark.parametrize("rest", ["interrupt", "variables"])
def test_an_unknown_session_is_not_found(shared: Emulator, rest: str) -> None:
    """Every route answers 404."""
    answer = request(shared, "POST" if rest == "interrupt" else "GET", "s-none", rest)

    assert (404, "NotFound") == (answer.status_code, answer.json()["error"]["type"])


def test_code_can_be_interrupted(shared: Emulator) -> None:
    """It raises KeyboardInterrupt, and the session survives."""
    session = new_session(shared, "interrupt")
    agent = Begun(shared, "interrupt", "import time; time.sleep(600)")
    agent.go()

    answer = request(shared, "POST", session, "interrupt")

    assert {"SessionId": session, "interrupted": ["python3"]} == answer.json()
    (error,) = agent.future.result()["data"]["outputs"]
    assert "KeyboardInterrupt" == error["ename"]
    assert [] == request(shared, "POST", session, "interrupt").json()["interrupted"]
    assert "1\n" == text(shared, "print(1)", "interrupt")


def variables(double: Emulator, session: str, **query: str) -> dict[str, Any]:
    answer = request(double, "GET", session, "variables", params=query)
    assert 200 == answer.status_code, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_variables_are_shown_without_side_effects(shared: Emulator) -> None:
    """All variables of the code are listed; nothing is counted or printed."""
    session = new_session(shared, "variables")
    assert "none" == variables(shared, session)["state"]
    cell = (
        "import math\ncount = 3\n_hidden = 1\nname = 'é' * 1000\nmany = set(range(100_000))\n"
        "wide = dict.fromkeys(range(100_000))\nraw = bytes(10**7)\nodd = '\\ud800'\n"
        "class Bad:\n    def __repr__(self): raise ValueError('no')\nbad = Bad()\nexec = None"
    )
    run(shared, cell, "variables")

    table = eventually(lambda: variables(shared, session), lambda page: page["state"] == "idle")

    by_name = {variable["name"]: variable for variable in table["variables"]}
    assert {"math", "count", "name", "many", "wide", "raw", "odd", "Bad", "bad", "exec"} == {
        *by_name
    }
    assert ("int", "3", True) == (
        by_name["count"]["type"],
        by_name["count"]["repr"],
        by_name["count"]["size"] > 8,
    )
    assert all(len(variable["repr"]) <= 200 for variable in table["variables"])
    assert by_name["bad"]["repr"].startswith("<Bad instance at")
    assert by_name["wide"]["repr"].startswith("{0: None, 1: None,")
    assert 0 == table["left_out"]
    result = run(shared, "Out, In[-1]", "variables")
    assert 2 == result["data"]["execution_count"]


def test_variables_of_a_busy_kernel_are_skipped(shared: Emulator) -> None:
    """Its code is not interrupted."""
    session = new_session(shared, "variables-busy")
    agent = Begun(shared, "variables-busy", "print('done')")

    assert ("busy", []) == (lambda listing: (listing["state"], listing["variables"]))(
        variables(shared, session)
    )
    agent.go()
    assert "done\n" == agent.future.result()["data"]["outputs"][0]["text"]


def test_an_endless_repr_is_interrupted(shared: Emulator) -> None:
    """It ends after a second and leaves the kernel unchanged."""
    session = new_session(shared, "variables-slow")
    cell = "class Slow:\n    def __repr__(self):\n        while True: pass\nslow = Slow()"
    run(shared, cell, "variables-slow")

    assert "silent" == variables(shared, session)["state"]
    assert "3\n" == text(shared, "del slow; print(3)", "variables-slow")
    assert "idle" == eventually(
        lambda: variables(shared, session)["state"], lambda state: state == "idle"
    )


def test_forged_variables_are_ignored(shared: Emulator) -> None:
    """Session code can replace what the inspection uses."""
    session = new_session(shared, "variables-forged")
    run(shared, "import json\njson.dumps = lambda _: '[1]'", "variables-forged")

    assert "silent" == variables(shared, session)["state"]


@pytest.mark.slow
def test_memory_and_processor_time_are_listed(shared: Emulator) -> None:
    """They grow with the code's use, once the watch has run."""
    new_session(shared, "used")
    run(shared, "x = bytearray(60 * 1024 ** 2)\nfor i in range(len(x)): x[i] = 1", "used")
    assert pids_of(shared, "used")

    def listed() -> dict[str, Any]:
        sessions = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
        used: dict[str, Any] = next(entry for entry in sessions if entry["UserSessionId"] == "used")
        return used

    session = eventually(listed, lambda session: (session["memory_bytes"] or 0) > 60 * 1024**2)
    assert session["cpu_s"] > 0
