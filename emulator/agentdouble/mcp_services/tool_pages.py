"""Lists of tools as pages of limited size.

A definition can have a thousand tools: Kubernetes has 13 MB of them, and clients refuse events
above 1 MiB. A cursor is a digest of all the tools before its page. So it holds in each session,
each process and after a restart for as long as these tools stay the same, and a list that has
changed is never continued with a tool left out or repeated: its cursor is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ListToolsResult, PaginatedRequestParams, Tool

LARGEST_PAGE = 512 * 1024  # bytes of JSON, unless one tool alone has more


class ToolPages:
    """The pages of a list of tools, by their cursors."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        starts = list(_starts(tools))
        ends = [*starts[1:], (None, len(tools))]
        self._pages = {
            cursor: ListToolsResult(tools=list(tools[start:end]), next_cursor=following)
            for (cursor, start), (following, end) in zip(starts, ends, strict=True)
        }

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, cursor: object) -> bool:
        return cursor in self._pages

    def page(self, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the page at a request's cursor; raise MCPError if it is not a cursor of these."""
        cursor = params.cursor if params else None
        found = self._pages.get(cursor)
        if found is None:
            raise MCPError(
                INVALID_PARAMS,
                f"The list of tools has no page at the cursor {str(cursor)[:80]!r}, or has changed "
                "since: ask for it again without a cursor.",
            )
        return found


def _starts(tools: Sequence[Tool]) -> Iterator[tuple[str | None, int]]:
    """Yield the cursor and the first index of each page."""
    yield None, 0
    digest, size = hashlib.sha256(), 1  # a bracket; what follows each tool is a comma or the other
    for index, tool in enumerate(tools):
        data = _json(tool) + b","
        if size > 1 and size + len(data) > LARGEST_PAGE:
            yield digest.hexdigest(), index
            size = 1
        digest.update(data)
        size += len(data)


def _json(tool: Tool) -> bytes:
    """Return a tool as JSON, also one with a lone surrogate, which pydantic refuses to encode."""
    value = tool.model_dump(by_alias=True, exclude_none=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "surrogatepass")
