"""What a2a-sdk lacks of REST in version 0.3.

- There are two readings of a request that creates a push configuration. a2a-sdk sends the message
  ``CreateTaskPushNotificationConfigRequest``, and reads nothing else. By the protocol file's
  annotation for HTTP the body is the field ``config`` alone, and so @a2a-js/sdk (0.3) sends it.
  Both are taken.
- It has no route that deletes a push configuration; @a2a-js/sdk (0.3) calls it.
- It fails with its own errors for bodies that it cannot convert to version 1.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb2
from a2a.compat.v0_3.proto_utils import FromProto
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import RequestHandler
from a2a.types import DeleteTaskPushNotificationConfigRequest
from a2a.utils.constants import PROTOCOL_VERSION_0_3
from a2a.utils.errors import InvalidParamsError
from a2a.utils.version_validator import validate_version
from google.protobuf.json_format import Parse, ParseError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message

from agentdouble.apps.a2a.callers import Callers

_BODIES: Mapping[str, tuple[Any, Callable[[Any], object]]] = {
    "/message:send": (pb2.SendMessageRequest, FromProto.message_send_params),
    "/message:stream": (pb2.SendMessageRequest, FromProto.message_send_params),
    "/pushNotificationConfigs": (
        pb2.CreateTaskPushNotificationConfigRequest,
        FromProto.task_push_notification_config_request,
    ),
}
_CONFIG = "/v1/tasks/{id}/pushNotificationConfigs/{push_id}"
_CONFIGS = re.compile(r"/v1/(?P<task>tasks/[^/]+)/pushNotificationConfigs$")
_CONFIG_ALONE = {"pushNotificationConfig", "push_notification_config"}


def delete_config(handler: RequestHandler, callers: Callers) -> Route:
    """Return the route that deletes a push configuration."""

    @validate_version(PROTOCOL_VERSION_0_3)
    async def delete(
        asked: DeleteTaskPushNotificationConfigRequest, call: ServerCallContext
    ) -> None:
        await handler.on_delete_task_push_notification_config(asked, call)

    async def answer(request: Request) -> Response:
        """Delete a push configuration."""
        named = request.path_params
        one = DeleteTaskPushNotificationConfigRequest(task_id=named["id"], id=named["push_id"])
        await delete(one, callers.build(request))
        return JSONResponse({})

    return Route(_CONFIG, answer, methods=["DELETE"])


async def readable(request: Request) -> Request:
    """Return a request of 0.3 with a body that the SDK can convert, others as they are.

    Raises InvalidParamsError for a body that it cannot convert.
    """
    path = request.url.path
    found = next((one for end, one in _BODIES.items() if path.endswith(end)), None)
    if found is None or request.method != "POST" or "/v1/" not in path:
        return request
    kind, convert = found
    body = _whole(path, await request.body())
    try:
        convert(Parse(body, kind(), ignore_unknown_fields=True))
    except (ValueError, TypeError, AttributeError, ParseError) as error:
        raise InvalidParamsError(f"The body is no {kind.__name__}: {error}") from None
    return request if body == await request.body() else _with_body(request, body)


def _whole(path: str, body: bytes) -> bytes:
    """Return a push configuration as the message that creates it; any other body as it is."""
    at = _CONFIGS.search(path)
    value = json.loads(body) if at and body else {}
    if at is None or not _CONFIG_ALONE & value.keys():
        return body
    return json.dumps({"parent": at["task"], "config": value}).encode()


def _with_body(request: Request, body: bytes) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)
