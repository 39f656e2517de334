"""``/openapi.json``: what the double serves, for other languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentdouble.core.threads import run_in_thread
from agentdouble.openapi import Format, operation
from agentdouble.openapi.operation import Served
from agentdouble.surfaces.surface import Context, Surface

PATH = "/openapi.json"

_API_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "The double's API key (the setting api_key), also accepted in X-API-Key.",
}
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "HMAC-SHA256 Credential=<access key>/<date>/<region>/<service>/request, "
        "SignedHeaders=<names>, Signature=<hex>, and the header X-Date. The page "
        "emulator/docs/other-languages.md of agentdouble's repository describes the steps.",
    },
    "sessionToken": {
        "type": "apiKey",
        "in": "query",
        "name": "Authorization",
        "description": "The token in the query of a session's Endpoint.",
    },
    "serviceKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of the MCP service.",
    },
    "apiKey": _API_KEY,
}
_DESCRIPTION = (
    "The double of a hosted agent platform: its HTTP surfaces as this double serves them, with the "
    "applications it hosts. It omits WebSockets and routes that are not implemented. An armed "
    "fault may answer any operation with any status."
)


# The real API server describes its own routes at this path, and they are part of this document.
# No other surface uses it: applications of this process answer at fixed paths, and runtimes below
# /runtimes.
class OpenApiDocument(Surface):
    """The OpenAPI document of the surfaces, made once."""

    name = "OpenAPI"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._document: bytes | None = None

    def paths(self) -> Mapping[str, str]:
        """Return the path of the document."""
        return {PATH: "the surfaces as an OpenAPI document"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route of the document."""
        return [Route(PATH, self._show)]

    @operation(dict[str, Any])
    async def _show(self, _request: Request) -> Response:
        """Return this document."""
        if self._document is None:
            surfaces = [
                (surface.format(), await surface.operations()) for surface in self.context.surfaces
            ]
            # in a thread, because its import and its schemas take a while
            self._document = await run_in_thread(lambda: self._build(surfaces))
        return Response(self._document, media_type="application/json")

    def _build(self, surfaces: Sequence[tuple[Format, Sequence[Served]]]) -> bytes:
        from agentdouble.openapi.document import document  # slow: 10 ms

        info = {
            "title": "agentdouble",
            "version": self.context.version,
            "description": _DESCRIPTION,
        }
        keyed = self.context.settings.api_key is not None
        return json.dumps(document(info, _SCHEMES, surfaces, keyed=keyed)).encode()
