"""The SDK's REST routes, with an answer to each body that is none and each stream that breaks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb2
from a2a.compat.v0_3.proto_utils import FromProto
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import InvalidParamsError, InvalidRequestError
from google.protobuf.json_format import Parse, ParseError
from sse_starlette.sse import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentdouble.apps.a2a.reading import check_text

Endpoint = Callable[[Request], Awaitable[Response]]

_LEGACY: Mapping[str, tuple[Any, Callable[[Any], object]]] = {
    "/message:send": (pb2.SendMessageRequest, FromProto.message_send_params),
    "/message:stream": (pb2.SendMessageRequest, FromProto.message_send_params),
    "/pushNotificationConfigs": (
        pb2.CreateTaskPushNotificationConfigRequest,
        FromProto.task_push_notification_config_request,
    ),
}


def guarded(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return routes that answer whatever goes wrong before their answer begins."""
    made: list[BaseRoute] = []
    for route in routes:
        if isinstance(route, Mount):
            made.append(Mount(route.path, routes=guarded(route.routes)))
        elif isinstance(route, Route):
            methods = sorted(route.methods or ())
            made.append(Route(route.path, _answering(route.endpoint), methods=methods))
    return made


def _answering(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            _check(await request.body())
            await _check_legacy(request)
            response = await endpoint(request)
            if isinstance(response, EventSourceResponse):
                await _begin(response)
        except HTTPException:  # the guard's, who answers by itself
            raise
        except Exception as error:
            payload = build_rest_error_payload(error)
            return JSONResponse(payload, payload["error"]["code"])
        return response

    return answer


def _check(body: bytes) -> None:
    """Raise InvalidRequestError for a body that is no JSON object in UTF-8; some have none."""
    try:
        if not body:
            return
        value = json.loads(body.decode())
        if not isinstance(value, dict):
            raise InvalidRequestError("The body is no JSON object.")
        check_text(body, value)
    except RecursionError:
        raise InvalidRequestError("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidRequestError(f"The body is no JSON: {error}") from None


async def _check_legacy(request: Request) -> None:
    """Raise InvalidParamsError for a body that the SDK cannot turn into one of version 1.0."""
    found = next((one for end, one in _LEGACY.items() if request.url.path.endswith(end)), None)
    if found is None or request.method != "POST" or "/v1/" not in request.url.path:
        return
    kind, convert = found
    try:
        convert(Parse(await request.body(), kind(), ignore_unknown_fields=True))
    except (ValueError, TypeError, AttributeError, ParseError) as error:
        raise InvalidParamsError(f"The body is no {kind.__name__}: {error}") from None


async def _begin(response: EventSourceResponse) -> None:
    """Wait for the first event: what goes wrong before it is no stream yet (version 0.3)."""
    events = response.body_iterator.__aiter__()
    try:
        first = await events.__anext__()
    except StopAsyncIteration:
        first = None
    response.body_iterator = _whole(first, events)


async def _whole(first: Any, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    if first is None:
        return
    yield first
    try:
        async for event in events:
            yield event
    except Exception as error:
        yield {"event": "error", "data": json.dumps(build_rest_error_payload(error))}
