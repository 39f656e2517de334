"""agentdouble: the double of a hosted agent platform on your own machine.

The public names are imported when they are first used. So ``agentdouble.core`` works in a light
install, without the extra ``emulator``. No module is named like a function here, because importing
it would replace the function.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agentdouble.core.imports import import_now

__version__ = "1.0.0"

if TYPE_CHECKING:
    from agentdouble.apps import A2AApp, MCPApp, SimpleApp
    from agentdouble.apps.a2a.cards import agent_card
    from agentdouble.apps.mcp.context import Context
    from agentdouble.core.clock import Clock
    from agentdouble.core.code_tool import run_code
    from agentdouble.emulator import Emulator
    from agentdouble.errors import AgentDoubleError
    from agentdouble.settings import Settings

_HOMES = {
    "A2AApp": "agentdouble.apps",
    "AgentDoubleError": "agentdouble.errors",
    "Clock": "agentdouble.core.clock",
    "Context": "agentdouble.apps.mcp.context",
    "Emulator": "agentdouble.emulator",
    "MCPApp": "agentdouble.apps",
    "Settings": "agentdouble.settings",
    "SimpleApp": "agentdouble.apps",
    "agent_card": "agentdouble.apps.a2a.cards",
    "run_code": "agentdouble.core.code_tool",
}

__all__ = [
    "A2AApp",
    "AgentDoubleError",
    "Clock",
    "Context",
    "Emulator",
    "MCPApp",
    "Settings",
    "SimpleApp",
    "agent_card",
    "run_code",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentdouble' has no attribute {name!r}")
    try:
        import_now(home)
        return getattr(sys.modules[home], name)
    except ModuleNotFoundError as error:
        light = home.startswith(("agentdouble.core", "agentdouble.errors"))
        if not light and not (error.name or "").startswith("agentdouble"):
            from agentdouble.errors import MissingExtraError  # slow: 10 ms, rarely needed

            raise MissingExtraError(f"agentdouble.{name}", extra="emulator") from error
        raise


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
