"""The routes of the protocol's bindings: JSON-RPC in both versions, and REST in version 1.0.

The routes are the SDK's. This module adds the errors that the SDK lacks or answers otherwise: for a
body that is not JSON, for an unknown path, and for a stream that breaks.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers import RequestHandler
from a2a.server.routes import create_rest_routes
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError, InvalidRequestError
from google.protobuf.json_format import ParseError
from jsonrpc.exceptions import JSONRPCInvalidRequestException
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentdouble.apps.a2a import paths
from agentdouble.core import log_filters, strict_json
from agentdouble.openapi import Answer, Operation, hidden, operation
from agentdouble.openapi.operation import EVENTS, like
from agentdouble.server.guard import Refusal

for _logger in (
    "a2a.compat.v0_3.jsonrpc_adapter",
    "a2a.server.routes.jsonrpc_dispatcher",
    "a2a.utils.error_handlers",
):
    log_filters.tell_in_short(
        _logger,
        *(A2AError, HTTPException, ClientDisconnect, ParseError, ValidationError),
        *(JSONRPCInvalidRequestException, UnicodeError, RecursionError),
    )

_ANSWERS = (Answer(dict[str, Any]), Answer(str, media_type=EVENTS))
_REST_ANSWERS = (*_ANSWERS, Answer(dict[str, Any], media_type="application/a2a+json"))

Endpoint = Callable[[Request], Awaitable[Response]]


def both_versions(handler: RequestHandler) -> list[BaseRoute]:
    """Return the routes of both versions."""
    dispatcher = _Dispatcher(handler, enable_v0_3_compat=True)
    return [
        Route("/", dispatcher.handle_requests, methods=["POST"]),
        *_LEGACY_REST,  # before the SDK's, which take /v1 for a tenant
        *_guarded(create_rest_routes(handler)),
    ]


def legacy(handler: RequestHandler) -> list[BaseRoute]:
    """Return the routes of version 0.3 only."""
    dispatcher = _Dispatcher(handler, enable_v0_3_compat=True)
    dispatcher.METHOD_TO_MODEL = {}  # the methods of version 1.0
    return [Route("/", dispatcher.handle_requests, methods=["POST"]), *_LEGACY_REST]


@hidden
async def _refuse_legacy_rest(request: Request) -> Response:
    message = "A2A 0.3 over REST is not built: use JSON-RPC, or version 1.0."
    return paths.render_refusal(request, Refusal(501, "NotImplemented", message))


_LEGACY_REST = [
    Route(path, _refuse_legacy_rest, methods=["GET", "POST", "DELETE"])
    for path in paths.LEGACY_REST
]


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown path or method."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path} is not an operation of the protocol."
    return paths.render_refusal(request, Refusal(error.status_code, "NotFound", message))


class _Dispatcher(JsonRpcDispatcher):
    """A dispatcher that refuses bodies which the SDK accepts or refuses for the wrong reason."""

    @operation(_ANSWERS, body=dict[str, Any] | list[Any])
    async def handle_requests(self, request: Request) -> Response:
        """Send a message of A2A over JSON-RPC."""
        try:
            body = await strict_json.read(await request.body())
            request._json = body  # so that the SDK does not parse the body again
        except RecursionError:
            return self._generate_error_response(
                None, InvalidRequestError("The request is nested too deeply.")
            )
        except ValueError as error:
            return self._generate_error_response(None, JSONParseError(message=str(error)))
        return await super().handle_requests(request)


def _guarded(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return routes that answer every error raised before the response begins."""
    guarded: list[BaseRoute] = []
    for route in routes:
        if isinstance(route, Mount):
            guarded.append(Mount(route.path, routes=_guarded(route.routes)))
        elif isinstance(route, Route):
            methods = sorted(route.methods or ())
            endpoint = _described(route.endpoint, methods)(_answer_errors(route.endpoint))
            guarded.append(Route(route.path, endpoint, methods=methods))
    return guarded


def _described(endpoint: Endpoint, methods: Sequence[str]) -> Callable[[Endpoint], Endpoint]:
    """Describe an endpoint of the SDK: its bodies are the protocol's JSON."""
    of_sdk = endpoint.args[0] if isinstance(endpoint, functools.partial) else endpoint
    body = dict[str, Any] if "POST" in methods else None
    operation = Operation(_REST_ANSWERS, body=body)
    return like(of_sdk, operation)


def _answer_errors(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            await _check(await request.body())
            response = await endpoint(request)
        except HTTPException:  # left to the guard, which answers
            raise
        except Exception as error:
            payload = build_rest_error_payload(error)
            return JSONResponse(payload, payload["error"]["code"])
        return response

    return answer


async def _check(body: bytes) -> None:
    """Raise InvalidRequestError for a body that is not a JSON object in UTF-8; it may be empty."""
    try:
        if not body:
            return
        body.decode()
        if not isinstance(await strict_json.read(body), dict):
            raise InvalidRequestError("The body is not a JSON object.")
    except RecursionError:
        raise InvalidRequestError("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}") from None
