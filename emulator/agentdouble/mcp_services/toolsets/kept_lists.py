"""Merged lists that are kept while their callers follow the cursors.

Asking the services again for each page would cost the whole list each time: 42 s for the 29 pages
of Kubernetes instead of 3 s. A list that is not kept any more is asked for again, so no cursor
depends on this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from mcp.types import ListToolsResult, PaginatedRequestParams

from agentdouble.mcp_hosting.pages import ToolPages

MISSING = "agentdouble/missing"
"""In the ``_meta`` of a list of tools: the services that are not in it, each with the reason."""

KEPT_S = 30.0  # since the last page was asked for
MOST_LISTS = 8  # of a toolset
Caller = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""The services that are listed, and the headers that they see: what a list depends on."""


@dataclass(frozen=True)
class MergedList:
    """The pages of several services' tools, and the services that are ``missing``."""

    pages: ToolPages
    missing: Mapping[str, str]

    def page(self, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the page at a request's cursor; raise MCPError if there is none."""
        meta = {MISSING: dict(self.missing)} if self.missing else None
        return self.pages.page(params).model_copy(update={"meta": meta})


class KeptLists:
    """The lists of which callers may ask for another page, the last asked for at the end."""

    def __init__(self) -> None:
        self._kept: dict[Caller, tuple[MergedList, asyncio.TimerHandle]] = {}

    def find(self, caller: Caller, params: PaginatedRequestParams | None) -> MergedList | None:
        """Return a caller's list if the request continues it."""
        if params is None or params.cursor is None or caller not in self._kept:
            return None
        found, _ = self._kept[caller]
        return found if params.cursor in found.pages else None

    def keep(self, caller: Caller, merged: MergedList) -> None:
        """Keep a list of several pages, in place of the caller's last one."""
        self._drop(caller)
        if len(merged.pages) < 2:
            return
        if len(self._kept) == MOST_LISTS:
            self._drop(next(iter(self._kept)))
        expiry = asyncio.get_running_loop().call_later(KEPT_S, self._drop, caller)
        self._kept[caller] = merged, expiry

    def _drop(self, caller: Caller) -> None:
        if caller in self._kept:
            _, expiry = self._kept.pop(caller)
            expiry.cancel()
