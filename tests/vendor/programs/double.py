"""The double's own routes: programs move its clock."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def advance(facts: dict[str, Any], seconds: float) -> None:
    """Advance the double's clock."""
    request = urllib.request.Request(
        f"{facts['url']}/_emulator/clock",
        json.dumps({"advance_s": seconds}).encode(),
        {"Authorization": f"Bearer {facts['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60):
        pass


def run_at(endpoint: str, code: str) -> str:
    """Run code at a session's Endpoint, as its data plane is called; return what it printed."""
    address, _, query = endpoint.partition("?")
    request = urllib.request.Request(
        f"{address.rstrip('/')}/v1/jupyter/execute?{query}",
        json.dumps({"code": code}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        outputs = json.load(answer)["data"]["outputs"]
    return "".join(output["text"] or "" for output in outputs)
