"""Code that the double's own routes run in sessions, at the real socket and with real kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    Begun,
    act,
    background,
    eventually,
    http,
    pids_of,
    run,
    text,
)

PLAIN = {"status": "ok", "context_lost": False}


def begun(double: Emulator, name: str, **fields: Any) -> str:
    """Begin a session without a signature; return its SessionId."""
    answer = http.post(f"{double.url}/_emulator/sessions", json={"UserSessionId": name, **fields})
    assert 201 == answer.status_code, answer.text
    found: str = answer.json()["SessionId"]
    return found


@contextmanager
def running(double: Emulator, session: str, code: str, **fields: Any) -> Iterator[Iterator[Any]]:
    url = f"{double.url}/_emulator/sessions/{session}/run"
    with http.stream("POST", url, json={"code": code, **fields}) as answer:
        assert 200 == answer.status_code, answer.read()
        assert "application/x-ndjson" == answer.headers["content-type"]
        yield map(json.loads, answer.iter_lines())


def ran(double: Emulator, session: str, code: str, **fields: Any) -> list[dict[str, Any]]:
    with running(double, session, code, **fields) as lines:
        return list(lines)


def asked(double: Emulator, method: str, session: str, rest: str, **options: Any) -> Any:
    return http.request(method, f"{double.url}/_emulator/sessions/{session}/{rest}", **options)


def test_a_session_is_begun_once(shared: Emulator) -> None:
    """With the lifetime and the variables that CreateSession takes; then it is the same one."""
    envs = [{"Key": "COLOUR", "Value": "red"}]

    first = begun(shared, "begin-once", Ttl=60, Envs=envs)

    assert first == begun(shared, "begin-once")
    assert "red\n" == text(shared, "import os; print(os.environ['COLOUR'])", "begin-once")
    listed = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
    (one,) = (one for one in listed if one["SessionId"] == first)
    assert ("begin-once", shared.tool_id) == (one["UserSessionId"], one["ToolId"])
    assert 0 < one["remaining_s"] <= 60


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        pytest.param(b"[]", 400, "BadRequest", id="no object"),
        pytest.param(b"{", 400, "BadRequest", id="no JSON"),
        pytest.param(b'{"UserSessionId": "a b"}', 400, "InvalidParameter", id="its name"),
        pytest.param(b'{"ToolId": "t-none"}', 404, "InvalidResource.NotFound", id="its tool"),
        pytest.param(b'{"Ttl": 0}', 400, "InvalidParameter", id="its lifetime"),
    ],
)
def test_a_wrong_session_is_refused(shared: Emulator, body: bytes, status: int, kind: str) -> None:
    """With the platform's code, in the format of the double's own routes."""
    answer = http.post(f"{shared.url}/_emulator/sessions", content=body)

    assert (status, kind) == (answer.status_code, answer.json()["error"]["type"])


def test_code_runs_in_the_agent_s_own_kernel(shared: Emulator) -> None:
    """Its outputs come as they are made, and at the end the result that an agent gets."""
    run(shared, "x = 40", "run-own")
    session = begun(shared, "run-own")

    started, stream, value, finished = ran(shared, session, "print('hi')\nx + 2")

    assert {"event": "started", "language": "python3", "execution_count": 2} == started
    assert ("output", "hi\n") == (stream["event"], stream["content"]["text"])
    assert {"text/plain": "42"} == value["content"]["data"]
    result = finished.pop("result")
    assert {"event": "finished", **PLAIN} == finished
    assert (True, 2) == (result["success"], result["data"]["execution_count"])
    printed, shown = result["data"]["outputs"]
    assert ("hi\n", {"text/plain": "42"}) == (printed["text"], shown["data"])


def test_outputs_come_while_the_code_runs(shared: Emulator) -> None:
    """The first is there before the code ends, and what another caller runs is not among them."""
    session = begun(shared, "run-while")
    other = background(lambda: run(shared, "print('other')", "run-while"))
    other.result()
    code = "import os; os.mkfifo('end'); print('here', flush=True); open('end').close()"
    with running(shared, session, code) as lines:
        until = next(one for one in lines if one["event"] == "output")
        home = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
        place = next(one["home"] for one in home if one["SessionId"] == session)
        with open(f"{place}/end", "w"):  # noqa: PTH123 (a pipe)
            pass
        rest = [one["event"] for one in lines]

    assert "here\n" == until["content"]["text"]
    assert ["finished"] == rest


def test_an_error_of_the_code_is_a_result(shared: Emulator) -> None:
    """Its traceback among the outputs, in the status of the end."""
    session = begun(shared, "run-error")

    lines = ran(shared, session, "1/0")

    assert "ZeroDivisionError" == lines[1]["content"]["ename"]
    assert ("finished", "error") == (lines[-1]["event"], lines[-1]["status"])
    assert lines[-1]["result"]["success"] is False


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"code": ""}, "it is empty", id="no code"),
        pytest.param({}, "missing OperationPayload.code", id="none given"),
        pytest.param({"code": 3}, "OperationPayload.code is invalid", id="no text"),
        pytest.param({"cod": "1"}, "Did you mean 'code'?", id="another field"),
        pytest.param({"code": "1", "language": "cobol"}, "'cobol' is not known", id="language"),
        pytest.param({"code": "1", "timeout_s": 10**6}, "is larger than", id="timeout"),
    ],
)
def test_code_that_cannot_run_is_refused(
    shared: Emulator, fields: dict[str, Any], message: str
) -> None:
    """Before the answer begins, so with a status of its own."""
    session = begun(shared, "run-refused")

    answer = asked(shared, "POST", session, "run", json=fields)

    assert 400 == answer.status_code
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize("rest", ["run", "interrupt", "variables", "log"])
def test_an_unknown_session_is_not_found(shared: Emulator, rest: str) -> None:
    """By each route."""
    method = "POST" if rest in ("run", "interrupt") else "GET"

    answer = asked(shared, method, "s-none", rest, json={"code": "1"})

    assert (404, "NotFound") == (answer.status_code, answer.json()["error"]["type"])


def test_a_client_that_disconnects_interrupts_its_code(shared: Emulator) -> None:
    """The session lives on with what it had."""
    session = begun(shared, "run-gone")
    run(shared, "x = 1", "run-gone")
    with running(
        shared, session, "import time\nx = 2; print(flush=True)\ntime.sleep(600)"
    ) as lines:
        while next(lines)["event"] != "output":
            pass

    assert "2\n" == text(shared, "print(x)", "run-gone")


def test_a_session_that_ends_meanwhile_says_so(shared: Emulator) -> None:
    """In a last line, because the answer has begun."""
    session = begun(shared, "run-ended")
    with running(shared, session, "import time; time.sleep(600)") as lines:
        next(lines)
        http.delete(f"{shared.url}/_emulator/sessions/{session}")
        last = list(lines)[-1]

    assert ("finished", True) == (last["event"], last["context_lost"])


def test_code_is_interrupted(shared: Emulator) -> None:
    """Whoever runs it gets a KeyboardInterrupt, and the session lives on."""
    session = begun(shared, "interrupt")
    agent = Begun(shared, "interrupt", "import time; time.sleep(600)")
    agent.go()

    answer = asked(shared, "POST", session, "interrupt")

    assert {"SessionId": session, "interrupted": ["python3"]} == answer.json()
    (error,) = agent.future.result()["data"]["outputs"]
    assert "KeyboardInterrupt" == error["ename"]
    assert [] == asked(shared, "POST", session, "interrupt").json()["interrupted"]
    assert "1\n" == text(shared, "print(1)", "interrupt")


def test_javascript_is_interrupted(shared: Emulator) -> None:
    """Where its engine runs, as Python is."""
    session = begun(shared, "interrupt-js")
    with running(shared, session, "console.log(1); while (true) {}", language="js") as lines:
        while next(lines)["event"] != "output":
            pass
        answer = asked(shared, "POST", session, "interrupt").json()
        last = list(lines)[-1]

    assert ["javascript"] == answer["interrupted"]
    assert ("error", False) == (last["status"], last["context_lost"])


def test_code_that_ignores_an_interrupt_goes_on(shared: Emulator) -> None:
    """And can be interrupted again."""
    session = begun(shared, "interrupt-twice")
    code = (
        "import time\ntry:\n    print('first', flush=True); time.sleep(600)\n"
        "except KeyboardInterrupt: print('again', flush=True)\ntime.sleep(600)"
    )
    printed = []
    with running(shared, session, code) as lines:
        next(lines)
        for _ in range(2):
            printed.append(next(lines)["content"]["text"])
            answer = asked(shared, "POST", session, "interrupt").json()
            assert ["python3"] == answer["interrupted"]
        error, _ = lines

    assert ["first\n", "again\n"] == printed
    assert "KeyboardInterrupt" == error["content"]["ename"]


def variables(double: Emulator, session: str, **query: str) -> dict[str, Any]:
    answer = asked(double, "GET", session, "variables", params=query)
    assert 200 == answer.status_code, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_variables_are_shown_without_disturbing(shared: Emulator) -> None:
    """Those that code has made, whatever they are; nothing is counted, printed or kept."""
    session = begun(shared, "variables")
    assert "none" == variables(shared, session)["state"]
    made = (
        "import math\ncount = 3\n_hidden = 1\nname = 'é' * 1000\nmany = set(range(100_000))\n"
        "wide = dict.fromkeys(range(100_000))\nraw = bytes(10**7)\nodd = '\\ud800'\n"
        "class Bad:\n    def __repr__(self): raise ValueError('no')\nbad = Bad()\nexec = None"
    )
    run(shared, made, "variables")

    shown = eventually(lambda: variables(shared, session), lambda one: one["state"] == "idle")

    by_name = {one["name"]: one for one in shown["variables"]}
    assert {"math", "count", "name", "many", "wide", "raw", "odd", "Bad", "bad", "exec"} == {
        *by_name
    }
    assert ("int", "3", True) == (
        by_name["count"]["type"],
        by_name["count"]["repr"],
        by_name["count"]["size"] > 8,
    )
    assert all(len(one["repr"]) <= 200 for one in shown["variables"])
    assert by_name["bad"]["repr"].startswith("<Bad instance at")
    assert by_name["wide"]["repr"].startswith("{0: None, 1: None,")
    assert 0 == shown["left_out"]
    result = run(shared, "Out, In[-1]", "variables")
    assert 2 == result["data"]["execution_count"]


def test_variables_of_a_busy_kernel_are_not_waited_for(shared: Emulator) -> None:
    """Nor do they stop its code."""
    session = begun(shared, "variables-busy")
    agent = Begun(shared, "variables-busy", "print('done')")

    assert ("busy", []) == (lambda one: (one["state"], one["variables"]))(
        variables(shared, session)
    )
    agent.go()
    assert "done\n" == agent.future.result()["data"]["outputs"][0]["text"]


def test_a_repr_that_never_ends_is_given_up(shared: Emulator) -> None:
    """After a second; the kernel is as it was."""
    session = begun(shared, "variables-slow")
    made = "class Slow:\n    def __repr__(self):\n        while True: pass\nslow = Slow()"
    run(shared, made, "variables-slow")

    assert "silent" == variables(shared, session)["state"]
    assert "3\n" == text(shared, "del slow; print(3)", "variables-slow")
    assert "idle" == eventually(
        lambda: variables(shared, session)["state"], lambda state: state == "idle"
    )


def test_what_a_session_forges_is_no_answer(shared: Emulator) -> None:
    """Its code can replace what the question uses."""
    session = begun(shared, "variables-forged")
    run(shared, "import json\njson.dumps = lambda _: '[1]'", "variables-forged")

    assert "silent" == variables(shared, session)["state"]


def test_variables_of_other_languages_are_refused_by_name(shared: Emulator) -> None:
    """And an unknown language as everywhere."""
    session = begun(shared, "variables-other")

    for language, status, says in (("js", 501, "JavaScript"), ("cobol", 400, "cobol")):
        answer = asked(shared, "GET", session, "variables", params={"language": language})
        assert (status, True) == (answer.status_code, says in answer.text)


def test_the_log_is_that_of_the_action(shared: Emulator) -> None:
    """Also after the session's end, and no more than the lines that are wanted."""
    session = begun(shared, "log")
    wanted = {"ToolId": shared.tool_id, "SessionId": session}
    logged = act(shared, "GetSessionLogs", **wanted)["Logs"]

    assert {"SessionId": session, "Logs": logged} == asked(shared, "GET", session, "log").json()
    http.delete(f"{shared.url}/_emulator/sessions/{session}")
    last = asked(shared, "GET", session, "log", params={"limit": "1"}).json()["Logs"]
    assert last.endswith("ended: destroyed by caller\n")
    assert 1 == last.count("\n")
    for limit in ("0", "1001", "x", "-1", "9" * 5000, "²"):
        assert 400 == asked(shared, "GET", session, "log", params={"limit": limit}).status_code


def test_memory_and_processor_time_are_listed(shared: Emulator) -> None:
    """Once the watch has looked: they grow with what the code does."""
    begun(shared, "used")
    run(shared, "x = bytearray(60 * 1024 ** 2)\nfor i in range(len(x)): x[i] = 1", "used")
    assert pids_of(shared, "used")

    def listed() -> dict[str, Any]:
        sessions = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
        found: dict[str, Any] = next(one for one in sessions if one["UserSessionId"] == "used")
        return found

    shown = eventually(listed, lambda one: (one["memory_bytes"] or 0) > 60 * 1024**2)
    assert shown["cpu_s"] > 0
