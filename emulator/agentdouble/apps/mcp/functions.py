"""The functions of an application that the SDK calls: of resources, prompts and completions."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import BoundArguments, Parameter
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.types import INTERNAL_ERROR

from agentdouble.apps.contract import from_application, text_of
from agentdouble.apps.mcp.context import asked
from agentdouble.apps.mcp.parameters import described_by, without
from agentdouble.failing import beneath

_log = logging.getLogger(__name__)


def _internal_error(message: str) -> MCPError:
    return MCPError(INTERNAL_ERROR, message)


@dataclass(frozen=True)
class Function:
    """A function, and the parameter that takes the context.

    ``what`` names it in errors; ``raises`` makes the error for one that the function raises.
    """

    what: str
    function: Callable[..., Any]
    signature: inspect.Signature
    context: str | None
    raises: Callable[[str], Exception] = _internal_error

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of the parameters, without that for the context."""
        return tuple(without(self.signature, self.context).parameters)

    def for_sdk(self) -> Callable[..., Any]:
        """Return a function for the SDK: without the context, and run where tools run."""

        async def call(**given: Any) -> Any:
            return await self.run(given)

        shown = without(self.signature, self.context)
        parameters = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in shown.parameters.values()]
        return described_by(shown.replace(parameters=parameters), call)

    async def run(self, given: Mapping[str, Any]) -> Any:
        """Call the function with arguments by their names; raise MCPError, or by ``raises``."""
        request = asked()
        request.reached = True
        values = dict(given)
        if self.context is not None:
            values[self.context] = request.context
        try:
            return await request.run(self.function, BoundArguments(self.signature, values))
        except MCPError:
            raise
        except Exception as error:
            if isinstance(error, ResourceError) and self.raises is ResourceError:
                raise
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Exception:
        own = beneath(error)
        if own is not None:
            return MCPError(INTERNAL_ERROR, own)
        _log.error("%s raised.", self.what, exc_info=from_application(error))
        return self.raises(f"{self.what} failed: {text_of(error)}")
