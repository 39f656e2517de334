from __future__ import annotations

import json
import signal
import subprocess
import sys
from queue import Queue
from typing import Any

import httpx
import psutil
import pytest

from agentdouble import Emulator
from agentdouble.errors import SettingsError
from agentdouble.sandbox.nodes.engine import ChildNode, Lost
from agentdouble.sandbox.nodes.node import Node
from agentdouble.settings import Settings
from tests.agentdouble.calling import (
    TIMEOUT_S,
    Begun,
    background,
    body_of,
    call,
    data_plane,
    error_of,
    eventually,
    has_gone,
    http,
    result,
    run,
    text,
)
from tests.agentdouble.sandbox.nodes.fronts import (
    MODULE,
    altering,
    drain,
    front,
    have_joined,
    living,
    nodes,
    on_both,
    process_of,
)


def test_a_killed_node_is_told_to_its_callers_and_replaced() -> None:
    """Code that ran there is not sent again; sessions of the other node live on."""
    with front() as double:
        by_node = on_both(double)
        (lost_node, lost), (kept_node, surviving) = by_node.items()
        code = Begun(double, lost, "import time; time.sleep(60)")
        process = process_of(double, lost_node)
        process.kill()
        answer = code.future.result()
        eventually(lambda: living(double), lambda sessions: lost not in sessions)

        assert "KernelDied" == answer["data"]["outputs"][-1]["ename"]
        assert lost_node in answer["message"]
        assert "42\n" == text(double, "print(x + 1)", surviving)
        assert "7\n" == text(double, "print(7)", "new")
        eventually(lambda: set(nodes(double)), lambda names: names == {lost_node, kept_node})
        assert "NameError" == run(double, "x", lost)["data"]["outputs"][0]["ename"]
        ended = http.get(f"{double.url}/_emulator/sessions").json()["ended"]
        assert all(lost_node in end["reason"] for end in ended)


def test_a_call_whose_node_is_lost_before_it_is_reached_gets_kernel_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets the same error as a call whose node is lost later."""
    ask, nodes = Node.ask, Queue[str]()

    async def ask_too_late(node: Node, path: str, *arguments: Any) -> dict[str, Any]:
        if path == "/execute":
            nodes.put(node.name)
            await node.gone
        return await ask(node, path, *arguments)

    with front() as double:
        monkeypatch.setattr(Node, "ask", ask_too_late)
        code = background(lambda: run(double, "1"))
        process_of(double, nodes.get(timeout=TIMEOUT_S)).kill()

        assert "KernelDied" == code.result()["data"]["outputs"][-1]["ename"]


def test_a_silent_node_is_lost_after_the_set_time() -> None:
    """It is ended and replaced."""
    with front(node_silence_s=2) as double:
        by_node = on_both(double)
        (lost_node, lost), (_, surviving) = by_node.items()
        code = Begun(double, lost, "import time; time.sleep(60)")
        process = process_of(double, lost_node)
        process.send_signal(signal.SIGSTOP)
        answer = code.future.result()

        assert f"its node {lost_node} did not answer for 2 s" in answer["message"]
        assert "42\n" == text(double, "print(x + 1)", surviving)
        assert has_gone(process.pid, 30)
        have_joined(double, 2)


def test_a_data_plane_request_that_is_cut_off_ends_the_session() -> None:
    with front(1) as double:
        plane = data_plane(double)
        assert plane.post("/v1/file/list", path=".").is_success
        (name,) = nodes(double)
        process = process_of(double, name)
        process.kill()
        answer = plane.post("/v1/file/list", path=".")

        assert (answer.status_code, name in answer.json()["message"]) in [(502, True), (410, True)]


def test_nodes_end_with_their_front() -> None:
    """Also if it is killed."""
    code = (
        "from agentdouble import Emulator\n"
        "double = Emulator(nodes='local://1', pool_size=0).start()\n"
        "print(double.url, double.token, flush=True)\n"
        "input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        url, token = background(process.stdout.readline).result(TIMEOUT_S).split()
        headers = {"X-API-Key": token}
        eventually(
            lambda: httpx.get(f"{url}/_emulator/nodes", headers=headers).json()["nodes"], bool
        )
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()

    assert 2 <= len(children)
    assert [] == [child for child in children if not has_gone(child.pid, 30)]


def test_a_node_ends_when_no_front_asks_it() -> None:
    """A front on the other side of a broken network does not."""
    config = {"key": "k", "host": "127.0.0.1", "silence_s": 1, "capacity": None, "settings": {}}
    with subprocess.Popen([sys.executable, "-m", MODULE], stdin=-1, stdout=-1, text=True) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        print(json.dumps(config), file=node.stdin, flush=True)
        url = json.loads(background(node.stdout.readline).result(TIMEOUT_S))["url"]
        answer = http.post(
            f"{url}/_node/watch", headers={"x-agentdouble-node": "k"}, json={"seen": 0, "wait_s": 0}
        )

        assert {"seen", "ended", "free", "busy"} <= answer.json().keys()
        assert 0 == node.wait(30)


def test_a_node_that_does_not_start_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentdouble.sandbox.nodes.engine.START_S", 1)
    before = psutil.Process().children()
    node = ChildNode({})
    (process,) = set(psutil.Process().children()) - set(before)
    process.suspend()
    try:
        assert Lost("n", "did not start within 1 s (killed by signal 9)") == node.hello("n")
    finally:
        node.end()
        assert node._process.stdout is not None
        node._process.stdout.close()


@pytest.mark.parametrize("path", ["/_node/watch", "/_node/execute", "/v1/sandbox", "/invoke", "/"])
@pytest.mark.parametrize("key", ["", "wrong", "ü"])
def test_a_node_answers_only_its_front(a_front: Emulator, path: str, key: str) -> None:
    (node,) = nodes(a_front).values()
    answer = http.post(
        node["url"] + path, headers={"x-agentdouble-node": key.encode()}, json={"seen": 0}
    )

    assert (401, "This node answers only its front, which has its key.") == (
        answer.status_code,
        answer.text,
    )


@pytest.fixture(scope="module")
def a_front() -> object:
    with front(1) as double:
        yield double


def test_a_node_of_another_version_gets_no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    altering(monkeypatch, version="0.0.1")
    monkeypatch.setattr("agentdouble.sandbox.nodes.node_placement.PATIENCE_S", 0)
    with front(1) as double:
        refused = error_of(call(double, body_of(double, "1")))

        assert (429, "QuotaExceeded") == (refused["status"], refused["Code"])
        assert "it has agentdouble 0.0.1, and the front has" in refused["Message"]


def test_a_node_with_another_key_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    altering(monkeypatch, key="another")
    monkeypatch.setattr("agentdouble.sandbox.nodes.node_placement.PATIENCE_S", 0)
    with Emulator(nodes="local://1", pool_size=0) as double:
        refused = eventually(
            lambda: error_of(call(double, body_of(double, "1"))),
            lambda error: "answers 401" in error["Message"],
        )

        assert 429 == refused["status"]


def test_a_node_that_holds_less_than_it_says_passes_sessions_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They go to another node; when all are full, the refusal names each."""
    altering(monkeypatch, capacity=100)
    with front(2, node_capacity=1) as double:
        result(double, "1", "a")
        result(double, "1", "b")
        assert 2 == len({session["node"] for session in living(double).values()})

        refused = error_of(call(double, body_of(double, "1", "c")))
        assert (429, "QuotaExceeded") == (refused["status"], refused["Code"])
        for name in nodes(double):
            assert f"{name} is full, with " in refused["Message"]
        assert "it has 1 sessions, as many as it can hold" in refused["Message"]


def test_full_nodes_refuse_by_name_until_a_session_ends() -> None:
    with front(1, node_capacity=1) as double:
        session = result(double, "1", "a")["SessionId"]
        refused = error_of(call(double, body_of(double, "1", "b")))
        assert "node-1 is full, with 1 of 1 sessions" in refused["Message"]

        double.clock.advance(minutes=30)
        assert session != result(double, "1", "a")["SessionId"]


def test_draining_loses_no_session_before_its_deadline() -> None:
    """New ones go elsewhere; the node ends when it has none."""
    with front() as double:
        by_node = on_both(double)
        (drained, session), (other, _) = by_node.items()
        process = process_of(double, drained)
        assert 200 == drain(double, drained, 600)[0]
        for number in range(3):
            result(double, "1", f"new{number}")

        assert {other} == {living(double)[f"new{number}"]["node"] for number in range(3)}
        assert "42\n" == text(double, "print(x + 1)", session)
        double.clock.advance(minutes=30)
        assert has_gone(process.pid, 30)
        assert "2\n" == text(double, "print(2)")


def test_sessions_that_live_at_the_deadline_of_a_drained_node_end() -> None:
    with front(1) as double:
        result(double, "1")
        assert 200 == drain(double, "node-1", 0)[0]
        eventually(lambda: living(double), lambda sessions: not sessions)
        (end,) = http.get(f"{double.url}/_emulator/sessions").json()["ended"]

        assert "its node node-1 was drained" == end["reason"]


@pytest.mark.parametrize("deadline_s", [-1, "1", None, 1e9])
def test_a_wrong_deadline_is_refused(a_front: Emulator, deadline_s: object) -> None:
    status, message = drain(a_front, "node-1", deadline_s)

    assert (400, True) == (status, "deadline_s" in message)


def test_an_unknown_node_is_refused_by_name(a_front: Emulator, shared: Emulator) -> None:
    assert "no node 'x': the nodes are node-1" in drain(a_front, "x", 1)[1]
    assert "no node 'x': it has no nodes (serve --nodes)" in drain(shared, "x", 1)[1]


@pytest.mark.parametrize("url", ["ray://host", "dask://h:1", "local://0", "local://"])
def test_a_wrong_address_of_nodes_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="The setting nodes from the arguments must be ray:"):
        Settings.load(nodes=url)


def test_a_double_without_nodes_imports_nothing_of_them() -> None:
    code = (
        "import sys; from agentdouble import Emulator\n"
        "with Emulator() as double: pass\n"
        "print([n for n in sys.modules if 'sandbox.nodes' in n or n.split('.')[0] == 'ray'])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )

    assert "[]\n" == printed.stdout
