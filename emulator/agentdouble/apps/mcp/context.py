"""The context of a request for functions of an MCPApp: the SDK's Context, usable on any loop.

The functions of an MCPApp may block, so they run on a separate loop or in threads. The SDK's
sessions belong to the server's loop, so calls to them are passed on to that loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.mcpserver import Context as SdkContext
from mcp.types import ModelPreferences, SamplingMessage, TextContent
from pydantic import PrivateAttr

if TYPE_CHECKING:
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.types import LoggingLevel, SamplingMessageContentBlock
    from pydantic import AnyUrl

T = TypeVar("T")

MAX_TOKENS = 512
LOG_LEVEL = "agentdouble/log-level"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class ServerLoop:
    """The loop that creates the object; its coroutines can be awaited on any loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop; cancel it if the caller is cancelled."""
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop has been closed
            coroutine.close()
            raise RuntimeError("The server has stopped, so the client cannot be called.") from None
        return await asyncio.wrap_future(future)

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its awaitable runs on the server's loop."""

        def call(*arguments: Any, **named: Any) -> Any:
            value = function(*arguments, **named)
            return self.run(value) if inspect.iscoroutine(value) else value

        return call


class OnServerLoop:
    """An object of the SDK whose coroutines can be awaited on any loop."""

    def __init__(self, loop: ServerLoop, wrapped: Any) -> None:
        self._loop = loop
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        return self._loop.bind(value) if callable(value) else value


class Context(SdkContext[Any, Any]):
    """The context of a request, for a parameter annotated with it or with the SDK's ``Context``.

    It has everything of the SDK's context (``report_progress``, ``info`` and the other levels,
    ``elicit``, ``read_resource``, ``notify_resource_updated``, ``headers``, ``request_id``,
    ``session``), and ``sample``. Await them in the function itself.
    """

    _loop: ServerLoop = PrivateAttr()
    _sdk_context: SdkContext[Any, Any] = PrivateAttr()

    @classmethod
    def of(cls, sdk_context: SdkContext[Any, Any]) -> Context:
        """Wrap a context of the SDK for a function on any loop; call this on the server's loop."""
        loop, request = ServerLoop(), sdk_context.request_context
        streams: Any = {
            name: function if function is None else loop.bind(function)
            for name in ("close_sse_stream", "close_standalone_sse_stream")
            for function in [getattr(request, name)]
        }
        session: Any = OnServerLoop(loop, request.session)
        make: Any = cls  # the SDK's own parameters, which pydantic's plugin does not know
        context: Context = make(
            request_context=dataclasses.replace(request, session=session, **streams),
            mcp_server=sdk_context.mcp_server,
            input_params=sdk_context._input_params,
            subscriptions=OnServerLoop(loop, sdk_context._bus),
        )
        context._loop, context._sdk_context = loop, sdk_context
        return context

    async def sample(
        self,
        messages: str | Sequence[str | SamplingMessage],
        *,
        system_prompt: str | None = None,
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: ModelPreferences | None = None,
    ) -> SamplingMessageContentBlock | list[SamplingMessageContentBlock]:
        """Return the answer of the client's model; ``.text`` is the text of a text answer.

        ``session.create_message`` returns the whole result, with the name of the model.
        """
        all_messages = [messages] if isinstance(messages, str) else messages
        result = await self.session.create_message(
            messages=[_message(message) for message in all_messages],
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            stop_sequences=None if stop_sequences is None else list(stop_sequences),
            model_preferences=model_preferences,
            related_request_id=self.request_id,
        )
        content: SamplingMessageContentBlock | list[SamplingMessageContentBlock] = result.content
        return content

    async def read_resource(self, uri: str | AnyUrl) -> Iterable[ReadResourceContents]:
        """Read a resource of this application; raise ResourceError, as the SDK does."""
        return await self._loop.run(super().read_resource(uri))

    async def log(self, level: LoggingLevel, data: Any, *, logger_name: str | None = None) -> None:
        """Send a log message, unless the client requested only more severe ones."""
        least = self.session._connection.state.get(LOG_LEVEL, LEVELS[0])
        if level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least):
            await super().log(level, data, logger_name=logger_name)

    def _nested_invocation(self) -> SdkContext[Any, Any]:
        return self._sdk_context._nested_invocation()


def _message(content: str | SamplingMessage) -> SamplingMessage:
    if isinstance(content, SamplingMessage):
        return content
    return SamplingMessage(role="user", content=TextContent(text=content))
