"""The SDK's MCPServer with the functions of an MCPApp.

The functions run where they may block (``hosting.Runner``). Unlike in the SDK's own class, the text
of an exception reaches the caller, a resource without variables may have a context, and a dict of a
function without annotation is structured content.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import BoundArguments, Parameter, isclass
from typing import Any, get_args

import pydantic_core
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context as SdkContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    Completion,
    EmptyResult,
    GetPromptResult,
    InputRequiredResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    Tool,
    UnsubscribeRequestParams,
)

from agentdouble.apps import contract
from agentdouble.apps.contract import Offered, from_application, text_of
from agentdouble.apps.mcp.context import LOG_LEVEL, Context
from agentdouble.apps.mcp.hosting import Runner, current_runner
from agentdouble.apps.mcp.subscriptions import Changes
from agentdouble.core import ledger, request_cause
from agentdouble.core.code_tool import DEFAULT_SESSION, DEFAULT_USER, Invocation, invoked_by
from agentdouble.journal.failures import beneath

_log = logging.getLogger(__name__)

UNKNOWN_ARGUMENTS = "U-MCP-ARGUMENTS"
MOST_VALUES = 100  # the protocol's limit for a completion

Request = ServerRequestContext[Any, Any]
_request: ContextVar[Request] = ContextVar("agentdouble_mcp_request")


class AppServer(MCPServer):
    """The server of an application; ``alone`` runs functions outside of any hosting place."""

    def __init__(self, name: str, instructions: str | None, version: str, alone: Runner) -> None:
        changes = Changes()
        with _keep_root_logger():
            super().__init__(
                name,
                instructions=instructions,
                version=version,
                subscriptions=changes,
                middleware=[self._in_request],
            )
        self._alone = alone
        self._changes = changes
        low = self.low_level
        low.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._watch)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unwatch)

    @property
    def low_level(self) -> Server[Any]:
        """The low-level server of the SDK."""
        return self._lowlevel_server

    def offer(self, offered: Offered) -> None:
        """Register a function; raise DecorationError if the SDK refuses it."""
        context = _context_parameter(offered)
        static = offered.kind == "resource" and "{" not in offered.name
        call = self._for_sdk(offered, context, hidden=context if static else None)
        register: Callable[[Any], Any]
        try:
            if offered.kind == "tool":
                self.add_tool(call, **offered.options)
            elif offered.kind == "completion":
                complete: Any = self.completion
                complete()(self._completing(offered))
            else:
                decorate: Any = self.resource if offered.kind == "resource" else self.prompt
                where = (offered.name,) if offered.kind == "resource" else ()
                register = decorate(*where, **offered.options)
                register(call)
        except Exception as error:  # of the SDK and of pydantic, without a common base
            raise contract.refusal(offered.kind, offered.function, str(error)) from error

    def _for_sdk(
        self, offered: Offered, context: str | None, hidden: str | None
    ) -> Callable[..., Any]:
        """Return a function of keyword arguments, without the parameter that is ``hidden``."""

        async def call(**arguments: Any) -> Any:
            if context is not None:
                sdk = arguments.get(context) or SdkContext(
                    request_context=_request.get(), mcp_server=self, subscriptions=self._changes
                )
                arguments[context] = Context.of(sdk)
            return _structured(offered, await self._run(offered, arguments))

        signature = offered.signature
        parameters = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for name, parameter in signature.parameters.items()
            if name != hidden
        ]
        returns = signature.return_annotation
        returns = dict[str, Any] if returns is dict else returns
        described: Any = call
        described.__signature__ = signature.replace(
            parameters=parameters, return_annotation=returns
        )
        described.__annotations__ = {p.name: p.annotation for p in parameters}
        if returns is not signature.empty:
            described.__annotations__["return"] = returns
        described.__name__ = described.__qualname__ = offered.options["name"]
        return call

    def _completing(self, offered: Offered) -> Callable[..., Any]:
        async def complete(*values: Any) -> Completion | None:
            arguments = dict(zip(offered.signature.parameters, values, strict=True))
            completion = await self._run(offered, arguments)
            if completion is None or isinstance(completion, Completion):
                return completion
            texts = list(completion)
            has_more = len(texts) > MOST_VALUES
            return Completion(values=texts[:MOST_VALUES], total=len(texts), has_more=has_more)

        return complete

    async def _run(self, offered: Offered, arguments: dict[str, Any]) -> Any:
        runner = current_runner(self._alone)
        try:
            return await runner.run(offered.function, BoundArguments(offered.signature, arguments))
        except MCPError:
            raise
        except Exception as error:
            failure = self._failure(offered, error)
            if isinstance(failure, CallToolResult):
                return failure
            raise failure from error

    def _failure(self, offered: Offered, error: Exception) -> Exception | CallToolResult:
        cause = beneath(error)
        if cause is not None:
            return MCPError(INTERNAL_ERROR, cause)
        if offered.kind == "resource" and isinstance(error, ResourceError):
            return error
        subject = f"The {offered.kind} {offered.name} of {self.name}"
        _log.error("%s raised.", subject, exc_info=from_application(error))
        if offered.kind == "tool":
            # a ToolError would get a text of the SDK in front
            return CallToolResult(content=[TextContent(text=text_of(error))], is_error=True)
        message = f"{subject} failed: {text_of(error)}"
        return (
            ResourceError(message)
            if offered.kind == "resource"
            else MCPError(INTERNAL_ERROR, message)
        )

    async def list_tools(self) -> list[Tool]:
        """List the tools, with schemas that forbid unknown arguments if these are refused."""
        tools = await super().list_tools()
        if ledger.choose(UNKNOWN_ARGUMENTS) == "refused":
            for tool in tools:
                tool.input_schema = {**tool.input_schema, "additionalProperties": False}
        return tools

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: SdkContext[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; refuse unknown arguments if the ledger decides so."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            has = ", ".join(tool.name for tool in self._tool_manager.list_tools()) or "none"
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}. {self.name} has: {has}.")
        accepted = tool.parameters.get("properties", {})
        unknown = [key for key in arguments if key not in accepted]
        if unknown and ledger.choose(UNKNOWN_ARGUMENTS) == "refused":
            raise ToolError(
                f"{name} does not accept {', '.join(unknown)}. It accepts "
                f"{', '.join(accepted) or 'nothing'}."
            )
        return await super().call_tool(name, arguments, context)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: SdkContext[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Render a prompt; raise MCPError if it is unknown or cannot take the arguments."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise MCPError(INVALID_PARAMS, f"{error}: {text_of(cause)}") from error

    async def _in_request(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        """Make run_code use the session that the headers name, with defaults for missing ones."""
        headers: Any = {} if ctx.request is None else ctx.request.headers
        invocation = Invocation(
            user_id=headers.get("user_id") or DEFAULT_USER,
            session_id=headers.get("session_id") or DEFAULT_SESSION,
            agent=self.name,
        )
        with invoked_by(invocation), request_cause.passed_on(headers):
            token = _request.set(ctx)
            try:
                return await call_next(ctx)
            finally:
                _request.reset(token)

    async def _watch(self, request: Request, params: SubscribeRequestParams) -> EmptyResult:
        manager = self._resource_manager
        is_known = any(str(resource.uri) == params.uri for resource in manager.list_resources())
        if not is_known and not any(t.matches(params.uri) for t in manager.list_templates()):
            raise MCPError(INVALID_PARAMS, f"Unknown resource: {params.uri}", {"uri": params.uri})
        self._changes.watch(_connection(request), params.uri)
        return EmptyResult()

    async def _unwatch(self, request: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        self._changes.unwatch(_connection(request), params.uri)
        return EmptyResult()


async def _set_level(request: Request, params: SetLevelRequestParams) -> EmptyResult:
    _connection(request).state[LOG_LEVEL] = params.level
    return EmptyResult()


def _connection(request: Request) -> Any:
    """Return a session's connection, which each request wraps in a new session object."""
    return request.session._connection


def _context_parameter(offered: Offered) -> str | None:
    """Return the name of the parameter that takes the context, or None; raise DecorationError."""
    names = [name for name, p in offered.signature.parameters.items() if _is_context(p.annotation)]
    if len(names) > 1:
        reason = f"only one may get the context, and it has {len(names)}: {', '.join(names)}"
        raise contract.refusal(offered.kind, offered.function, reason)
    return names[0] if names else None


def _is_context(annotation: Any) -> bool:
    alternatives = (annotation, *get_args(annotation))
    return any(isclass(kind) and issubclass(kind, SdkContext) for kind in alternatives)


def _structured(offered: Offered, value: Any) -> Any:
    """Return the dict of a tool without an annotation as structured content, too."""
    annotated = offered.signature.return_annotation is not offered.signature.empty
    if annotated or offered.kind != "tool" or not isinstance(value, dict):
        return value
    text = pydantic_core.to_json(value, fallback=str, indent=2).decode()
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=pydantic_core.to_jsonable_python(value, fallback=str),
    )


@contextmanager
def _keep_root_logger() -> Iterator[None]:
    """Keep the SDK from configuring the root logger, which it does if that has no handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
