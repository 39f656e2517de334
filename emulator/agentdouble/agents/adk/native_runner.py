"""Make ADK's runner for an agent, a node or an App."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from agentdouble.errors import AgentLoadError
from agentdouble.threads import import_in_thread


async def import_sdk(app: str, *modules: str) -> None:
    """Import modules of ADK; raise AgentLoadError if the installed version is too old for them."""
    try:
        await import_in_thread(*modules)
    except ImportError as error:
        raise AgentLoadError(
            f"The agent of {app!r} needs google-adk 2.2 or newer, and {version('google-adk')} is "
            f"installed ({error}). Install a newer one, or make the agent a runtime with an "
            "interpreter of its own.",
            app=app,
        ) from error


def runner_of(native: Any, app: str, **services: Any) -> Any:
    """Return a runner of ADK; an App keeps its plugins and configuration."""
    from google.adk.agents import BaseAgent
    from google.adk.apps import App
    from google.adk.runners import Runner

    if isinstance(native, App):
        return Runner(app=native, app_name=app, **services)
    if isinstance(native, BaseAgent):
        return Runner(agent=native, app_name=app, **services)
    return Runner(node=native, app_name=app, **services)
