from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.faults.parsing import KINDS
from tests.agentdouble.calling import (
    background,
    body_of,
    call,
    data_plane,
    ended,
    error_of,
    has_gone,
    pids_of,
    result,
    run,
    text,
)
from tests.agentdouble.calling import http as client

COUNT = "import pathlib; p = pathlib.Path('n'); p.write_text((p.read_text() if p.exists() else '') + 'x')"
LENGTH = "print(len(open('n').read()))"
APP = SimpleApp("counting")


@APP.entrypoint
async def _entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> Any:
    for number in range(payload["count"]):
        yield f"chunk {number}"


@pytest.fixture(scope="module")
def _serving() -> Iterator[Emulator]:
    with Emulator(APP) as double:
        yield double


@pytest.fixture
def double(_serving: Emulator) -> Iterator[Emulator]:
    """A double without sessions that must still work after the test."""
    _serving.reset()
    yield _serving
    _serving.faults.clear()
    assert "3\n" == text(_serving, "print(1 + 2)", "after")


def invoke(double: Emulator, **payload: Any) -> httpx.Response:
    return client.post(f"{double.url}/invoke", json={"count": 3, **payload})


def received(double: Emulator) -> tuple[int | None, bytes]:
    """Return the status and the partial body of an invocation, up to the end of the connection."""
    address = urlsplit(double.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    connection.request("POST", "/invoke", json.dumps({"count": 3}))
    try:
        response = connection.getresponse()
        try:
            return response.status, response.read()
        except http.client.IncompleteRead as error:
            return response.status, error.partial
    finally:
        connection.close()


def fired(double: Emulator) -> list[int]:
    return [state.fired for state in double.faults.states()]


@pytest.mark.slow
def test_the_nth_call_fails_without_being_executed(double: Emulator) -> None:
    """The error has the control plane's shape and the given code and header."""
    double.faults.arm(
        "fail", "InvokeTool", nth=2, status=429, code="FlowLimit", message="slow", retry_after_s=3
    )

    answers = [call(double, body_of(double, COUNT)) for _ in range(3)]

    assert [200, 429, 200] == [answer.status_code for answer in answers]
    error = error_of(answers[1])
    assert (429, "FlowLimit", "slow") == (error["status"], error["Code"], error["Message"])
    assert "3" == answers[1].headers["retry-after"]
    assert "2\n" == text(double, LENGTH)


def test_a_throttled_action_has_the_code_of_the_control_plane_s_limit(double: Emulator) -> None:
    """Other surfaces do not know that code."""
    for operation in ("InvokeTool", "model"):
        double.faults.arm("fail", operation, status=429)
    question = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    key = {"Authorization": f"Bearer {double.environment('model')['OPENAI_API_KEY']}"}

    throttled = error_of(call(double, body_of(double, COUNT)))
    of_the_model = client.post(
        f"{double.url}/model/v1/chat/completions", json=question, headers=key
    )

    assert "RequestLimitExceeded" == throttled["Code"]
    assert "TooManyRequests" == of_the_model.json()["error"]["code"]


def test_a_failed_call_can_be_executed(double: Emulator) -> None:
    """Its answer is the error all the same."""
    double.faults.arm("fail", "InvokeTool", status=504, after_execution=True)

    answers = [call(double, body_of(double, COUNT)) for _ in range(2)]

    assert [504, 200] == [answer.status_code for answer in answers]
    assert "GatewayTimeout" == error_of(answers[0])["Code"]
    assert "2\n" == text(double, LENGTH)


def test_a_failure_has_its_surface_s_error_shape(double: Emulator) -> None:
    for path in ("/invoke", "/mcp", "/message:send"):
        double.faults.arm("fail", path, status=503)
    answers = [
        client.post(f"{double.url}{p}", json={}) for p in ("/invoke", "/mcp", "/message:send")
    ]

    assert [503, 503, 503] == [answer.status_code for answer in answers]
    simple, mcp, a2a = (answer.json()["error"] for answer in answers)
    assert "ServiceUnavailable" == simple["type"]
    assert "A fault that was armed for this call." == mcp["message"]
    assert "SERVICE_UNAVAILABLE" == a2a["details"][0]["reason"]


def test_a_failure_can_have_any_body(double: Emulator) -> None:
    """Even 200 with garbage."""
    double.faults.arm("fail", "ping", status=200, body="rubbish", headers={"X-Note": "mine"})

    answer = client.get(f"{double.url}/ping")

    assert (200, "rubbish", "mine") == (answer.status_code, answer.text, answer.headers["x-note"])


def test_a_gateway_error_is_an_html_page(double: Emulator) -> None:
    double.faults.arm("gateway", "invoke", status=504)

    answer = invoke(double)

    assert (504, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert "<title>504 Gateway Timeout</title>" in answer.text


def test_a_held_call_waits_before_it_is_executed(double: Emulator) -> None:
    """Once released, it continues normally."""
    fault = double.faults.arm("delay", "InvokeTool")
    answer = background(lambda: text(double, "print(1)"))
    assert 1 == double.faults.wait(fault.id, timeout_s=30).fired
    executed = client.get(f"{double.url}/_emulator/sessions").json()["sessions"]

    double.faults.release(fault.id)

    assert ([], "1\n") == (executed, answer.result(30))


def test_a_held_answer_waits_after_execution(double: Emulator) -> None:
    """The call takes effect though the client gives up."""
    fault = double.faults.arm("delay", "InvokeTool", after_execution=True)
    answer = background(lambda: run(double, COUNT))
    double.faults.wait(fault.id, timeout_s=30)

    (session,) = client.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    double.faults.clear()

    assert 1 == session["executions"]
    assert answer.result(30)["success"]


def test_a_delay_ends_by_itself(double: Emulator) -> None:
    double.faults.arm("delay", "ping", seconds=0.01)

    assert 200 == client.get(f"{double.url}/ping").status_code
    assert [1] == fired(double)


def test_a_stream_is_cut_after_events(double: Emulator) -> None:
    """Whole events arrive, then the connection ends early."""
    double.faults.arm("cut", "invoke", after=2)

    status, body = received(double)

    assert (200, 2) == (status, body.count(b"\n\n"))
    assert b"chunk 1" in body
    assert b"chunk 2" not in body
    double.faults.arm("cut", "invoke", after=2)
    with pytest.raises(httpx.RemoteProtocolError):
        invoke(double)


def test_an_answer_is_cut_after_bytes(double: Emulator) -> None:
    """By default only its head is sent."""
    double.faults.arm("cut", "invoke", after_bytes=5)
    double.faults.arm("cut", "invoke", nth=2)

    assert [(200, b"data:"), (200, b"")] == [received(double), received(double)]


def test_a_lost_answer_was_executed(double: Emulator) -> None:
    """The connection ends without a byte."""
    run(double, COUNT)
    lost = double.faults.arm("lose_answer", "InvokeTool")

    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        call(double, body_of(double, COUNT))

    entry = double.journal.entries()[1]
    assert (None, [f"{lost.id} lose_answer"]) == (entry.status, entry.faults)
    assert "2\n" == text(double, LENGTH)


def test_a_reset_call_is_not_executed(double: Emulator) -> None:
    """The client gets a connection reset."""
    run(double, COUNT)
    double.faults.arm("reset", "InvokeTool")

    with pytest.raises((httpx.ReadError, httpx.WriteError)):
        call(double, body_of(double, COUNT))

    assert "1\n" == text(double, LENGTH)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, '{"success": tru'),
        ({"text": "[]"}, "[]"),
        ({"without": ["data.outputs", "message"]}, {"success", "data"}),
    ],
    ids=["broken", "given", "without"],
)
def test_a_corrupt_answer_has_invalid_inner_json(
    double: Emulator, fields: dict[str, Any], expected: str | set[str]
) -> None:
    """The envelope is valid, and the code has run."""
    double.faults.arm("wrong_json", "InvokeTool", **fields)

    inner = result(double, COUNT)["Result"]

    if isinstance(expected, set):
        document = json.loads(inner)
        assert expected == set(document)
        assert "outputs" not in document["data"]
    else:
        assert expected == inner
    assert "1\n" == text(double, LENGTH)


def test_a_kernel_dies_while_code_runs(double: Emulator) -> None:
    """The answer says so, and the next call gets a new session."""
    text(double, "x = 1")
    (pid,) = pids_of(double)
    double.faults.arm("kill_kernel", "InvokeTool")

    inner = run(double, "open('/dev/null'); 1 + 1")

    assert (False, "error") == (inner["success"], inner["data"]["status"])
    assert "killed by signal 9 (SIGKILL)" in inner["message"]
    assert has_gone(pid, 30)
    assert {"s1"} == set(ended(double))
    assert "NameError" == run(double, "x")["data"]["outputs"][0]["ename"]


def test_a_kernel_dies_after_outputs(double: Emulator) -> None:
    """Earlier outputs are kept; later code does not run."""
    double.faults.arm("kill_kernel", "InvokeTool", after=1)

    inner = run(double, "print('told\\n', end='', flush=True)\nimport time\ntime.sleep(3600)")

    outcome, died = inner["data"]["outputs"]
    assert ("told\n", "KernelDied") == (outcome["text"], died["ename"])


@pytest.mark.slow
def test_code_that_times_out_first_is_interrupted(double: Emulator) -> None:
    """The fault does not occur."""
    double.faults.arm("kill_kernel", "InvokeTool", after=1)

    inner = run(double, "import time; time.sleep(3600)", timeout_s=1)

    assert "timeout" == inner["data"]["status"]
    assert "longer than its timeout of 1 s and was interrupted" in inner["message"]
    assert [0] == fired(double)


def test_data_plane_code_loses_its_kernel(double: Emulator) -> None:
    """Other kernels of the session survive."""
    text(double, "x = 1; print(x)")
    plane = data_plane(double)
    double.faults.arm("kill_kernel", "/v1/code/execute")

    message = plane.refusal("/v1/code/execute", language="python", code="1")

    assert "SIGKILL" in message
    assert "1\n" == text(double, "print(x)")


def test_an_instance_expires_while_code_runs(double: Emulator) -> None:
    """Code ends as at the deadline (U-TTL-DURING), and the next call gets a new instance."""
    text(double, "x = 1; print(x)")
    double.faults.arm("expire_instance", "InvokeTool")

    inner = run(double, "import time; time.sleep(3600)")

    assert (False, "error") == (inner["success"], inner["data"]["status"])
    assert "expired at" in inner["message"]
    assert "expired at" in ended(double)["s1"]
    assert "NameError" == run(double, "x")["data"]["outputs"][0]["ename"]


def test_an_instance_expires_after_code_that_may_finish() -> None:
    with Emulator(unknowns={"U-TTL-DURING": "finishes"}, pool_size=0) as double:
        double.faults.arm("expire_instance", "InvokeTool")

        assert "1\n" == text(double, "print(1)")
        assert "expired at" in ended(double)["s1"]


def test_the_journal_and_a_header_name_the_fault(double: Emulator) -> None:
    state = double.faults.arm("fail", "ping")

    answer = client.get(f"{double.url}/ping")

    assert f"{state.id} fail" == answer.headers["x-agentdouble-faults"]
    assert [[f"{state.id} fail"]] == [entry.faults for entry in double.journal.entries()]
    assert "x-agentdouble-faults" not in client.get(f"{double.url}/ping").headers


def test_faults_apply_in_the_order_they_were_armed(double: Emulator) -> None:
    """Several can hit one call; the first is the outermost."""
    late = double.faults.arm("delay", "ping", seconds=0.001)
    fail = double.faults.arm("fail", "ping", status=500)
    never = double.faults.arm("delay", "ping", seconds=60)

    assert 500 == client.get(f"{double.url}/ping").status_code
    assert {late.id: 1, fail.id: 1, never.id: 0} == {s.id: s.fired for s in double.faults.states()}


def test_connection_faults_work_over_tls() -> None:
    """This covers reset, lost and cut."""
    with Emulator(APP, tls=True) as double:
        context = ssl.create_default_context(cafile=str(double.ca_file))
        with httpx.Client(verify=context, trust_env=False, timeout=30) as trusting:
            for kind in ("reset", "lose_answer", "cut"):
                double.faults.arm(kind, "invoke")
                with pytest.raises(httpx.TransportError):
                    trusting.post(f"{double.url}/invoke", json={"count": 3})
            assert 200 == trusting.post(f"{double.url}/invoke", json={"count": 3}).status_code
        assert [1, 1, 1] == fired(double)


def test_every_kind_of_fault_has_an_effect() -> None:
    from agentdouble.faults.effects import _EFFECTS

    assert set(KINDS.values()) == set(_EFFECTS)


def test_stopping_the_double_releases_held_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentdouble.server.starting.GRACE_S", 30)  # what is not let go is ended
    with Emulator(APP) as double:
        fault = double.faults.arm("delay", "ping")
        answer = background(lambda: client.get(f"{double.url}/ping"))
        double.faults.wait(fault.id, timeout_s=30)

    assert 200 == answer.result(30).status_code
