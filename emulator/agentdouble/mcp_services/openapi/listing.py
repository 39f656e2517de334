"""The list of tools, made for the wire once for each version of the protocol.

The SDK validates and dumps a list anew for everybody who asks, which for a thousand tools takes
longer than all the rest; what is generated from a definition does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext


class ListedOnce:
    """A middleware that keeps what the server's handler of ``tools/list`` has answered."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Any]] = {}

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Answer from what is kept; what could be refused goes to the server."""
        if ctx.method != "tools/list" or not _is_plain(ctx):
            return await call_next(ctx)
        kept = self._answers.get(ctx.protocol_version)
        if kept is not None:
            return kept
        answer = await call_next(ctx)
        if isinstance(answer, dict):
            self._answers[ctx.protocol_version] = answer
        return answer


def _is_plain(context: ServerRequestContext[Any]) -> bool:
    """Tell whether this asks for the whole list, with nothing that could be wrong."""
    return not (context.params or {}).keys() - {"_meta"}
