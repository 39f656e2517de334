"""``/_emulator/sessions/{id}/...``: a session's data plane, for who may call the double's own routes.

============================================ ==================================================
``GET, POST /sessions/{id}/v1/...``          as ``/v1/...`` with the session's name and token:
                                             files, code and browser
``POST /sessions/{id}/terminals``            ``{"columns", "rows"}``: NDJSON, the changes of a
                                             new terminal's screen; it ends with its client
``POST /sessions/{id}/terminals/typed``      ``{"terminal", "text"?, "size"?}``: types, resizes
``GET, POST /sessions/{id}/browser``         ``{"go": "https://...", "back", "forward" or
                                             "reload"}``: ``{"url", "title"}`` in the envelope
============================================ ==================================================

A client of these needs no token, so none is in its addresses. The requests are not in the journal,
and are no use of the session: to look at it changes neither its deadline nor what its agent did.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import NotRequired, TypedDict

from agentdouble.guard import ErrorBody
from agentdouble.openapi import Answer
from agentdouble.openapi.operation import NDJSON, Operation, described
from agentdouble.sandbox.data_plane.session_token import INSTANCE_OF, PAGE
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.workbench.paths import TERMINALS, TYPED
from agentdouble.surfaces.admin import RefusedError
from agentdouble.surfaces.own_requests import own_url
from agentdouble.surfaces.session_routes import find_instance

INSTALL = "pip install 'agentdouble[console]'"


def session_plane_routes(
    instances: Instances, data_plane: ASGIApp, environment: Mapping[str, str]
) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError."""
    routes = _Routes(instances, data_plane, environment)
    return [
        Route("/sessions/{session_id}/v1/{rest:rest}", routes.plane, methods=["GET", "POST"]),
        Route("/sessions/{session_id}/terminals", routes.open_terminal, methods=["POST"]),
        Route("/sessions/{session_id}/terminals/typed", routes.use_terminal, methods=["POST"]),
        Route("/sessions/{session_id}/browser", routes.browser, methods=["GET", "POST"]),
    ]


class TerminalSize(TypedDict):
    """The size of a terminal's screen."""

    columns: Annotated[int, Field(ge=1, le=1000)]
    rows: Annotated[int, Field(ge=1, le=1000)]


class Typed(TypedDict):
    """A text to type at a terminal, or its new size."""

    terminal: str
    text: NotRequired[str]
    size: NotRequired[TerminalSize]


class Go(TypedDict):
    """Where the page in front goes: an address, "back", "forward" or "reload"."""

    go: str


def _says(
    body: Any = None, *answers: Answer, errors: Sequence[int] = ()
) -> Callable[[Any], Operation]:
    def make(_routes: Any) -> Operation:
        # imported here so that the start of the double does not wait for it
        from agentdouble.sandbox.workbench.wire import Envelope, WrongFields

        gone = Answer(ErrorBody | Envelope, 404)  # the session, or what it was asked for
        failed = (gone, Answer(WrongFields, 422), Answer(Envelope, "default"))
        return Operation(answers or (Answer(Envelope),), body=body, errors=(*errors, *failed))

    return make


_FILES = (
    Answer(Any),
    Answer(bytes, media_type="application/octet-stream"),
    Answer(bytes, media_type="image/jpeg"),
)
_LINES = Answer(str, media_type=NDJSON)


class _Routes:
    def __init__(
        self, instances: Instances, data_plane: ASGIApp, environment: Mapping[str, str]
    ) -> None:
        self._instances = instances
        self._data_plane = data_plane
        self._environment = environment

    @described({"GET": _says(None, *_FILES), "POST": _says(Any)})
    async def plane(self, request: Request) -> Response:
        """Answer as the session's data plane does at this path."""
        return await self._passed_on(request, f"/v1/{request.path_params['rest']}")

    @described(_says(TerminalSize, _LINES, errors=(501,)))
    async def open_terminal(self, request: Request) -> Response:
        """Open a terminal and send the changes of its screen; it ends when its client leaves."""
        if importlib.util.find_spec("pyte") is None:
            message = f"Terminals are drawn by pyte, which is not installed: {INSTALL}."
            raise RefusedError(501, "NotInstalled", message)
        return await self._passed_on(request, TERMINALS)

    @described(_says(Typed))
    async def use_terminal(self, request: Request) -> Response:
        """Type a text at a terminal, or resize it."""
        return await self._passed_on(request, TYPED)

    @described({"GET": _says(), "POST": _says(Go)})
    async def browser(self, request: Request) -> Response:
        """Return the address and title of the page in front; with POST, after it went elsewhere."""
        return await self._passed_on(request, PAGE)

    async def _passed_on(self, request: Request, path: str) -> Response:
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
