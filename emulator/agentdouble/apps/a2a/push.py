"""Push notifications: to receivers on this machine, beside the tasks, each receiver's in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from a2a.server.tasks import (
    BasePushNotificationSender,
    PushNotificationEvent,
    PushNotificationSender,
    TaskStore,
)
from a2a.types import Task, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError

from agentdouble import ledger, on_behalf
from agentdouble.addresses import is_loopback
from agentdouble.apps.a2a.legacy_push import Configs, tell

TIMEOUT_S = 5.0
ROOM = 1000  # notifications of one task on their way

_log = logging.getLogger(__name__)


class Receivers:
    """Which receivers are called: loopback, and the hosts that are allowed; "*" is all.

    Names are not resolved: what a name means may change between the question and the call.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)

    async def named(self, url: str) -> bool:
        """Return True for a receiver that a caller may name; raise InvalidParamsError otherwise.

        Any http URL may be named, as on a server that calls all: the log says of one that it
        will not be called.
        """
        host = _host(url)
        if not host:
            raise InvalidParamsError(f"A push notification goes to an http URL, not to {url!r}.")
        if not self._called(host):
            _log.warning(
                "No push notification will go to %r: only this machine is called, and the hosts "
                "that the application's push_hosts names.",
                host,
            )
        return True

    async def called(self, url: str) -> bool:
        """Return whether a receiver is called."""
        return self._called(_host(url))

    def _called(self, host: str) -> bool:
        return is_loopback(host) or host in self._allowed or "*" in self._allowed


class Pusher(PushNotificationSender):
    """Sends each event to the receivers of its task; a receiver that is slow holds no task up."""

    def __init__(self, configs: Configs, receivers: Receivers, tasks: TaskStore) -> None:
        self._configs = configs
        self._receivers = receivers
        self._tasks = tasks
        self._client: httpx.AsyncClient | None = None
        self._queues: dict[str, asyncio.Queue[_Told]] = {}
        self._senders: set[asyncio.Task[None]] = set()

    async def send_notification(self, task_id: str, event: PushNotificationEvent) -> None:
        """Have an event sent, soon, after those of the task before it."""
        if ledger.choose("U-WEBHOOKS") == "none":
            return
        if not self._configs.may_have(task_id):
            return
        legacy = await self._legacy(task_id)
        if not (legacy or await self._configs.get_info_for_dispatch(task_id)):
            return
        queue = self._queues.get(task_id)
        if queue is None:
            queue = self._queues[task_id] = asyncio.Queue()
            sender = asyncio.ensure_future(self._send(task_id, queue))
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        if queue.qsize() >= ROOM:
            _log.warning("Task %s: a notification is dropped, %d wait.", task_id, ROOM)
            return
        twin = type(event)()
        twin.CopyFrom(event)
        queue.put_nowait(_Told(twin, legacy))

    async def close(self) -> None:
        """Send no more."""
        senders = list(self._senders)
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _legacy(self, task_id: str) -> list[tuple[TaskPushNotificationConfig, Task]]:
        """Return the receivers of version 0.3, each with the task as it is now."""
        found = []
        for config, context in await self._configs.of_legacy(task_id):
            task = await self._tasks.get(task_id, context)
            if task is not None and await self._receivers.called(config.url):
                found.append((config, task))
        return found

    async def _send(self, task_id: str, queue: asyncio.Queue[_Told]) -> None:
        if self._client is None:
            self._client = on_behalf.async_client(timeout=TIMEOUT_S, trust_env=False)
        client = self._client
        sender = BasePushNotificationSender(
            client, self._configs, push_url_validator=self._receivers.called
        )
        try:
            while not queue.empty():
                told = queue.get_nowait()
                await sender.send_notification(task_id, told.event)
                for config, task in told.legacy:
                    await tell(client, config, task)
        finally:
            del self._queues[task_id]


@dataclass(frozen=True)
class _Told:
    """An event, and the task after it for each receiver of version 0.3."""

    event: PushNotificationEvent
    legacy: list[tuple[TaskPushNotificationConfig, Task]]


def _host(url: str) -> str:
    """Return the host of an http URL, or nothing."""
    try:
        parsed = urlsplit(url)
        _ = parsed.port  # raises for one that is none
    except ValueError:
        return ""
    return (parsed.hostname or "").lower() if parsed.scheme in ("http", "https") else ""
