"""An HTTP API with a definition as what stands behind a service: its operations are the tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from agentdouble.mcp_hosting import Endpoint, Hosted
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi import ApiKey, Auth, Basic, Bearer, Definition
from agentdouble.state import Record

if TYPE_CHECKING:
    from mcp.server import Server

_AUTH: dict[str, type[Auth]] = {"ApiKey": ApiKey, "Basic": Basic, "Bearer": Bearer}


@dataclass(frozen=True)
class OpenApiBackend:
    """An HTTP API that a Swagger 2.0, OpenAPI 3.0 or 3.1 definition describes (SVC-02).

    Make it with ``OpenApiBackend.load()``, which checks the definition. ``base_url``, ``auth``,
    ``timeout_s`` and ``variables`` are what ``openapi.server`` takes; ``origin`` is the URL that
    the document came from.
    """

    kind: ClassVar[str] = "openapi"

    document: Mapping[str, Any] = field(repr=False)
    origin: str | None = None
    base_url: str | None = None
    auth: Auth | None = None
    timeout_s: float = 30.0
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(
        cls, source: Mapping[str, Any] | str | Path | Definition, **options: Any
    ) -> OpenApiBackend:
        """Return the backend of a document, a file or a URL; raise DefinitionError.

        It takes some 5 ms an operation, and a URL is fetched: on an event loop, call it in a
        thread.
        """
        read = source if isinstance(source, Definition) else openapi.load(source)
        backend = cls(read.document, read.origin, **options)
        backend.make_server(read)  # what cannot be called is refused now
        return backend

    def hosted(self, name: str) -> Hosted:
        """Return an endpoint whose tools call the API."""
        return Endpoint(self.make_server)

    def make_server(self, definition: Definition | None = None) -> Server[Any]:
        """Return a server of the tools; it reads the definition, unless that is given."""
        if definition is None:
            read = openapi.load(self.document, validate=False)
            definition = dataclasses.replace(read, origin=self.origin)
        return openapi.server(
            definition,
            base_url=self.base_url,
            auth=self.auth,
            timeout_s=self.timeout_s,
            variables=self.variables,
        )

    def to_record(self) -> Record:
        """Return it as JSON-ready data."""
        auth = self.auth
        kept = None if auth is None else {"type": type(auth).__name__, **dataclasses.asdict(auth)}
        return {
            "document": self.document,
            "origin": self.origin,
            "base_url": self.base_url,
            "auth": kept,
            "timeout_s": self.timeout_s,
            "variables": dict(self.variables),
        }

    @classmethod
    def of(cls, *, auth: Mapping[str, Any] | None, **fields: Any) -> OpenApiBackend:
        """Return the backend of a record."""
        if auth is None:
            return cls(auth=None, **fields)
        given = {name: value for name, value in auth.items() if name != "type"}
        return cls(auth=_AUTH[auth["type"]](**given), **fields)
