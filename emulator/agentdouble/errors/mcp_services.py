"""Errors of MCP services that cannot handle a request, and of unusable HTTP APIs."""

from __future__ import annotations

from collections.abc import Sequence

from agentdouble.errors.base import AgentDoubleError


class DefinitionError(AgentDoubleError):
    """A definition of an HTTP API cannot become tools.

    ``place`` is the place in the document, as a JSON pointer, or ``""``; ``source`` names the
    document.
    """

    code = "InvalidParameter"
    status = 400

    def __init__(self, reason: str, *, place: str = "", source: str = "the definition") -> None:
        at = f" at {place}" if place else ""
        super().__init__(f"{source[:1].upper()}{source[1:]} cannot be used{at}: {reason}.")
        self.reason = reason
        self.place = place
        self.source = source


class ToolCallError(AgentDoubleError):
    """A tool that calls an HTTP API did not finish; the message is for the caller."""


class McpServiceError(AgentDoubleError):
    """An MCP service is not available or cannot handle a request; ``service`` is its name."""

    code = "InternalError"  # in the answer of a control-plane action
    status = 500

    def __init__(self, message: str, *, service: str) -> None:
        super().__init__(message)
        self.service = service


class UnknownServiceError(McpServiceError):
    """No MCP service has this name or id; ``known`` are the existing names."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, service: str, known: Sequence[str]) -> None:
        shown = ", ".join(repr(one) for one in known) or "none"
        super().__init__(
            f"There is no MCP service {service!r}; this double has {shown}.", service=service
        )
        self.known = tuple(known)


class ServiceUnansweredError(McpServiceError):
    """A service does not answer; ``reason`` says what was observed."""

    def __init__(self, service: str, reason: str) -> None:
        super().__init__(
            f"The MCP service {service!r} does not answer as it should: {reason}", service=service
        )
        self.reason = reason


class ServiceNameError(McpServiceError):
    """A name that is not valid in ``/mcp/<service_name>``."""

    code = "InvalidParameter"
    status = 400

    def __init__(self, service: str) -> None:
        super().__init__(
            f"{service!r} is no name of an MCP service, for it stands in its address: it has 1 to "
            "128 ASCII letters, digits, '.', '_' and '-', and begins with a letter or digit.",
            service=service,
        )


class ServiceNameTakenError(McpServiceError):
    """Another MCP service has the name."""

    code = "InvalidResource.AlreadyExists"
    status = 409

    def __init__(self, service: str) -> None:
        super().__init__(
            f"There is an MCP service {service!r} already. Delete it, or take another name.",
            service=service,
        )


class ServiceKeyError(McpServiceError):
    """A key of an MCP service that cannot be sent, or does not exist."""

    code = "InvalidParameter"
    status = 400


class BackendError(McpServiceError):
    """A backend for which no MCP service can be made."""

    code = "InvalidParameter"
    status = 400
