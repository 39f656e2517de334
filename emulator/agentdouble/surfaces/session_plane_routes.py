"""``/_emulator/sessions/{id}/v1/...``: a session's data plane, for callers of the double's own routes.

``GET`` and ``POST`` answer as ``/v1/...`` does with the session's name and token. A client needs no
token, so none is in its addresses. The requests are not in the journal and do not count as use of
the session: they change neither its deadline nor what its agent did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.guard import ErrorBody
from agentdouble.openapi import Answer
from agentdouble.openapi.operation import Operation, described
from agentdouble.sandbox.data_plane.session_token import INSTANCE_OF
from agentdouble.sandbox.instances import Instances
from agentdouble.surfaces.own_requests import own_url
from agentdouble.surfaces.session_routes import find_instance

_FILES = (
    Answer(Any),
    Answer(bytes, media_type="application/octet-stream"),
    Answer(bytes, media_type="image/jpeg"),
)


def session_plane_routes(
    instances: Instances, data_plane: ASGIApp, environment: Mapping[str, str]
) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError."""
    plane = _Plane(instances, data_plane, environment).answer
    return [Route("/sessions/{session_id}/v1/{rest:rest}", plane, methods=["GET", "POST"])]


def _operation(body: Any, *answers: Answer) -> Callable[[Any], Operation]:
    def make(_plane: Any) -> Operation:
        # imported here so that the start of the double does not wait for it
        from agentdouble.sandbox.workbench.wire import Envelope, WrongFields

        gone = Answer(ErrorBody | Envelope, 404)  # the session, or what it was asked for
        failed = (gone, Answer(WrongFields, 422), Answer(Envelope, "default"))
        return Operation(answers or (Answer(Envelope),), body=body, errors=failed)

    return make


class _Plane:
    def __init__(
        self, instances: Instances, data_plane: ASGIApp, environment: Mapping[str, str]
    ) -> None:
        self._instances = instances
        self._data_plane = data_plane
        self._environment = environment

    @described({"GET": _operation(None, *_FILES), "POST": _operation(Any)})
    async def answer(self, request: Request) -> Response:
        """Answer as the session's data plane does at this path."""
        path = f"/v1/{request.path_params['rest']}"
        instance = await find_instance(self._instances, request)
        at = urlsplit(own_url(self._environment))
        changed = {
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": at.scheme,
            "server": (at.hostname, at.port),  # the browser's driver connects to it
            INSTANCE_OF: instance,
        }
        return _Passed(self._data_plane, changed)


class _Passed(Response):
    """The answer of another application to the same request at another path."""

    def __init__(self, app: ASGIApp, changed: Mapping[str, object]) -> None:
        super().__init__()
        self._app = app
        self._changed = changed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, **self._changed}, receive, send)
