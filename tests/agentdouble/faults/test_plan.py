from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.errors import FaultError
from agentdouble.faults.operations import call_of
from agentdouble.faults.plan import MOST, Faults
from tests.agentdouble.calling import http

pytestmark = pytest.mark.smoke

PING = call_of("GET", "/ping", "")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, [1]),
        ({"nth": 3}, [3]),
        ({"times": 2}, [1, 2]),
        ({"times": "all"}, [1, 2, 3, 4, 5, 6, 7]),
        ({"nth": 2, "every": 3, "times": "all"}, [2, 5]),
        ({"nth": 2, "every": 2, "times": 2}, [2, 4]),
        ({"every": 1}, [1, 2, 3, 4, 5, 6, 7]),
        ({"nth": 2, "every": 3}, [2, 5]),
        ({"every": 2, "times": 1}, [1]),
    ],
)
def test_faults_apply_to_the_selected_calls(selection: dict[str, Any], expected: list[int]) -> None:
    """From the nth call on, at an interval, a number of times."""
    faults = Faults(())
    faults.arm("fail", "ping", **selection)

    assert expected == [number for number in range(1, 8) if faults.matching(PING)]


def test_states_count_calls() -> None:
    """They count calls of the operation, matching calls and fired faults."""
    faults = Faults(("InvokeTool",))
    state = faults.arm("fail", "ping", nth=2, status=503)
    faults.matching(call_of("POST", "/", "Action=InvokeTool"))
    faults.matching(PING)
    faults.matching(call_of("GET", "/v1/sandbox", ""))
    (armed,) = faults.matching(PING)
    armed.happened()

    (now,) = faults.states()
    assert (state.id, 2, 1, 1) == (now.id, now.calls, now.met, now.fired)
    assert "fail ping (nth=2, status=503)" == now.fault.described()
    assert {"InvokeTool": 1, "ping": 2, "GET /v1/sandbox": 1} == faults.seen()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "is an object with kind and operation"),
        ({}, "needs its kind. It is one of fail, gateway, delay"),
        ({"kind": "fial", "operation": "ping"}, "no kind of fault 'fial'. Did you mean fail?"),
        ({"kind": 3, "operation": "ping"}, "no kind of fault 3"),
        ({"kind": "fail"}, "The operation of a fault of kind 'fail': Field required"),
        ({"kind": "fail", "operation": "pong"}, "Did you mean ping?"),
        ({"kind": "fail", "operation": "ping", "statsu": 3}, "Did you mean status?"),
        ({"kind": "fail", "operation": "ping", "status": 99}, "greater than or equal to 200"),
        ({"kind": "fail", "operation": "ping", "status": "500"}, "valid integer"),
        ({"kind": "fail", "operation": "ping", "status": 200}, "needs a body"),
        ({"kind": "fail", "operation": "ping", "nth": 0}, "The nth of a fault"),
        ({"kind": "fail", "operation": "ping", "times": "some"}, "The times of a fault"),
        ({"kind": "fail", "operation": "ping", "headers": {"a b": "c"}}, "The headers of a fault"),
        ({"kind": "fail", "operation": "ping", "headers": {"a": "c\r\nd"}}, "The headers"),
        ({"kind": "delay", "operation": "ping", "seconds": 61}, "less than or equal to 60"),
        ({"kind": "delay", "operation": "ping", "seconds": float("nan")}, "The seconds"),
        ({"kind": "cut", "operation": "ping", "after": 1, "after_bytes": 1}, "not both"),
        ({"kind": "wrong_json", "operation": "ping"}, "is for InvokeTool; not for 'ping'"),
        ({"kind": "fail_start", "operation": "InvokeTool"}, "is for CreateSession; not for"),
        ({"kind": "kill_kernel", "operation": "invoke"}, "operations that run code"),
        ({"kind": "expire_instance", "operation": "/v1/bash/exec"}, "operations that run code"),
    ],
    ids=str,
)
def test_an_invalid_fault_is_refused_by_name(document: Any, message: str) -> None:
    """The error says what is valid, and nothing is armed."""
    faults = Faults(("InvokeTool",))

    with pytest.raises(FaultError) as raised:
        faults.arm_document(document)

    assert message in str(raised.value)
    assert not faults.active


def test_the_number_of_faults_is_limited() -> None:
    faults = Faults(())
    for _ in range(MOST):
        faults.arm("reset", "ping")

    with pytest.raises(FaultError, match="100 faults are armed"):
        faults.arm("reset", "ping")


def test_routes_arm_list_and_remove_faults(double: Emulator) -> None:
    """They share the plan with the Python API."""
    url = f"{double.url}/_emulator/faults"
    armed = http.post(url, json={"kind": "fail", "operation": "ping", "status": 502})
    id_ = armed.json()["id"]
    http.get(f"{double.url}/ping")
    http.get(f"{double.url}/_emulator/health")

    assert 201 == armed.status_code
    fault = {
        "id": id_,
        "kind": "fail",
        "operation": "ping",
        "status": 502,
        "described": "fail ping (nth=1, status=502)",
        "calls": 1,
        "met": 1,
        "fired": 1,
    }
    listed = http.get(url).json()
    assert {"ping": 1} == listed["seen"]
    assert fault.items() <= listed["faults"][0].items()
    assert 1 == http.get(f"{url}/{id_}", params={"fired": 1, "within_s": 60}).json()["fired"]
    assert 0 == http.get(f"{url}/{id_}", params={"fired": 2, "within_s": 0}).json()["fired"] - 1
    assert id_ == http.post(f"{url}/{id_}/release").json()["id"]
    assert id_ == http.delete(f"{url}/{id_}").json()["id"]
    assert {"faults": [], "seen": {"ping": 1}} == http.delete(url).json()
    assert {"faults": [], "seen": {}} == http.get(url).json()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b'{"kind": "fial"}'])
def test_an_invalid_fault_is_refused(double: Emulator, content: bytes) -> None:
    """400 in JSON."""
    answer = http.post(f"{double.url}/_emulator/faults", content=content)

    assert (400, "FaultError") == (answer.status_code, answer.json()["error"]["type"])


def test_an_unknown_fault_id_is_not_found(double: Emulator) -> None:
    """An id that is not a number is refused."""
    url = f"{double.url}/_emulator/faults/f0"

    assert 404 == http.get(url).status_code
    assert 404 == http.delete(url).status_code
    assert 404 == http.post(f"{url}/release").status_code
    assert 400 == http.get(url, params={"within_s": "soon"}).status_code
    assert 400 == http.get(url, params={"fired": "nan"}).status_code


def test_a_reset_removes_faults(double: Emulator) -> None:
    double.faults.arm("fail", "ping")

    double.reset()

    assert ((), {}) == (double.faults.states(), double.faults.seen())


def test_faults_from_settings_restart_after_a_reset() -> None:
    with Emulator(faults=[{"kind": "fail", "operation": "ping"}]) as double:
        statuses = [http.get(f"{double.url}/ping").status_code for _ in range(2)]
        double.reset()
        statuses += [http.get(f"{double.url}/ping").status_code for _ in range(2)]

    assert [500, 200, 500, 200] == statuses


def test_invalid_faults_in_settings_are_refused_at_once() -> None:
    """Nothing starts, and no port is taken."""
    with pytest.raises(FaultError, match="Did you mean fail"):
        Emulator(faults=[{"kind": "fial", "operation": "ping"}])


def test_the_double_s_own_routes_meet_no_fault(double: Emulator) -> None:
    """A fault on every call can still be removed."""
    double.faults.arm("fail", "/**", times="all")

    assert 500 == http.get(f"{double.url}/v1/sandbox").status_code
    assert 200 == http.get(f"{double.url}/_emulator/health").status_code
    assert 1 == http.delete(f"{double.url}/_emulator/faults").json()["faults"][0]["fired"]


def test_a_refused_request_meets_no_fault() -> None:
    """A fault does not bypass the API key, and the call is not counted."""
    with Emulator(api_key="s3cret", faults=[{"kind": "fail", "operation": "ping"}]) as double:
        refused = http.get(f"{double.url}/ping").status_code
        met = http.get(f"{double.url}/ping", headers={"X-API-Key": "s3cret"}).status_code

    assert (401, 500) == (refused, met)


def test_an_inspected_body_reaches_its_surface(double: Emulator) -> None:
    """Matching reads the body, and the surface reads it again."""
    double.faults.arm("fail", "mcp:other", times="all")
    double.faults.arm("fail", "a2a:tasks/get", times="all")
    message = {"messageId": "m", "role": "user", "kind": "message", "parts": []}
    request = {"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": {"message": message}}

    answer = http.post(f"{double.url}/", json=request)

    assert 7 == answer.json()["id"]
    assert {"a2a:message/send": 1} == double.faults.seen()
