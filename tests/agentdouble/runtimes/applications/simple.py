"""A simple application that returns its process id."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentdouble import SimpleApp

app = SimpleApp("telling")


@app.entrypoint
async def tell(payload: dict[str, Any], headers: Mapping[str, str]) -> AsyncIterator[str]:
    """Yield the process id, then each word of the prompt."""
    yield str(os.getpid())
    for word in payload["prompt"].split():
        yield word
