"""Push configurations over REST in version 0.3, as the clients of that era ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.wire import Wire, talk

HOOK = "http://127.0.0.1:1/hook"
CONFIG = {"pushNotificationConfig": {"id": "mine", "url": HOOK}}
WHOLE = {"parent": "tasks/{task}", "configId": "mine", "config": CONFIG}
NAMED = {"name": "tasks/{task}/pushNotificationConfigs/mine", **CONFIG}


@pytest.mark.parametrize("body", [WHOLE, NAMED, CONFIG], ids=["a2a-sdk", "a2a-js", "alone"])
def test_a_configuration_is_made_read_and_deleted(body: dict[str, Any]) -> None:
    """By the message that a2a-sdk sends, and by the configuration alone."""

    async def conversation(wire: Wire) -> None:
        task = (await wire.send())["task"]["id"]
        every = f"/v1/tasks/{task}/pushNotificationConfigs"
        sent = {name: _of(task, value) for name, value in body.items()}
        made = (await wire.http.post(every, json=sent)).json()
        deleted = await wire.http.delete(f"{every}/mine")

        assert (f"tasks/{task}/pushNotificationConfigs/mine", HOOK) == (
            made["name"],
            made["pushNotificationConfig"]["url"],
        )
        assert (200, {}) == (deleted.status_code, deleted.json())
        assert 404 == (await wire.http.get(f"{every}/mine")).status_code

    talk(A2AApp(runner="echo"), conversation)


def test_another_version_and_another_s_task_are_refused() -> None:
    """As elsewhere: the path is that of 0.3, and no other task is named by the body."""

    async def conversation(wire: Wire) -> None:
        config = "/v1/tasks/nobody's/pushNotificationConfigs"
        newer = await wire.http.delete(f"{config}/mine", headers={"A2A-Version": "1.0"})
        unknown = await wire.http.delete(f"{config}/mine")
        made = await wire.http.post(config, json=CONFIG)

        assert [400, 404, 404] == [one.status_code for one in (newer, unknown, made)]
        assert "VERSION_NOT_SUPPORTED" in newer.text

    talk(A2AApp(runner="echo"), conversation)


def _of(task: str, value: Any) -> Any:
    return value.format(task=task) if isinstance(value, str) else value
