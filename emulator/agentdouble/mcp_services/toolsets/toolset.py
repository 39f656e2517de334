"""What a toolset is: services behind one address, with keys of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from agentdouble.mcp_services.service import Access

Exposes = Literal["all", "search-and-use"]
EXPOSES: tuple[Exposes, ...] = get_args(Exposes)


@dataclass(frozen=True, kw_only=True, repr=False)
class Toolset(Access):
    """Several MCP services as one endpoint.

    It ``exposes`` all tools of its services, or the two tools by which those are found and
    called.
    """

    service_ids: tuple[str, ...]
    exposes: Exposes
