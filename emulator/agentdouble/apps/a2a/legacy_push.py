"""Receivers of version 0.3, which are told the whole task where 1.0 tells what has happened."""

from __future__ import annotations

import logging
from typing import Any

import httpx
from a2a.compat.v0_3.conversions import to_compat_task
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryPushNotificationConfigStore
from a2a.types import Task, TaskPushNotificationConfig

from agentdouble.apps.a2a.reading import VERSION_HEADER

_log = logging.getLogger(__name__)


class Configs(InMemoryPushNotificationConfigStore):
    """Configurations in memory, those apart that a caller of version 0.3 has made."""

    def __init__(self) -> None:
        super().__init__()
        self._makers: dict[tuple[str, str], ServerCallContext] = {}
        self._asked: set[str] = set()

    def may_have(self, task_id: str) -> bool:
        """Return whether a receiver was ever named for a task: for most tasks none is."""
        return task_id in self._asked

    async def set_info(
        self,
        task_id: str,
        notification_config: TaskPushNotificationConfig,
        context: ServerCallContext,
    ) -> TaskPushNotificationConfig:
        """Keep a configuration, in the place of an earlier one with its id."""
        self._asked.add(task_id)
        stored: TaskPushNotificationConfig
        stored = await super().set_info(task_id, notification_config, context)
        self._makers.pop((task_id, stored.id), None)
        if _is_legacy(context):
            self._makers[task_id, stored.id] = context
        return stored

    async def get_info_for_dispatch(self, task_id: str) -> list[TaskPushNotificationConfig]:
        """Return the configurations that version 1.0 has made."""
        found = await super().get_info_for_dispatch(task_id)
        return [one for one in found if (task_id, one.id) not in self._makers]

    async def of_legacy(
        self, task_id: str
    ) -> list[tuple[TaskPushNotificationConfig, ServerCallContext]]:
        """Return those that version 0.3 has made, each with its maker's call."""
        return [
            (one, self._makers[task_id, one.id])
            for one in await super().get_info_for_dispatch(task_id)
            if (task_id, one.id) in self._makers
        ]


async def tell(client: httpx.AsyncClient, config: TaskPushNotificationConfig, task: Task) -> None:
    """Send a receiver a task as version 0.3 writes it; what fails is logged."""
    try:
        answer = await client.post(config.url, json=_written(task), headers=_headers(config))
        answer.raise_for_status()
    except httpx.HTTPError as error:
        _log.warning("Task %s: a notification failed: %s", task.id, error)


def _written(task: Task) -> dict[str, Any]:
    written: dict[str, Any] = to_compat_task(task).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return written


def _headers(config: TaskPushNotificationConfig) -> dict[str, str]:
    headers = {"X-A2A-Notification-Token": config.token} if config.token else {}
    given = config.authentication
    if given.scheme and given.credentials:
        headers["Authorization"] = f"{given.scheme} {given.credentials}"
    return headers


def _is_legacy(context: ServerCallContext) -> bool:
    asked: str = context.state.get("headers", {}).get(VERSION_HEADER.lower(), "")
    return not asked or asked.startswith("0.")
