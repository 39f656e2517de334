"""What-if questions: repeating a request with another ledger answer on fresh doubles."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

import agentdouble.emulator
from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
from agentdouble.emulator import _fresh_settings
from agentdouble.journal import what_if
from agentdouble.journal.json_leaves import unfolded
from agentdouble.journal.what_if import AlternativeAnswer, RepeatedRequest
from agentdouble.journal.what_if_differences import LONGEST, differences
from tests.agentdouble.calling import act, body_of, call, eventually, http, result
from tests.agentdouble.mcp_wire import call as mcp_call
from tests.agentdouble.mcp_wire import message, open_session

SAID = {"role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hello"}]}
SESSIONS = "/apps/echo/users/ann/sessions"


@pytest.fixture
def double() -> Iterator[Emulator]:
    """An unshared double, because processes and ports are counted."""
    with Emulator(pool_size=0) as double:
        yield double


def ask(double: Emulator, entry: int, unknown: str, answer: str) -> httpx.Response:
    body = {"entry": entry, "unknown": unknown, "answer": answer}
    return http.post(f"{double.url}/_emulator/what-if", json=body)


def effect(double: Emulator, unknown: str, answer: str, entry: int | None = None) -> Any:
    """Return what an answer would change in the last request."""
    response = ask(double, entry or double.journal.entries()[-1].id, unknown, answer)
    assert 200 == response.status_code, response.text
    return response.json()


def paths(answer: Any) -> dict[str, tuple[Any, Any]]:
    return {row["path"]: (row.get("in_force"), row.get("other")) for row in answer["differences"]}


def session_ids(double: Emulator) -> list[str]:
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return [session["SessionId"] for session in sessions]


def resources() -> tuple[set[int], int, list[str]]:
    """Return this process's children, ports and busy threads."""
    own = psutil.Process()
    ports = [port for port in own.net_connections() if port.status == psutil.CONN_LISTEN]
    names = (thread.name for thread in threading.enumerate())
    # threads of pools stay, and wait for more work
    threads = sorted(name for name in names if not name.startswith(("asyncio_", "AnyIO")))
    children = {process.pid for process in own.children(recursive=True)}
    return children, len(ports), threads


def leftovers(before: tuple[set[int], int, list[str]]) -> tuple[set[int], int, list[str]]:
    """Return new resources that are still held; earlier tests' processes may have ended."""
    processes, ports, threads = resources()
    return (
        processes - before[0],
        ports - before[1],
        [thread for thread in threads if thread not in before[2]],
    )


@pytest.mark.slow
def test_session_code_is_repeated(double: Emulator) -> None:
    """The session's earlier code runs first; pids and times are not differences."""
    result(double, "x = 7; import os, time")
    result(double, "1/0", "another")
    result(double, "print(x, os.getpid(), time.time_ns()); 1/0")
    before, entries = resources(), double.journal.entries()
    living = session_ids(double)

    differs = effect(double, "U-EXEC-SUCCESS", "true")
    same = effect(double, "U-KERNEL-NAMES", "two-names")

    assert {"$.Result.Result.success": (False, True)} == paths(differs)
    assert ({}, []) == (paths(same), same["notes"])
    assert [entries[0].id] == differs["asked_before"]
    assert ((set(), 0, []), entries) == (leftovers(before), double.journal.entries())
    assert living == session_ids(double)
    assert (
        "false" == http.get(f"{double.url}/_emulator/unknowns").json()["in_force"]["U-EXEC-SUCCESS"]
    )


def test_ids_of_earlier_answers_are_mapped(double: Emulator) -> None:
    """A session named in the journal has another id on the fresh double."""
    session_id = http.post(f"{double.url}{SESSIONS}", json={}).json()["id"]
    http.post(f"{double.url}{SESSIONS}/{session_id}", json={})

    answer = effect(double, "U-SESSION-DUPLICATE", "400")

    assert {"status": (409, 400)} == paths(answer)
    assert (409, 400) == (answer["in_force"]["status"], answer["other"]["status"])
    assert ("409", "400") == (answer["in_force"]["answer"], answer["other"]["answer"])


@pytest.mark.slow
def test_missing_prerequisites_are_reported(double: Emulator) -> None:
    """Tools are copied, but a session missing from the journal is not."""
    tool = act(double, "CreateTool", Name="mine", ToolType="CodeEnv")["ToolId"]
    call(double, {**body_of(double, "1/0"), "ToolId": tool})
    copied = effect(double, "U-EXEC-SUCCESS", "true")
    session_id = http.post(f"{double.url}{SESSIONS}", json={}).json()["id"]
    http.delete(f"{double.url}/_emulator/journal")
    http.get(f"{double.url}{SESSIONS}/{session_id}")
    lost = effect(double, "U-SESSION-FIELDS", "id-only")
    double.faults.arm("fail", "ping")
    http.get(f"{double.url}/ping")
    faulty = effect(double, "U-PROBE-BODIES", "text")

    assert ({"$.Result.Result.success": (False, True)}, []) == (paths(copied), copied["notes"])
    assert ({}, 404) == (paths(lost), lost["in_force"]["status"])
    assert "The running double answered 200, a fresh one 404" in lost["notes"][0]
    assert "none armed" in faulty["notes"][1]
    assert {"content-type", "$"} == paths(faulty).keys()


@pytest.mark.parametrize(
    ("question", "status", "kind", "says"),
    [
        ({"entry": 99}, 404, "NotFound", "no longer has this request"),
        ({"entry": 2}, 409, "CannotRepeat", "only the start of this request's body"),
        ({"entry": 3}, 409, "CannotRepeat", "hides a secret"),
        ({"unknown": "U-PROBE"}, 400, "LedgerError", "Did you mean U-PROBE-"),
        ({"answer": "xml"}, 400, "LedgerError", "It has: object, text"),
        ({"answer": "object"}, 400, "LedgerError", "'object' is already"),
        ({"unknown": "U-RUN-CODE-RETURN"}, 400, "LedgerError", "not built the alternative"),
        ({"entry": "1"}, 400, "BadRequest", "The body must be"),
        ({"more": 1}, 400, "BadRequest", "The body must be"),
    ],
)
def test_an_invalid_question_is_refused_by_name(
    recorded: Emulator, question: Any, status: int, kind: str, says: str
) -> None:
    default = {"entry": 1, "unknown": "U-PROBE-BODIES", "answer": "text"}
    if "RETURN" in str(question):
        default["answer"] = "object"

    answer = http.post(f"{recorded.url}/_emulator/what-if", json={**default, **question})

    error = answer.json()["error"]
    assert (status, kind) == (answer.status_code, error["type"])
    assert says in error["message"]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Emulator]:
    """A double with a good request, one too large and one with a secret."""
    with Emulator(pool_size=0) as double:
        http.get(f"{double.url}/ping")
        http.post(f"{double.url}/invoke", content=b"x" * 70_000)
        http.get(f"{double.url}/ping?token=secret")
        yield double


def test_a_fresh_double_that_cannot_start_is_an_error(
    double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    http.get(f"{double.url}/ping")
    options = {"port": double.url.rpartition(":")[2]}

    def at_the_same_port(*arguments: Any) -> Any:
        return _fresh_settings(*arguments).model_copy(update={"port": int(options["port"])})

    monkeypatch.setattr(agentdouble.emulator, "_fresh_settings", at_the_same_port)

    answer = ask(double, 1, "U-PROBE-BODIES", "text")

    assert (409, "CannotStart") == (answer.status_code, answer.json()["error"]["type"])
    assert options["port"] in answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_question_ends_on_timeout_or_disconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging application keeps nothing alive."""
    app, calls = SimpleApp(), list[int]()

    @app.entrypoint
    async def answer(_payload: dict[str, Any], _headers: dict[str, str]) -> str:
        calls.append(1)
        if len(calls) > 1:
            await asyncio.Event().wait()
        return "once"

    with Emulator(app, pool_size=0) as double:
        http.post(f"{double.url}/invoke", json={"prompt": "x"})
        before = resources()
        monkeypatch.setattr(what_if, "LONGEST_S", 0.5)
        late = ask(double, 1, "U-INVOKE-ENVELOPE", "object")
        assert (504, "TimedOut") == (late.status_code, late.json()["error"]["type"])
        assert (set(), 0, []) == leftovers(before)
        monkeypatch.setattr(what_if, "LONGEST_S", 600.0)
        calls[1:] = []
        with socket.create_connection(("127.0.0.1", urlsplit(double.url).port or 0)) as client:
            body = b'{"entry": 1, "unknown": "U-INVOKE-ENVELOPE", "answer": "object"}'
            client.sendall(
                b"POST /_emulator/what-if HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %b\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (double.token.encode(), len(body), body)
            )
            eventually(lambda: len(calls), lambda count: count == 4)

        nothing: tuple[set[int], int, list[str]] = (set(), 0, [])
        assert nothing == eventually(lambda: leftovers(before), lambda now: now == nothing)


@pytest.mark.slow
def test_applications_are_served_by_each_double_separately() -> None:
    """Those of the running double are unaffected."""
    simple, tools, agent = SimpleApp(), MCPApp(), A2AApp("echo", runner="echo")
    urls: list[str] = []

    @simple.entrypoint
    async def answer(_payload: dict[str, Any], _headers: dict[str, str]) -> str:
        urls.append(threading.current_thread().name)
        return "once"

    @tools.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    request = message("message/send", {"message": {**SAID, "messageId": "m1"}})
    with Emulator(simple, tools, agent, pool_size=0) as double:
        http.post(f"{double.url}/invoke", json={})
        task = http.post(f"{double.url}/", json=request).json()["result"]["id"]
        session = open_session(f"{double.url}/mcp", None)
        assert "3" in str(mcp_call(f"{double.url}/mcp", None, session, "add", a=1, b=2, c=3))
        before = resources()

        in_envelope = effect(double, "U-INVOKE-ENVELOPE", "object", entry=1)
        strict = effect(double, "U-MCP-ARGUMENTS", "refused")
        same = effect(double, "U-WEBHOOKS", "none", entry=2)
        http.post(f"{double.url}/invoke", json={})

        assert (set(), 0, []) == leftovers(before)
        assert {"$": ("once", {"response": "once"})} == paths(in_envelope)
        assert (False, True) == paths(strict)["events[0]$.result.isError"]
        assert ({}, 200) == (paths(same), same["other"]["status"])
        assert [3, 4] == strict["asked_before"]
        assert {"agentdouble-app"} == set(urls)
        assert "3" in str(mcp_call(f"{double.url}/mcp", None, session, "add", a=1, b=2))
        task_body = http.post(f"{double.url}/", json=message("tasks/get", {"id": task})).json()
        assert task == task_body["result"]["id"]


def changes(first: Any, again: Any, other: Any) -> list[dict[str, Any]]:
    """Return the differences of three answers with these bodies."""
    request = RepeatedRequest("POST", "http://x/invoke", {}, b"")
    answers = [
        AlternativeAnswer(200, {"content-type": "application/json"}, json.dumps(body).encode())
        for body in (first, again, other)
    ]
    return differences(request, *answers)


@pytest.mark.parametrize(
    ("first", "again", "other", "differs"),
    [
        ("a", "a", "b", True),
        (True, True, 1, True),
        (1, 2, 3, False),
        (1, 2, "3", True),
        ("x 4f2a", "x 91bc", "x 77de", False),
        ("at 2026-11-23T10:00:00Z", "at 2026-11-23T10:00:00Z", "at 2026-11-23T10:00:01Z", False),
        ("-" * 100_000, "a" * 100_000, "b" * 100_000, False),
        ([], [], [1], True),
        ({}, {}, None, True),
    ],
)
def test_only_unusual_changes_differ(first: Any, again: Any, other: Any, differs: bool) -> None:
    assert differs == bool(changes(first, again, other))


def test_missing_fields_are_differences() -> None:
    """Ids count; durations do not."""
    found = changes(
        {"id": "a1", "took_ms": 5}, {"id": "b2", "took_ms": 5}, {"took_ms": 9, "n": [1]}
    )

    assert [{"path": "$.id", "in_force": "a1"}, {"path": "$.n", "other": [1]}] == found


def test_differences_are_redacted_and_truncated() -> None:
    """Lone surrogates are replaced so that they can be sent."""
    first = {"token": {"say": "Bearer s3cret-s3cret"}, "long": "a", "half": "a"}
    other = {"token": ["Bearer other-s3cret"], "long": "b" * 9000, "half": "\ud800"}

    token, long, half = changes(first, first, other)

    assert "***" in str(token)
    assert "s3cret" not in str(token)
    assert LONGEST + 100 > len(long["other"])
    assert "?" == half["other"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"Result": "{\\"a\\": [1]}"}', "application/json", {"Result": {"a": [1]}}),
        ('data: {"a": 1}\n\ndata: b\ndata: c\n\n: x\n\n', "text/event-stream", [{"a": 1}, "b\nc"]),
        ("data: a\u2028\rdata: b\r\rdata: c\r\n\r\n", "text/event-stream", ["a\u2028\nb", "c"]),
        ("plain", "text/plain", "plain"),
        ("[NaN]", "application/json", ["NaN"]),
        ("[" * 90_000, "application/json", "[" * 90_000),
    ],
)
def test_bodies_are_unfolded(text: str, kind: str, value: Any) -> None:
    """JSON inside strings is decoded, and an event becomes its data."""
    assert value == unfolded(text, kind)


def test_answers_are_complete_and_have_the_known_ids(double: Emulator) -> None:
    """A list of sessions needs those that were created."""
    known = http.post(f"{double.url}{SESSIONS}", json={}).json()["id"]
    http.get(f"{double.url}{SESSIONS}")
    question = {"entry": 2, "alternatives": [{}, {"U-SESSION-LIST": "ids"}]}

    response = http.post(f"{double.url}/_emulator/what-if/answers", json=question)

    first, other = response.json()["answers"]
    assert [1] == response.json()["asked_before"]
    assert (200, known) == (first["status"], json.loads(first["body"])[0]["id"])
    assert "application/json" == other["headers"]["content-type"]
    assert [known] == json.loads(other["body"])


@pytest.mark.parametrize(
    ("alternatives", "kind"),
    [
        ([], "BadRequest"),
        ([{}] * 4, "BadRequest"),
        ([{"U-PROBE-BODIES": "xml"}], "LedgerError"),
        ([{"U-PROBE": "text"}], "LedgerError"),
    ],
)
def test_invalid_alternatives_are_refused(recorded: Emulator, alternatives: Any, kind: str) -> None:
    question = {"entry": 1, "alternatives": alternatives}

    answer = http.post(f"{recorded.url}/_emulator/what-if/answers", json=question)

    assert (400, kind) == (answer.status_code, answer.json()["error"]["type"])
