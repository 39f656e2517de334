"""Make ADK's runner for an agent, a node or an App."""

from __future__ import annotations

from typing import Any


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
