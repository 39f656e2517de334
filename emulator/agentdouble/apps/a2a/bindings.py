"""The bindings of the protocol as routes: JSON-RPC and REST, of both versions.

They are the SDK's, with errors of the protocol where it has others or none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers import RequestHandler
from a2a.server.routes import create_rest_routes
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.errors import A2AError, InvalidRequestError
from google.protobuf.json_format import ParseError
from jsonrpc.exceptions import JSONRPCInvalidRequestException
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentdouble import mistakes
from agentdouble.apps.a2a import paths
from agentdouble.apps.a2a.callers import Callers
from agentdouble.apps.a2a.reading import check_json_rpc, check_text
from agentdouble.apps.a2a.rest import guarded
from agentdouble.guard import Refusal

for _logger in (
    "a2a.compat.v0_3.jsonrpc_adapter",
    "a2a.server.routes.jsonrpc_dispatcher",
    "a2a.utils.error_handlers",
):
    mistakes.tell_in_short(
        _logger,
        *(A2AError, HTTPException, ClientDisconnect, ParseError, ValidationError),
        *(JSONRPCInvalidRequestException, UnicodeError, RecursionError),
    )

Endpoint = Callable[[Request], Awaitable[Response]]


def both(handler: RequestHandler, callers: Callers) -> list[BaseRoute]:
    """Return the routes of both versions."""
    dispatcher = _Dispatcher(handler, callers, enable_v0_3_compat=True)
    return [
        Route("/", dispatcher.handle_requests, methods=["POST"]),
        *_rest(handler, callers),
    ]


def legacy(handler: RequestHandler, callers: Callers) -> list[BaseRoute]:
    """Return the routes of version 0.3 alone."""
    dispatcher = _Dispatcher(handler, callers, enable_v0_3_compat=True)
    dispatcher.METHOD_TO_MODEL = {}  # what version 1.0 has beyond
    rest = _rest(handler, callers)
    return [
        Route("/", dispatcher.handle_requests, methods=["POST"]),
        *(one for one in rest if isinstance(one, Route) and one.path.startswith("/v1/")),
    ]


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer for a path or a method that there is not."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path} is no operation of the protocol."
    return paths.render_refusal(request, Refusal(error.status_code, "NotFound", what))


class _Dispatcher(JsonRpcDispatcher):
    """Says what is wrong with a body where the SDK does not, or says it of something else."""

    async def handle_requests(self, request: Request) -> Response:
        try:
            body = await request.json()  # which keeps it for the SDK
            check_text(await request.body(), body)
        except RecursionError:
            return self._generate_error_response(
                None, InvalidRequestError("The request is nested too deeply.")
            )
        except ValueError as error:
            return self._generate_error_response(None, JSONParseError(message=str(error)))
        except InvalidRequestError as error:
            return self._generate_error_response(None, error)
        wrong = check_json_rpc(body, request)
        if wrong is not None:
            return self._generate_error_response(body.get("id"), wrong)
        return await super().handle_requests(request)


def _rest(handler: RequestHandler, callers: Callers) -> list[BaseRoute]:
    return guarded(create_rest_routes(handler, callers, enable_v0_3_compat=True))
