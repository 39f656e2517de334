"""What is asked: a route with a request that it would take, from which others are made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Target:
    """A route; ``parameters`` are good values of what stands in braces in its path."""

    path: str
    methods: Sequence[str]
    websocket: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    documents: Sequence[Any] = ({},)
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def query_string(self) -> str:
        """The query of a good request."""
        return urlencode(self.query)


def document_bytes(document: Any) -> bytes:
    """Return a good body."""
    return json.dumps(document).encode()
