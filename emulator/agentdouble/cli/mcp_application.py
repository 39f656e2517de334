"""An application as a service: served on this machine, only for the double, until Ctrl-C.

It stays in its own process. If a control-plane request made the double import a file, every client
that can sign a request could leave the sandbox. It serves on loopback, and needs a key that only
its service knows.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentdouble import environment
from agentdouble.cli import mcp_backends
from agentdouble.cli.control import ControlPlane, is_here
from agentdouble.environment import Connection
from agentdouble.errors import (
    AgentDoubleError,
    MissingExtraError,
    PlatformError,
    PlatformUnreachableError,
)

try:
    from agentdouble import guard, serving
    from agentdouble.apps import MCPApp
    from agentdouble.apps.loading import load
    from agentdouble.shutdown import ShutdownMiddleware
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("An application", extra="emulator") from error


@dataclass(frozen=True)
class Application:
    """An application with a port on loopback and a key that only its service knows."""

    spec: str
    app: MCPApp
    listener: socket.socket
    key: str

    @property
    def request(self) -> Mapping[str, Any]:
        """The fields of CreateMCPService for this application."""
        where = mcp_backends.located(serving.address_of(self.listener) + "/mcp", self.spec)
        by = {"KeyAuth": {"ApiKeys": [{"Name": "application", "Key": self.key}]}}
        outbound = {"AuthorizerType": "ApiKey", "Authorizer": by}
        return {"ProtocolType": "MCP", **where, "OutboundAuthorizerConfiguration": outbound}

    def check_reach(self, url: str) -> None:
        """Raise AgentDoubleError if the double does not run on this machine."""
        if not is_here(urlsplit(url).hostname):
            raise AgentDoubleError(
                f"{self.spec} is served on this machine, where the double at {url} does not "
                "reach it. Serve it yourself and give its URL."
            )

    def serve(self, connection: Connection, stopping: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM, then call ``stopping``; run_code finds the double."""
        os.environ.update(environment.variables(connection, "platform"))
        policy = guard.Policy(hosts=guard.LOOPBACK_NAMES, api_key=self.key)
        guarded = guard.Guard(ShutdownMiddleware(self.app, policy.render), policy)
        serving.serve(guarded, self.listener, lambda: None, stopping=stopping)


@contextmanager
def listening(spec: str) -> Iterator[Application]:
    """Load an application and open a port for it; raise AgentDoubleError for another object."""
    app = load(spec)
    if not isinstance(app, MCPApp):
        raise AgentDoubleError(
            f"{spec} is a {type(app).__name__}; what stands behind an MCP service is an MCPApp."
        )
    listener = serving.open_socket("127.0.0.1", 0)
    with contextlib.closing(listener):
        yield Application(spec, app, listener, secrets.token_urlsafe(32))


def forget(plane: ControlPlane, service_id: str) -> None:
    """Delete a service; it is not an error if the service or its double has ended."""
    with contextlib.suppress(PlatformError, PlatformUnreachableError):
        plane.call("DeleteMCPService", MCPServiceId=service_id)
