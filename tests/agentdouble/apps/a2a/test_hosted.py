"""A2A applications in a double, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import A2AApp, Emulator
from tests.agentdouble.apps.a2a.test_guarding_executor import for_ever, playing
from tests.agentdouble.apps.a2a.wire import V1, message, reply_of, request
from tests.agentdouble.calling import http

CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double with applications at the root and below names."""
    with Emulator(A2AApp("first", runner="echo"), A2AApp("second", runner="streamer")) as double:
        yield double


def send(url: str, text: str = "hello", **headers: str) -> Any:
    """Return the task that results from a message."""
    answer = http.post(
        url, json=request("SendMessage", message(text)), headers={**V1, **headers}, timeout=60
    )
    assert 200 == answer.status_code, answer.text
    return answer.json()["result"]["task"]


def text_of(task: dict[str, Any]) -> str:
    parts = [part for artifact in task["artifacts"] for part in artifact["parts"]]
    return "".join(part["text"] for part in parts)


def test_shipped_coder_is_the_default_application(shared: Emulator) -> None:
    """It runs a message's code in the sandbox; a context is a session."""
    first = send(shared.url, "x = 6 * 7")
    body = request("SendMessage", message("print(x)", contextId=first["contextId"]))
    second = http.post(shared.url, json=body, headers=V1).json()["result"]["task"]

    assert "TASK_STATE_COMPLETED" == second["status"]["state"]
    assert "42" == text_of(second)


@pytest.mark.parametrize("path", ["", "/"])
def test_first_application_answers_posts_to_the_root(double: Emulator, path: str) -> None:
    """POST / without an Action is A2A's."""
    assert "hello" == text_of(send(double.url + path))


@pytest.mark.parametrize("path", ["/runtimes/second", "/runtimes/second/"])
def test_further_applications_are_below_their_names(double: Emulator, path: str) -> None:
    """With and without a trailing slash, without a redirect."""
    assert "hello" == text_of(send(double.url + path))


@pytest.mark.parametrize("place", ["", "/runtimes/second"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_both_bindings_and_versions_share_an_address(
    double: Emulator, place: str, slash: str
) -> None:
    """JSON-RPC of 1.0 and 0.3, and REST of 1.0; REST of 0.3 is refused by name."""
    url = double.url + place
    task = send(url)
    old = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
    rpc_old = http.post(url + slash, json=request("message/send", {"message": old})).json()
    rest = http.post(url + "/message:send" + slash, json=message(), headers=V1).json()
    refused = [
        http.request(method, url + path + slash, json={})
        for method, path in (
            ("POST", "/v1/message:send"),
            ("GET", "/v1/tasks/t"),
            ("GET", "/v1/card"),
        )
    ]
    read = http.get(url + f"/tasks/{task['id']}" + slash, headers=V1).json()

    assert "completed" == rpc_old["result"]["status"]["state"]
    assert ["TASK_STATE_COMPLETED"] * 2 == [
        task["status"]["state"] for task in (rest["task"], read)
    ]
    assert [501] * 3 == [answer.status_code for answer in refused]
    assert all("A2A 0.3 over REST is not built" in answer.text for answer in refused)


@pytest.mark.parametrize(("place", "name"), [("", "first"), ("/runtimes/second", "second")])
def test_card_names_the_requested_address(double: Emulator, place: str, name: str) -> None:
    """A2A-01, for each application."""
    card = http.get(double.url + place + CARD, headers=V1).json()

    assert name == card["name"]
    assert [
        {"url": double.url + place, "protocolBinding": binding, "protocolVersion": "1.0"}
        for binding in ("JSONRPC", "HTTP+JSON")
    ] == card["supportedInterfaces"]


def test_every_surface_requires_the_key() -> None:
    """A2A too, on all of its paths, including those below /v1."""
    with Emulator(A2AApp("one", runner="echo"), api_key="k") as double:
        for method, path in [
            ("POST", "/"),
            ("GET", CARD),
            ("POST", "/message:send"),
            ("POST", "/v1/message:send"),
            ("GET", "/v1/tasks/x"),
            ("GET", "/tasks"),
        ]:
            answer = http.request(method, double.url + path)
            code = -32600 if path == "/" else 401
            assert (401, code) == (answer.status_code, answer.json()["error"]["code"]), path
        assert "hello" == text_of(send(double.url, Authorization="Bearer k"))


def test_answer_names_its_unknowns(double: Emulator) -> None:
    """The header lists the ledger's entries."""
    answer = http.post(double.url, json=request("SendMessage", message()), headers=V1)

    assert {"U-A2A-TASK", "U-A2A-EVENTS"} <= set(
        answer.headers["x-agentdouble-unknowns"].split(", ")
    )


def test_tasks_survive_a_restart_with_a_state(tmp_path: Any) -> None:
    """They are returned and listed."""
    state = f"sqlite:///{tmp_path}/state.db"
    with Emulator(A2AApp("one", runner="echo"), state=state) as double:
        task = send(double.url)
    with Emulator(A2AApp("one", runner="echo"), state=state) as double:
        restored = http.get(double.url + f"/tasks/{task['id']}", headers=V1).json()
        listed = http.get(double.url + "/tasks", headers=V1).json()
        double.reset(keep=())
    with Emulator(A2AApp("one", runner="echo"), state=state) as double:
        deleted = http.get(double.url + f"/tasks/{task['id']}", headers=V1)

    assert task == restored
    assert [task["id"]] == [task["id"] for task in listed["tasks"]]
    assert 404 == deleted.status_code


def test_task_interrupted_by_a_restart_has_failed(tmp_path: Any) -> None:
    """Otherwise a waiting caller would wait forever."""
    state = f"sqlite:///{tmp_path}/state.db"
    params = {**message(), "configuration": {"returnImmediately": True}}
    with Emulator(playing(for_ever), state=state) as double:
        sent = http.post(double.url, json=request("SendMessage", params), headers=V1).json()
    id_ = sent["result"]["task"]["id"]
    with Emulator(playing(for_ever), state=state) as double:
        task = http.get(double.url + f"/tasks/{id_}", headers=V1).json()

    assert ("TASK_STATE_FAILED", "The platform was restarted while the agent worked.") == (
        task["status"]["state"],
        reply_of(task),
    )


OLD = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
RECEIVER = {"url": "http://127.0.0.1:9/"}


@pytest.fixture(scope="module")
def other() -> Iterator[Emulator]:
    """A double with the other answer to each unknown."""
    unknowns = {"U-A2A-TASK": "0.3", "U-WEBHOOKS": "none"}
    with Emulator(A2AApp("one", runner="echo"), unknowns=unknowns) as double:
        yield double


def test_version_0_3_alone(other: Emulator) -> None:
    """U-A2A-TASK: its card and its methods, and nothing of 1.0."""
    card = http.get(other.url + CARD).json()
    done = http.post(other.url, json=request("message/send", {"message": OLD})).json()
    refused = http.post(other.url, json=request("SendMessage", message()), headers=V1).json()

    assert ("0.3.0", other.url, "JSONRPC") == (
        card["protocolVersion"],
        card["url"],
        card["preferredTransport"],
    )
    assert "supportedInterfaces" not in card
    assert "completed" == done["result"]["status"]["state"]
    assert -32601 == refused["error"]["code"]
    assert 404 == http.post(other.url + "/message:send", json=message(), headers=V1).status_code


def test_webhooks_can_be_disabled(other: Emulator) -> None:
    """U-WEBHOOKS: no card declares push notifications, and each operation is refused."""
    assert not http.get(other.url + CARD).json()["capabilities"]["pushNotifications"]
    sent = http.post(other.url, json=request("message/send", {"message": OLD})).json()
    config = {"taskId": sent["result"]["id"], "pushNotificationConfig": RECEIVER}
    registered = http.post(other.url, json=request("tasks/pushNotificationConfig/set", config))
    along = {"message": OLD, "configuration": {"pushNotificationConfig": RECEIVER}}
    with_message = http.post(other.url, json=request("message/send", along))

    assert [-32003, -32003] == [
        answer.json()["error"]["code"] for answer in (registered, with_message)
    ]
    assert "U-WEBHOOKS" in with_message.headers["x-agentdouble-unknowns"]
