"""Push notifications by the SDK's sender, and to receivers of version 0.3.

Receivers of version 0.3 get the whole task, those of version 1.0 get the event.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
from a2a.compat.v0_3.conversions import to_compat_task
from a2a.server.context import ServerCallContext
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    PushNotificationEvent,
    TaskStore,
)
from a2a.types import Task, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError

from agentdouble.apps.a2a.paths import VERSION_HEADER
from agentdouble.core import ledger, log_filters, redaction
from agentdouble.server.sockets import is_loopback

TIMEOUT_S = 5.0

_log = logging.getLogger(__name__)
for _logger in (__name__, "a2a.server.tasks.base_push_notification_sender", "httpx"):
    log_filters.hide_secrets(_logger)  # the addresses of receivers may have some


class Receivers:
    """The receivers that may be called: loopback and the allowed hosts; "*" allows every host.

    Names are not resolved, because the address of a name may change between the check and the call.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)

    async def named(self, url: str) -> bool:
        """Return True for a valid http URL; raise InvalidParamsError otherwise."""
        host = _host(url)
        if not host:
            redacted = redaction.without_secrets(url)
            raise InvalidParamsError(f"A push notification needs an http URL, not {redacted!r}.")
        # The protocol requires servers to accept every address. Log those that are not called.
        if not self._called(host):
            _log.warning(
                "No push notification will be sent to %r: only loopback and the hosts in the "
                "application's push_hosts are allowed.",
                host,
            )
        return True

    async def called(self, url: str) -> bool:
        """Return whether a receiver may be called."""
        return self._called(_host(url))

    def _called(self, host: str) -> bool:
        return is_loopback(host) or host in self._allowed or "*" in self._allowed


class Pusher(BasePushNotificationSender):
    """Sends each event to the receivers of its task: the task to those of version 0.3."""

    def __init__(self, configs: Configs, receivers: Receivers, tasks: TaskStore) -> None:
        # no proxy of the environment, but its certificates
        trusted = httpx.create_ssl_context()
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, verify=trusted)
        super().__init__(self._http, configs, push_url_validator=receivers.called)
        self._configs = configs
        self._receivers = receivers
        self._tasks = tasks

    async def send_notification(self, task_id: str, event: PushNotificationEvent) -> None:
        """Send an event; a receiver that does not answer in time is logged."""
        if ledger.choose("U-WEBHOOKS") == "none" or not self._configs.may_have(task_id):
            return
        await super().send_notification(task_id, event)
        for config, context in await self._configs.of_legacy(task_id):
            task = await self._tasks.get(task_id, context)
            if task is not None and await self._receivers.called(config.url):
                await _notify_legacy(self._http, config, task)

    async def close(self) -> None:
        """Stop sending."""
        await self._http.aclose()


def _host(url: str) -> str:
    """Return the host of an http URL, or an empty string for other URLs."""
    try:
        parsed = urlsplit(url)
        _ = parsed.port  # raises ValueError for a wrong port
    except ValueError:
        return ""
    return (parsed.hostname or "").lower() if parsed.scheme in ("http", "https") else ""


class Configs(InMemoryPushNotificationConfigStore):
    """Configurations in memory; it knows which of them were created with version 0.3."""

    def __init__(self) -> None:
        super().__init__()
        self._legacy_contexts: dict[tuple[str, str], ServerCallContext] = {}
        self._configured: set[str] = set()

    def may_have(self, task_id: str) -> bool:
        """Return whether a task may have a receiver; most tasks have none."""
        return task_id in self._configured

    async def set_info(
        self,
        task_id: str,
        notification_config: TaskPushNotificationConfig,
        context: ServerCallContext,
    ) -> TaskPushNotificationConfig:
        """Store a configuration; it replaces an earlier one with the same id."""
        self._configured.add(task_id)
        stored: TaskPushNotificationConfig
        stored = await super().set_info(task_id, notification_config, context)
        self._legacy_contexts.pop((task_id, stored.id), None)
        if _is_legacy(context):
            self._legacy_contexts[task_id, stored.id] = context
        return stored

    async def get_info_for_dispatch(self, task_id: str) -> list[TaskPushNotificationConfig]:
        """Return the configurations that were created with version 1.0."""
        configs = await super().get_info_for_dispatch(task_id)
        return [config for config in configs if (task_id, config.id) not in self._legacy_contexts]

    async def of_legacy(
        self, task_id: str
    ) -> list[tuple[TaskPushNotificationConfig, ServerCallContext]]:
        """Return the configurations that were created with version 0.3, each with its call's
        context."""
        return [
            (config, self._legacy_contexts[task_id, config.id])
            for config in await super().get_info_for_dispatch(task_id)
            if (task_id, config.id) in self._legacy_contexts
        ]


async def _notify_legacy(
    client: httpx.AsyncClient, config: TaskPushNotificationConfig, task: Task
) -> None:
    """Send a task to a receiver in the format of version 0.3; log a failure."""
    try:
        answer = await client.post(config.url, json=_written(task), headers=_headers(config))
        answer.raise_for_status()
    except httpx.HTTPError as error:
        _log.warning("Task %s: a notification failed: %s", task.id, error)


def _written(task: Task) -> dict[str, Any]:
    return to_compat_task(task).model_dump(mode="json", by_alias=True, exclude_none=True)


def _headers(config: TaskPushNotificationConfig) -> dict[str, str]:
    headers = {"X-A2A-Notification-Token": config.token} if config.token else {}
    auth = config.authentication
    if auth.scheme and auth.credentials:
        headers["Authorization"] = f"{auth.scheme} {auth.credentials}"
    return headers


def _is_legacy(context: ServerCallContext) -> bool:
    version: str = context.state.get("headers", {}).get(VERSION_HEADER.lower(), "")
    return not version or version.startswith("0.")
