from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator

import freezegun
import pytest

import agentdouble
from agentdouble import Emulator
from agentdouble.core.evidence import KINDS
from tests.agentdouble.calling import (
    act,
    has_gone,
    http,
    pid_of,
    result,
    run,
)


def test_health_describes_the_double(double: Emulator) -> None:
    """It has version, process, time and number of instances."""
    with freezegun.freeze_time("2030-01-01 12:00:00"):
        run(double, "1")
        answer = http.get(f"{double.url}/_emulator/health").json()

    assert {
        "status": "ok",
        "version": agentdouble.__version__,
        "pid": os.getpid(),
        "now": "2030-01-01T12:00:00+00:00",
        "instances": 1,
    } == answer


@pytest.fixture
def unused() -> Iterator[Emulator]:
    """A double of which nothing has been used."""
    with Emulator() as emulator:
        yield emulator


def test_the_surfaces_say_what_they_have(unused: Emulator) -> None:
    """They are those of the landing page, with the same paths."""
    double = unused
    run(double, "1")
    act(double, "CreateTool", Name="second", ToolType="CodeEnv")
    listed = http.get(f"{double.url}/_emulator/surfaces").json()["surfaces"]

    described = http.get(f"{double.url}/").json()["surfaces"]
    assert described == [{"name": one["name"], "paths": one["paths"]} for one in listed]
    assert {
        "Control plane": "signatures checked",
        "Applications": "1 application",
        "API server": "5 agents",
        "A2A applications": "1 application",
        "OpenAPI": "",
        "The double's own": "",
        "MCP services": "0 services",
        "Runtimes": "0 runtimes",
        "Sessions of the sandbox": "1 session, 2 tools",
        "Jupyter": "not used yet",
        "Model": "not used yet",
    } == {one["name"]: one["state"] for one in listed}
    http.get(f"{double.environment('jupyter')['JUPYTER_GATEWAY_URL']}/api/kernels")
    script = {"steps": [{"text": "yes"}]}
    http.post(f"{double.url}/_emulator/model", json=script).raise_for_status()
    listed = http.get(f"{double.url}/_emulator/surfaces").json()["surfaces"]
    states = {one["name"]: one["state"] for one in listed}
    assert ("in use", "1 script, 0 requests") == (states["Jupyter"], states["Model"])


def test_the_clock_can_be_read_and_advanced(double: Emulator) -> None:
    """Advances add up; the answer has the platform's time."""
    with freezegun.freeze_time("2030-01-01 12:00:00"):
        before = http.get(f"{double.url}/_emulator/clock").json()
        http.post(f"{double.url}/_emulator/clock", json={"advance_s": 1.5})
        after = http.post(f"{double.url}/_emulator/clock", json={"advance_s": 60}).json()

    assert {"now": "2030-01-01T12:00:00+00:00", "offset_s": 0.0, "frozen": False} == before
    moved = {"now": "2030-01-01T12:01:01.500000+00:00", "offset_s": 61.5, "frozen": False}
    assert moved == after


def test_the_clock_can_be_stopped(double: Emulator) -> None:
    """Only an advance or a reset changes a stopped clock."""
    address = f"{double.url}/_emulator/clock"
    stopped = http.post(address, json={"frozen": True}).json()
    moved = http.post(address, json={"advance_s": 60}).json()
    later = http.get(address).json()
    going = http.post(address, json={"frozen": False}).json()
    http.post(address, json={"frozen": True})
    http.post(f"{double.url}/_emulator/reset")

    assert [True, True, False] == [stopped["frozen"], later["frozen"], going["frozen"]]
    assert stopped["now"] < moved["now"] == later["now"] <= going["now"]
    assert not double.clock.frozen


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"advance_s": -1}',
        b'{"frozen": 1}',
        b'{"frozen": true, "advance_s": 1}',
        b'{"advance_s": "60"}',
        b'{"advance_s": true}',
        b'{"advance_s": null}',
        b'{"advance_s": NaN}',
        b'{"advance_s": Infinity}',
        b'{"advance_s": 1e400}',
        b'{"advance_s": 1e12}',
        b'{"advance_s": 1e300}',
        b"[" * 100_000,
    ],
    ids=lambda content: content[:24].decode(),
)
def test_an_invalid_advance_changes_nothing(double: Emulator, content: bytes) -> None:
    """400 in JSON, and the clock still works."""
    response = http.post(f"{double.url}/_emulator/clock", content=content)

    assert (400, "BadRequest") == (response.status_code, response.json()["error"]["type"])
    assert 0.0 == http.get(f"{double.url}/_emulator/clock").json()["offset_s"]


def test_sessions_are_listed_with_their_remaining_time(double: Emulator) -> None:
    """The list has ids, times, executions and processes of living instances."""
    first = result(double, "1", "listed", ttl_s=90)
    pid = pid_of(double, session="listed")

    (session,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]

    assert 0 < session["remaining_s"] <= 90
    assert session["created_at"] < session["deadline"]
    assert {
        "SessionId": first["SessionId"],
        "UserSessionId": "listed",
        "ToolId": "t-sandbox",
        "state": "active",
        "busy": False,
        "created_at": session["created_at"],
        "deadline": session["deadline"],
        "memory_bytes": session["memory_bytes"],
        "cpu_s": session["cpu_s"],
        "remaining_s": session["remaining_s"],
        "executions": 2,
        "pids": [pid],
        "home": session["home"],
    } == session


def test_reset_clears_everything(double: Emulator) -> None:
    """This covers sessions, journal and clock offset."""
    run(double, "1")
    http.post(f"{double.url}/_emulator/clock", json={"advance_s": 1})

    response = http.post(f"{double.url}/_emulator/reset")

    assert {"status": "reset"} == response.json()
    assert [] == http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    assert [] == http.get(f"{double.url}/_emulator/journal").json()["entries"]
    assert 0.0 == http.get(f"{double.url}/_emulator/clock").json()["offset_s"]


def test_an_ended_session_is_listed_with_its_reason(double: Emulator) -> None:
    """Its process is gone before the answer."""
    session = result(double, "1", "destroyed")["SessionId"]
    pid = pid_of(double, session="destroyed")

    act(double, "DeleteSession", SessionId=session)

    assert has_gone(pid, timeout_s=0)
    listed = http.get(f"{double.url}/_emulator/sessions").json()
    (ended,) = listed["ended"]
    assert (
        [],
        {
            "SessionId": session,
            "UserSessionId": "destroyed",
            "ToolId": "t-sandbox",
            "state": "destroyed",
            "ended_at": ended["ended_at"],
            "reason": "deleted by caller",
            "executions": 2,
        },
    ) == (listed["sessions"], ended)
    at = f"{dt.datetime.fromisoformat(ended['ended_at']):%Y-%m-%dT%H:%M:%SZ}"
    message = f"The instance of session {session!r} has ended: deleted by caller, at {at}."
    answer = http.get(f"{double.url}/_emulator/sessions/{session}/variables")
    assert (404, {"type": "NotFound", "message": message}) == (
        answer.status_code,
        answer.json()["error"],
    )


def test_unknowns_list_choices_and_use(double: Emulator) -> None:
    """Use counts over the whole journal, or after one entry."""
    run(double, "1")
    first = http.get(f"{double.url}/_emulator/unknowns").json()
    run(double, "1/0")
    second = http.get(f"{double.url}/_emulator/unknowns?after={first['last']}").json()
    nothing_new = http.get(f"{double.url}/_emulator/unknowns?after={second['last']}").json()

    assert "U-INVOKETOOL-WIRE" in first["relied_on"]
    assert "U-EXEC-SUCCESS" not in first["relied_on"]
    assert "U-EXEC-SUCCESS" in second["relied_on"]
    assert ([], second["last"]) == (nothing_new["relied_on"], nothing_new["last"])
    assert ("false", []) == (nothing_new["in_force"]["U-EXEC-SUCCESS"], nothing_new["settled"])


def test_unknowns_can_be_changed_while_running(double: Emulator) -> None:
    """The change applies from the next request on and survives resets."""
    url = f"{double.url}/_emulator/unknowns"
    chosen = http.put(url, json={"U-EXEC-SUCCESS": "true"}).json()
    double.reset()
    under = run(double, "1/0")["success"]
    http.put(url, json={})

    assert ("true", True) == (chosen["in_force"]["U-EXEC-SUCCESS"], under)
    assert run(double, "1/0")["success"] is False


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"U-EXEC-SUCESS": "true"}', "Did you mean U-EXEC-SUCCESS?"),
        (b'{"U-EXEC-SUCCESS": "maybe"}', "It has: false, true."),
        (b'{"U-EXEC-SUCCESS": true}', "The body must be"),
        (b"[]", "The body must be"),
        (b"{", "The body must be"),
    ],
)
def test_invalid_choices_change_nothing(double: Emulator, content: bytes, message: str) -> None:
    url = f"{double.url}/_emulator/unknowns"
    before = http.get(url).json()["in_force"]

    response = http.put(url, content=content)

    assert (400, "BadRequest") == (response.status_code, response.json()["error"]["type"])
    assert message in response.json()["error"]["message"]
    assert before == http.get(url).json()["in_force"]


def test_the_catalogue_lists_the_uses_of_each_unknown(double: Emulator) -> None:
    """It has questions, evidence, alternatives and journal entries."""
    act(double, "CreateSession", ToolId=double.tool_id, UserSessionId="u")
    entry = double.journal.entries()[-1]

    unknowns = http.get(f"{double.url}/_emulator/unknowns/catalogue").json()["unknowns"]

    in_force = http.get(f"{double.url}/_emulator/unknowns").json()["in_force"]
    assert in_force == {unknown["id"]: unknown["in_force"] for unknown in unknowns}
    relied_on = sorted(unknown["id"] for unknown in unknowns if entry.id in unknown["entries"])
    assert relied_on == entry.unknowns != []
    for unknown in unknowns:
        assert all(unknown[name] for name in ("question", "section"))
        assert unknown["rests_on"] in KINDS
        assert all({"kind", "says"} <= item.keys() for item in unknown["evidence"])
        assert [True] == [item["built"] for item in unknown["alternatives"] if item["default"]]


def test_each_kind_of_fault_has_a_schema(double: Emulator) -> None:
    """A form can be built from it; each kind can be armed with defaults."""
    kinds = http.get(f"{double.url}/_emulator/faults/kinds").json()["kinds"]

    assert {"fail", "delay", "wrong_json", "kill_kernel"} <= {*kinds}
    for kind, schema in kinds.items():
        assert {"kind", "operation", "nth", "every", "times"} <= {*schema["properties"]}
        assert kind == schema["properties"]["kind"]["const"]
        assert schema["description"]
        operation = "CreateSession" if kind == "fail_start" else "InvokeTool"
        armed = http.post(
            f"{double.url}/_emulator/faults", json={"kind": kind, "operation": operation}
        )
        assert 201 == armed.status_code
    assert "InvokeTool" == kinds["wrong_json"]["x-only-for"]
    assert "CreateSession" == kinds["fail_start"]["x-only-for"]
    assert "x-only-for" not in kinds["fail"]
