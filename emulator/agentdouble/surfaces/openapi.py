"""``/openapi.json`` and ``/_emulator/openapi.json``: what the double serves, for other languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agentdouble.guard import OWN, ErrorBody
from agentdouble.openapi import Format, operation
from agentdouble.openapi.served import served
from agentdouble.surfaces.surface import Context, Surface
from agentdouble.threads import import_in_thread, run_in_thread

if TYPE_CHECKING:
    from agentdouble.openapi.document import Document

PATH = "/openapi.json"
_DOCUMENT = "agentdouble.openapi.document"

_API_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "The double's API key (the setting api_key); X-API-Key takes it, too.",
}
_SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "HMAC-SHA256 Credential=<access key>/<date>/<region>/<service>/request, "
        "SignedHeaders=<names>, Signature=<hex>, and the header X-Date. emulator/signing.md in "
        "agentdouble's repository describes the steps.",
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
_ABOUT = (
    "The double of a hosted agent platform: its HTTP surfaces as this double serves them, with the "
    "applications it hosts. WebSockets are left out, and so are routes that refuse by name what is "
    "not built. An armed fault may answer any operation with any status."
)
_ABOUT_OWN = "The double's own routes, which no platform has: its clock, journal, faults and so on."


# The path is the double's. The real API server describes its own routes there, which are a part
# of this document. No other surface can have it: an application of this process answers at fixed
# paths, and one of a runtime below /runtimes.
class OpenApiDocuments(Surface):
    """The OpenAPI documents of the surfaces and of the double's own routes, each made once."""

    name = "OpenAPI"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._made: dict[str, bytes] = {}

    def paths(self) -> Mapping[str, str]:
        """Return the paths of the two documents."""
        return {
            PATH: "what these surfaces take and answer, as an OpenAPI document",
            OWN + PATH: "the same for the double's own routes",
        }

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route of the document of the surfaces."""
        return [Route(PATH, self._surfaces)]

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the route of the document of the double's own routes."""
        return [Route(PATH, self._own)]

    @operation(dict[str, Any])
    async def _surfaces(self, _request: Request) -> Response:
        """Return this document."""
        if PATH not in self._made:
            document = await self._document(_ABOUT)
            for surface in self.context.surfaces:
                document.add(await surface.operations(), surface.format())
            self._made[PATH] = await _written(document)
        return Response(self._made[PATH], media_type="application/json")

    @operation(dict[str, Any])
    async def _own(self, _request: Request) -> Response:
        """Return this document."""
        if OWN not in self._made:
            document = await self._document(_ABOUT_OWN)
            for surface in self.context.surfaces:
                form = Format(surface.name, refused=ErrorBody)
                document.add(await served(surface.admin_routes(), OWN), form)
            self._made[OWN] = await _written(document)
        return Response(self._made[OWN], media_type="application/json")

    async def _document(self, about: str) -> Document:
        await import_in_thread(_DOCUMENT)
        from agentdouble.openapi.document import Document

        info = {"title": "agentdouble", "version": self.context.version, "description": about}
        return Document(info, _SCHEMES, keyed=self.context.settings.api_key is not None)


async def _written(document: Document) -> bytes:
    """Return a document as JSON; a thread makes it, because its schemas take a while."""
    return await run_in_thread(lambda: json.dumps(document.build()).encode())
