"""What a function of an MCPApp can ask of its request: the SDK's Context, on any loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import BoundArguments
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context as SdkContext
from mcp.server.mcpserver import ElicitationResult, MCPServer
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    InputResponseRequestParams,
    ModelPreferences,
    SamplingCapability,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import is_version_at_least
from pydantic import PrivateAttr

from agentdouble.apps.mcp.server_loop import OnServerLoop, ServerLoop, bind_optional

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.elicitation import ElicitSchemaModelT, UrlElicitationResult
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.subscriptions import SubscriptionBus
    from mcp.types import LoggingLevel, SamplingMessageContentBlock
    from pydantic import AnyUrl

FIRST_WITH_ROUNDS = "2026-07-28"
Request = ServerRequestContext[Any, Any]
Run = Callable[[Callable[..., Any], BoundArguments], Awaitable[Any]]
MAX_TOKENS = 512
LOG_LEVEL = "agentdouble/log-level"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_asked: ContextVar[Asked] = ContextVar("agentdouble_mcp_asked")


@dataclass
class Asked:
    """A request that is being answered; ``reached`` says whether a function has been called."""

    context: Context
    run: Run
    reached: bool = False

    @contextmanager
    def current(self) -> Iterator[Asked]:
        """Make this the request that the functions called inside belong to."""
        token = _asked.set(self)
        try:
            yield self
        finally:
            _asked.reset(token)


def asked() -> Asked:
    """Return the request that the current code answers."""
    return _asked.get()


def connection_of(session: Any) -> Connection:
    """Return a session's connection: each request has a session object of its own in front."""
    connection: Connection = session._connection
    return connection


class Context(SdkContext[Any, Any]):
    """The context of a request, for a parameter annotated with it or with the SDK's ``Context``.

    It has all that the SDK's has: ``report_progress``, ``info`` and the other levels, ``elicit``,
    ``read_resource``, ``notify_resource_updated``, ``headers``, ``request_id``, ``session``; and
    ``sample``. Each is awaited where the function runs. What the client does not support is refused
    with an error of the protocol, before it is asked.
    """

    _loop: ServerLoop = PrivateAttr()
    _asked: Asked = PrivateAttr()

    def __init__(self, loop: ServerLoop, run: Run, **given: Any) -> None:
        super().__init__(**given)
        self._loop = loop
        self._asked = Asked(self, run)

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

        Raises MCPError if the client cannot sample. ``session.create_message`` returns the whole
        result, with the name of the model.
        """
        self._check("ctx.sample", ClientCapabilities(sampling=SamplingCapability()))
        many = [messages] if isinstance(messages, str) else messages
        asked = CreateMessageRequest(
            params=CreateMessageRequestParams(
                messages=[_message(one) for one in many],
                system_prompt=system_prompt,
                max_tokens=max_tokens,
                temperature=temperature,
                stop_sequences=None if stop_sequences is None else list(stop_sequences),
                model_preferences=model_preferences,
            )
        )
        related = ServerMessageMetadata(related_request_id=self.request_id)
        result: CreateMessageResult = await self.session.send_request(
            asked, CreateMessageResult, metadata=related
        )
        return result.content

    async def elicit(
        self, message: str, schema: type[ElicitSchemaModelT]
    ) -> ElicitationResult[ElicitSchemaModelT]:
        """Ask the user to fill in a form; raise MCPError if the client cannot."""
        self._check("ctx.elicit", ClientCapabilities(elicitation=ElicitationCapability()))
        return await super().elicit(message, schema)

    async def elicit_url(self, message: str, url: str, elicitation_id: str) -> UrlElicitationResult:
        """Ask the user to open an address; raise MCPError if the client cannot."""
        self._check("ctx.elicit_url", ClientCapabilities(elicitation=ElicitationCapability()))
        return await super().elicit_url(message, url, elicitation_id)

    async def read_resource(self, uri: str | AnyUrl) -> Iterable[ReadResourceContents]:
        """Read a resource of this application; raise ResourceError, as the SDK does."""
        with self._nested_invocation()._asked.current():
            return await self._loop.run(super().read_resource(uri))

    async def log(self, level: LoggingLevel, data: Any, *, logger_name: str | None = None) -> None:
        """Send a log message, unless the client has asked for more severe ones only."""
        least = connection_of(self.session).state.get(LOG_LEVEL, LEVELS[0])
        if level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least):
            await super().log(level, data, logger_name=logger_name)

    def _nested_invocation(self) -> Context:
        return Context(
            self._loop,
            self._asked.run,
            request_context=self._request_context,
            mcp_server=self._mcp_server,
            subscriptions=self._subscriptions,
        )

    def _check(self, what: str, needed: ClientCapabilities) -> None:
        if is_version_at_least(self.protocol_version or "", FIRST_WITH_ROUNDS):
            raise MCPError(
                INVALID_REQUEST,
                f"{what} cannot ask the client in the middle of a request of the protocol version "
                f"{self.protocol_version}: return an InputRequiredResult, and find the answers in "
                "ctx.input_responses when the client asks again.",
            )
        if not self.session.can_send_request:
            raise MCPError(
                INVALID_REQUEST, f"{what} can ask only as long as its request is not answered."
            )
        if not self.session.check_client_capability(needed):
            declared = needed.model_dump(by_alias=True, mode="json", exclude_none=True)
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"{what} needs a client that declares the capability {', '.join(declared)}.",
                {"requiredCapabilities": declared},
            )


def ask(
    request: Request,
    params: InputResponseRequestParams | None,
    server: MCPServer,
    bus: SubscriptionBus,
    run: Run,
) -> Asked:
    """Return a request to answer, with its context; call it on the server's loop."""
    loop = ServerLoop()
    given: Any = dataclasses.replace(
        request,
        session=OnServerLoop(loop, request.session),  # type: ignore[arg-type]
        close_sse_stream=bind_optional(loop, request.close_sse_stream),
        close_standalone_sse_stream=bind_optional(loop, request.close_standalone_sse_stream),
    )
    return Context(
        loop,
        run,
        request_context=given,
        mcp_server=server,
        input_params=params,
        subscriptions=OnServerLoop(loop, bus),
    )._asked


def _message(given: str | SamplingMessage) -> SamplingMessage:
    if isinstance(given, SamplingMessage):
        return given
    return SamplingMessage(role="user", content=TextContent(text=given))
