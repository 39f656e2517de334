"""Lists of tools, resources and prompts as pages of limited size.

A definition can have a thousand tools: Kubernetes has 13 MB of them, and clients refuse events
above 1 MiB. A cursor is a digest of all the items before its page. So it holds in each session,
each process and after a restart for as long as these items stay the same, and a list that has
changed is never continued with an item left out or repeated: its cursor is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ListToolsResult, PaginatedRequestParams, Tool
from pydantic import BaseModel

LARGEST_PAGE = 512 * 1024  # bytes of JSON, unless one item alone has more

Item = TypeVar("Item", bound=BaseModel)
Result = TypeVar("Result", bound=BaseModel)


class Pages(Generic[Result]):
    """The pages of a list, by their cursors; ``of`` says in errors what is listed."""

    def __init__(
        self, of: str, items: Sequence[Item], make: Callable[[list[Item], str | None], Result]
    ) -> None:
        self._of = of
        starts = list(_starts(items))
        ends = [*starts[1:], (None, len(items))]
        self._pages = {
            cursor: make(list(items[start:end]), following)
            for (cursor, start), (following, end) in zip(starts, ends, strict=True)
        }

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, cursor: object) -> bool:
        return cursor in self._pages

    def page(self, params: PaginatedRequestParams | None) -> Result:
        """Return the page at a request's cursor; raise MCPError if it is not a cursor of these."""
        cursor = params.cursor if params else None
        found = self._pages.get(cursor)
        if found is None:
            raise MCPError(
                INVALID_PARAMS,
                f"The list of {self._of} has no page at the cursor {str(cursor)[:80]!r}, or has "
                "changed since: ask for it again without a cursor.",
            )
        return found


class ToolPages(Pages[ListToolsResult]):
    """The pages of a list of tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        super().__init__(
            "tools", tools, lambda page, cursor: ListToolsResult(tools=page, next_cursor=cursor)
        )


def _starts(items: Sequence[BaseModel]) -> Iterator[tuple[str | None, int]]:
    """Yield the cursor and the first index of each page."""
    yield None, 0
    digest, size = hashlib.sha256(), 1  # a bracket; what follows each item is a comma or the other
    for index, item in enumerate(items):
        data = _json(item) + b","
        if size > 1 and size + len(data) > LARGEST_PAGE:
            yield digest.hexdigest(), index
            size = 1
        digest.update(data)
        size += len(data)


def _json(item: BaseModel) -> bytes:
    """Return an item as JSON, also one with a lone surrogate, which pydantic refuses to encode."""
    value = item.model_dump(by_alias=True, exclude_none=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "surrogatepass")
