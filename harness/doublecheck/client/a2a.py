"""An A2A application, for tests and notebooks; what is asked stands in ``wire.a2a``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import TYPE_CHECKING, Any

from httpx_sse import EventSource

from doublecheck.client.arguments import checked_class
from doublecheck.results import A2aAnswer
from doublecheck.wire import a2a, application, events

if TYPE_CHECKING:
    from doublecheck.client.async_platform import AsyncPlatform
    from doublecheck.client.platform import Platform


@checked_class
class A2aClient:
    """A client of one A2A application, in the version that its card declares.

    Every method raises RefusedError, with the code of JSON-RPC where there is one (-32001: there
    is no such task), and AnswerError for an answer that is no A2A.
    """

    def __init__(self, platform: Platform, path: str) -> None:
        self._platform = platform
        self._path = path
        self._agent: a2a.Agent | None = None

    @property
    def card(self) -> Mapping[str, Any]:
        """The application's card, as it came."""
        return self._known().card

    def send(
        self, text: str, *, context_id: str | None = None, task_id: str | None = None
    ) -> A2aAnswer:
        """Send a message and wait for what it comes to; the ids continue what began before."""
        call = a2a.send(self._known(), text, contextId=context_id, taskId=task_id)
        return self._platform._call(call)

    def stream(
        self, text: str, *, context_id: str | None = None, task_id: str | None = None
    ) -> Generator[A2aAnswer]:
        """Send a message and yield what comes of it as it arrives."""
        request = a2a.stream(self._known(), text, contextId=context_id, taskId=task_id)
        with self._platform.streaming(request) as response:
            if not response.is_success or not application.streams(response):
                response.read()
                a2a.refuse_no_stream(response)
            for event in EventSource(response).iter_sse():
                yield a2a.read_event(response, event.data)

    def task(self, task_id: str) -> A2aAnswer:
        """Return a task as it is kept."""
        return self._platform._call(a2a.task(self._known(), task_id))

    def cancel(self, task_id: str) -> A2aAnswer:
        """End a task."""
        return self._platform._call(a2a.cancel(self._known(), task_id))

    def _known(self) -> a2a.Agent:
        if self._agent is None:
            self._agent = self._platform._call(a2a.card(self._platform.target, self._path))
        return self._agent

    def __repr__(self) -> str:
        return f"<A2aClient of {self._platform.target.at('a2a')}{self._path}>"


@checked_class
class AsyncA2aClient:
    """A client of one A2A application, for async code; as ``A2aClient``."""

    def __init__(self, platform: AsyncPlatform, path: str) -> None:
        self._platform = platform
        self._path = path
        self._agent: a2a.Agent | None = None

    async def card(self) -> Mapping[str, Any]:
        """Return the application's card, as it came."""
        return (await self._known()).card

    async def send(
        self, text: str, *, context_id: str | None = None, task_id: str | None = None
    ) -> A2aAnswer:
        """Send a message and wait for what it comes to; the ids continue what began before."""
        call = a2a.send(await self._known(), text, contextId=context_id, taskId=task_id)
        return await self._platform._call(call)

    async def stream(
        self, text: str, *, context_id: str | None = None, task_id: str | None = None
    ) -> AsyncGenerator[A2aAnswer]:
        """Send a message and yield what comes of it as it arrives."""
        request = a2a.stream(await self._known(), text, contextId=context_id, taskId=task_id)
        async with self._platform.streaming(request) as response:
            if not response.is_success or not application.streams(response):
                await response.aread()
                a2a.refuse_no_stream(response)
            async with events.arriving(response) as arriving:
                async for event in arriving:
                    yield a2a.read_event(response, event.data)

    async def task(self, task_id: str) -> A2aAnswer:
        """Return a task as it is kept."""
        return await self._platform._call(a2a.task(await self._known(), task_id))

    async def cancel(self, task_id: str) -> A2aAnswer:
        """End a task."""
        return await self._platform._call(a2a.cancel(await self._known(), task_id))

    async def _known(self) -> a2a.Agent:
        if self._agent is None:
            self._agent = await self._platform._call(a2a.card(self._platform.target, self._path))
        return self._agent

    def __repr__(self) -> str:
        return f"<AsyncA2aClient of {self._platform.target.at('a2a')}{self._path}>"
