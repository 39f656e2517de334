"""The requests of the protocol that concern prompts, and the completion of arguments."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    PaginatedRequestParams,
    PromptReference,
)
from pydantic import TypeAdapter, ValidationError

from agentdouble.apps.contract import text_of
from agentdouble.apps.mcp.context import Request
from agentdouble.apps.mcp.functions import Function
from agentdouble.apps.mcp.offers import Offers
from agentdouble.apps.mcp.requests import Requests
from agentdouble.apps.mcp.rounds import check_round
from agentdouble.apps.mcp.tool_arguments import problems_of
from agentdouble.mcp_hosting.pages import Pages

MOST_VALUES = 100  # of a completion, by the protocol
_TEXTS = TypeAdapter[list[str]](list[str])


class PromptHandlers:
    """Lists and renders the prompts of an application."""

    def __init__(self, offers: Offers, requests: Requests) -> None:
        self._offers = offers
        self._requests = requests

    def install(self, server: Server[Any]) -> None:
        """Let a server answer these requests."""
        server.add_request_handler("prompts/list", PaginatedRequestParams, self.list)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self.get)

    async def list(self, _: Request, params: PaginatedRequestParams | None) -> ListPromptsResult:
        pages = Pages(
            "prompts",
            await self._offers.sdk.list_prompts(),
            lambda page, cursor: ListPromptsResult(prompts=page, next_cursor=cursor),
        )
        return pages.page(params)

    async def get(
        self, request: Request, params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        name, given = params.name, params.arguments
        if name not in self._offers.prompts:
            has = ", ".join(self._offers.prompts)
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}. There are: {has}.")
        with self._requests.asked(request, params) as asked:
            try:
                found = await self._offers.sdk.get_prompt(name, given, asked.context)
            except ValueError as error:
                raise _failure(name, error, reached=asked.reached) from error
        return check_round(request, found)


class CompletionHandler:
    """Completes arguments of prompts and of resource templates with one function for all."""

    def __init__(self, offers: Offers, requests: Requests, function: Function) -> None:
        self._offers = offers
        self._requests = requests
        self._function = function

    def install(self, server: Server[Any]) -> None:
        """Let a server answer this request."""
        server.add_request_handler("completion/complete", CompleteRequestParams, self.complete)

    async def complete(self, request: Request, params: CompleteRequestParams) -> CompleteResult:
        self._check(params)
        values = (params.ref, params.argument, params.context)
        with self._requests.asked(request):
            found = await self._function.run(dict(zip(self._function.takes, values, strict=True)))
        return CompleteResult(completion=_completion(found))

    def _check(self, params: CompleteRequestParams) -> None:
        """Raise MCPError for an argument that nothing has."""
        ref = params.ref
        if isinstance(ref, PromptReference):
            what, has = f"prompt: {ref.name}", self._offers.prompts.get(ref.name)
        else:
            what, has = f"resource template: {ref.uri}", self._offers.variables(ref.uri)
        if has is None:
            raise MCPError(INVALID_PARAMS, f"Unknown {what}.")
        if params.argument.name not in has:
            raise MCPError(
                INVALID_PARAMS,
                f"Unknown argument: {params.argument.name}. There are: {', '.join(has) or 'none'}.",
            )


def _failure(name: str, error: Exception, *, reached: bool) -> MCPError:
    """Return the error for a prompt: before its function is reached, it is the caller's."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    why = problems_of(cause) if isinstance(cause, ValidationError) else text_of(cause)
    if reached:
        return MCPError(INTERNAL_ERROR, f"What the prompt {name} returned cannot be sent: {why}.")
    return MCPError(INVALID_PARAMS, f"The prompt {name} cannot take these arguments: {why}.")


def _completion(found: Any) -> Completion:
    if isinstance(found, Completion):
        return found
    try:
        values = [] if found is None else _TEXTS.validate_python(found)
    except ValidationError:
        raise MCPError(
            INTERNAL_ERROR,
            "The completion returned neither a Completion nor a list of strings, but a "
            f"{type(found).__name__}.",
        ) from None
    more = len(values) > MOST_VALUES
    return Completion(values=values[:MOST_VALUES], total=len(values), has_more=more)
