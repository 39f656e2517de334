"""Who may call, and whose tasks are whose."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.test_classes import AsyncKept
from tests.agentdouble.apps.a2a.wire import V1, Wire, message, request, talk

ANN = {"Authorization": "Bearer ann's key"}
BOB = {"Authorization": "bearer bob's key"}
CARD = "/.well-known/agent-card.json"


def keyed() -> A2AApp:
    return A2AApp(runner="echo", keys=("ann's key", "bob's key"))


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic ann's key"}],
    ids=["none", "wrong", "scheme"],
)
def test_a_call_without_a_key_is_refused(headers: dict[str, str]) -> None:
    """401 that says what to send, on both bindings; the card alone is for everybody."""

    async def conversation(wire: Wire) -> None:
        body = request("SendMessage", message())
        for answer in (
            await wire.http.post("/", json=body, headers={**V1, **headers}),
            await wire.http.post("/message:send", json=message(), headers={**V1, **headers}),
            await wire.http.get("/tasks", headers={**V1, **headers}),
        ):
            assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"])
            assert "Authorization: Bearer" in answer.json()["error"]["message"]
        card = (await wire.http.get(CARD, headers=V1)).json()
        assert {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}} == card[
            "securitySchemes"
        ]

    talk(keyed(), conversation)


@pytest.mark.parametrize("store", [None, AsyncKept], ids=["memory", "own"])
def test_a_callers_tasks_are_its_own(store: Any) -> None:
    """Another key finds, lists, cancels and continues none of them."""
    app = keyed()
    if store is not None:
        app.task_store(store)

    async def conversation(wire: Wire) -> None:
        sent = await wire.rpc("SendMessage", message(), **ANN)
        task = sent["result"]["task"]
        id_ = {"id": task["id"]}

        assert task == (await wire.rpc("GetTask", id_, **ANN))["result"]
        for method, params in [
            ("GetTask", id_),
            ("CancelTask", id_),
            ("SubscribeToTask", id_),
            ("SendMessage", message(taskId=task["id"])),
            (
                "CreateTaskPushNotificationConfig",
                {"taskId": task["id"], "url": "http://localhost/"},
            ),
        ]:
            answer = await wire.rpc(method, params, **BOB)
            assert -32001 == answer["error"]["code"], method
        assert 0 == (await wire.rpc("ListTasks", {}, **BOB))["result"]["totalSize"]
        assert 1 == (await wire.rpc("ListTasks", {}, **ANN))["result"]["totalSize"]
        assert "metadata" not in task

    talk(app, conversation)
