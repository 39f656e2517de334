"""An ordinary MCPApp, written with decorators, that serves the scenarios of the suite."""

from __future__ import annotations

from mcp.types import Completion

from agentdouble import MCPApp
from tests.mcp_official.ordinary import offers, rounds, tools


def application() -> MCPApp:
    """Return the application."""
    app = MCPApp("ordinary", instructions="For the conformance suite.")
    tools.register(app)
    rounds.register(app)
    offers.register(app)

    @app.completion
    def complete(ref: object, argument: object, context: object) -> Completion:
        start = argument.value  # type: ignore[attr-defined]
        values = [value for value in ("paris", "park", "party") if value.startswith(start)]
        return Completion(values=values, total=len(values), has_more=False)

    return app
