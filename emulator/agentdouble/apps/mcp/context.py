"""What a function of an MCPApp can ask of its request: the SDK's Context, on any loop.

The functions of an MCPApp may block, so they run on a loop of their own or in threads. The SDK's
sessions belong to the server's loop: what is asked of them is handed over to it.
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
            raise RuntimeError("The server has stopped, and its client cannot be asked.") from None
        return await asyncio.wrap_future(future)

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs on the server's loop what the given one returns to await."""

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

    It has all that the SDK's has: ``report_progress``, ``info`` and the other levels, ``elicit``,
    ``read_resource``, ``notify_resource_updated``, ``headers``, ``request_id``, ``session``; and
    ``sample``. Each is awaited where the function runs.
    """

    _loop: ServerLoop = PrivateAttr()
    _given: SdkContext[Any, Any] = PrivateAttr()

    @classmethod
    def of(cls, given: SdkContext[Any, Any]) -> Context:
        """Return a context of the SDK for a function on any loop; call it on the server's."""
        loop, request = ServerLoop(), given.request_context
        streams: Any = {
            name: function if function is None else loop.bind(function)
            for name in ("close_sse_stream", "close_standalone_sse_stream")
            for function in [getattr(request, name)]
        }
        session: Any = OnServerLoop(loop, request.session)
        make: Any = cls  # the SDK's own parameters, which pydantic's plugin does not know
        made: Context = make(
            request_context=dataclasses.replace(request, session=session, **streams),
            mcp_server=given.mcp_server,
            input_params=given._input_params,
            subscriptions=OnServerLoop(loop, given._bus),
        )
        made._loop, made._given = loop, given
        return made

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
        """Return what the client's model answers; ``.text`` is the text of a text.

        ``session.create_message`` returns the whole result, with the name of the model.
        """
        many = [messages] if isinstance(messages, str) else messages
        result = await self.session.create_message(
            messages=[_message(one) for one in many],
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
        """Send a log message, unless the client has asked for more severe ones only."""
        least = self.session._connection.state.get(LOG_LEVEL, LEVELS[0])
        if level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least):
            await super().log(level, data, logger_name=logger_name)

    def _nested_invocation(self) -> SdkContext[Any, Any]:
        return self._given._nested_invocation()


def _message(given: str | SamplingMessage) -> SamplingMessage:
    if isinstance(given, SamplingMessage):
        return given
    return SamplingMessage(role="user", content=TextContent(text=given))
