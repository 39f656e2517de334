"""Tell what of ADK an object is, and make ADK's runner for it.

Classes are known by name, because the agents import google-adk themselves: nobody else needs it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agentdouble.errors import AgentLoadError

OLDEST = 2

_KINDS = {
    ("google.adk.apps.app", "App"): "app",
    ("google.adk.agents.base_agent", "BaseAgent"): "agent",
    ("google.adk.workflow._base_node", "BaseNode"): "node",  # workflows, and agents too
}


def kind_of(native: object) -> str | None:
    """Return "app", "agent" or "node", or None for other objects."""
    classes = {(one.__module__, one.__qualname__) for one in type(native).__mro__}
    return next((kind for name, kind in _KINDS.items() if name in classes), None)


def check_version(app: str) -> None:
    """Raise AgentLoadError for google-adk 1, which refuses events with what version 2 has."""
    try:
        installed = version("google-adk")
    except PackageNotFoundError:  # on the path, without having been installed
        return
    if int(installed.split(".")[0]) < OLDEST:
        raise AgentLoadError(
            f"The agent of {app!r} needs google-adk {OLDEST} or newer, and {installed} is "
            "installed: pip install --upgrade google-adk",
            app=app,
        )


def runner_of(native: Any, app: str, **services: Any) -> Any:
    """Return a runner of ADK; an App keeps its plugins and configuration."""
    from google.adk.runners import Runner

    kind = kind_of(native)
    assert kind is not None
    return Runner(app_name=app, **{kind: native}, **services)
