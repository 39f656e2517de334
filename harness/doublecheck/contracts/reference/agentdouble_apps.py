"""The reference applications with the decorators of agentdouble."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any

import agentdouble

from . import tools
from .actions import BARE_NAME, NAME, Actions, Headers

if TYPE_CHECKING:
    from agentdouble import A2AApp, MCPApp, SimpleApp
    from agentdouble.apps.loading import App


def reference_apps(surfaces: Set[str] | None = None) -> tuple[App, ...]:
    """Return the reference applications that the checks of these surfaces need; by default all.

    They are the simple one, one without a ping function, and those of MCP and A2A, whose SDKs take
    a second to import.
    """
    needed = {"mcp", "services", "a2a"} if surfaces is None else surfaces
    tools = [] if needed.isdisjoint({"mcp", "services"}) else [reference_tools()]
    executors = [reference_executor()] if "a2a" in needed else []
    return reference_app(), bare_app(), *tools, *executors


def reference_app() -> SimpleApp:
    """Return the reference application."""
    app = agentdouble.SimpleApp(NAME)
    actions = Actions(_run_code)

    @app.entrypoint
    async def entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> Any:
        return await actions.do(payload, headers)

    @app.ping
    def ping() -> str:
        return actions.ping()

    return app


def bare_app() -> SimpleApp:
    """Return an application that has only an entrypoint."""
    app = agentdouble.SimpleApp(BARE_NAME)

    @app.entrypoint
    async def entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> str:
        return str(payload["prompt"])

    return app


def reference_tools() -> MCPApp:
    """Return the MCP reference application."""
    app = agentdouble.MCPApp(tools.NAME)
    for function in tools.TOOLS:
        app.tool(function)
    app.agent_as_a_tool(tools.AGENT)
    return app


def reference_executor() -> A2AApp:
    """Return the A2A reference application."""
    from . import executor  # slow: 0.4 s

    app = agentdouble.A2AApp(executor.NAME)
    store, agent_executor = executor.classes()
    app.task_store(store)
    app.agent_executor(runner="echo")(agent_executor)
    return app


def _run_code(code: str, _headers: Headers) -> str:
    return agentdouble.run_code(code)
