"""Parameters that are resolved before a tool runs: the SDK's ``Annotated[T, Resolve(function)]``.

A resolver may ask the client: by requests in the middle of the call where the protocol version has
them, in rounds where it has not. So a tool that asks this way works with both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import InvalidSignature
from mcp.server.mcpserver.resolve import (
    build_resolver_plans,
    find_resolved_parameters,
    resolve_arguments,
    returns_input_required,
)
from mcp.types import InputRequiredResult

from agentdouble.apps.contract import location
from agentdouble.apps.mcp.parameters import described_by, without
from agentdouble.errors import DecorationError


@dataclass(frozen=True)
class Dependencies:
    """The parameters of a tool that the SDK resolves, and how."""

    parameters: Mapping[str, Any]
    plans: Mapping[Any, Any]

    async def resolve(
        self, arguments: Mapping[str, Any], context: Context[Any, Any]
    ) -> dict[str, Any] | InputRequiredResult:
        """Return the values, or what the client has to answer first."""
        return await resolve_arguments(self.parameters, self.plans, arguments, context)


def dependencies_of(
    function: Callable[..., Any], signature: inspect.Signature, context: str | None
) -> Dependencies:
    """Return what a tool's function depends on; raise DecorationError."""
    described = described_by(signature)
    described.__name__ = described.__qualname__ = getattr(function, "__name__", repr(function))
    try:
        parameters = find_resolved_parameters(described)
        if returns_input_required(described):
            raise InvalidSignature("it returns InputRequiredResult, and so would ask in two ways")
        names = set(without(signature, context, *parameters).parameters)
        return Dependencies(parameters, build_resolver_plans(parameters, names))
    except InvalidSignature as error:
        raise DecorationError(
            f"@app.tool cannot resolve the parameters of {location(function)}: {error}.",
            decorator="tool",
        ) from error
