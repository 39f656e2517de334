"""The double that the clients use, and the facts about it that they receive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentdouble import Emulator
from agentdouble.mcp_services import McpBackend, ServerBackend
from tests.agentdouble.apps.a2a.protocol.ordinary import ordinary
from tests.mcp_official import everything
from tests.mcp_official.everything.state import Events
from tests.real_clients.hosted import tools

KEY = "the-key"
SCRIPTS: tuple[Mapping[str, Any], ...] = (  # see programs/scripted_model.py
    {"when": {"after": "add"}, "steps": [{"text": "It is {{result}}.", "times": "all"}]},
    {
        "when": {"contains": "2 + 3"},
        "steps": [{"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}], "times": "all"}],
    },
    {
        "when": {"contains": "Paris is the capital of France."},
        "steps": [{"text": "It is Paris.", "times": "all"}],
    },
)
BEARER = {"Authorization": f"Bearer {KEY}"}
HERE = Path(__file__).parent


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """Serve a double with everything that the clients use; yield the facts about it."""
    apps = (ordinary(), tools)
    runtimes = [_runtime(name) for name in ("tools", "agent")]
    with Emulator(*apps, runtimes=runtimes, pool_size=0, model_scripts=SCRIPTS) as double:
        server = ServerBackend(everything.server, event_store=Events(), retry_interval_ms=20)
        double.mcp.create("everything", server, key=KEY)
        double.mcp.create("front", McpBackend(f"{double.url}/mcp"), key=KEY)
        jupyter = {"url": f"{double.url}/jupyter", "token": double.token}
        model = dict(double.environment("model"))
        yield {"mcp": _mcp(double), "a2a": _a2a(double), "jupyter": jupyter, "model": model}


def _runtime(name: str) -> dict[str, Any]:
    return {
        "name": f"hosted-{name}",
        "application": f"hosted:{name}",
        "directory": str(HERE),
        "authorizer": {"keys": [KEY]},
        "max_instances": 1,
    }


def _mcp(double: Emulator) -> dict[str, Any]:
    service = f"{double.url}/mcp/everything"
    return {
        "application": _server(f"{double.url}/mcp", {}),
        "runtime": _server(f"{double.url}/runtimes/hosted-tools/mcp", BEARER),
        "service": _server(service, BEARER),
        "front": _server(f"{double.url}/mcp/front", BEARER),
        "refused": _server(service, {"Authorization": "Bearer another"}),
    }


def _a2a(double: Emulator) -> dict[str, Any]:
    return {
        "application": _server(double.url, {}),
        "runtime": _server(f"{double.url}/runtimes/hosted-agent", BEARER),
    }


def _server(url: str, headers: dict[str, str]) -> dict[str, Any]:
    return {"url": url, "headers": headers}
