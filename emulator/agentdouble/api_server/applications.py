"""What the API server tells of its applications: the list in detail, and the agents of one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from agentdouble.agents.agent import Agent
from agentdouble.agents.framework import is_instance_of
from agentdouble.api_server.runs import Runs
from agentdouble.errors import ApiError
from agentdouble.threads import import_in_thread

_AGENT_INFO = "google.adk.utils.agent_info"
_LLM_AGENT = "google.adk.agents.llm_agent", "LlmAgent"
_COMPUTER_USE = "google.adk.tools.computer_use.computer_use_toolset", "ComputerUseToolset"


class Applications:
    """Describes the applications whose agents ``runs`` has."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def names(self) -> list[str]:
        """Return the names of all applications, sorted."""
        return self._runs.directory.names()

    async def described(self) -> list[dict[str, Any]]:
        """Describe every application that can be imported."""
        found = []
        for app in self.names():
            with contextlib.suppress(ApiError):
                found.append(self._description(app, await self._runs.agent(app)))
        return found

    async def info(self, app: str) -> dict[str, Any]:
        """Describe an LlmAgent, its sub-agents and their tools; raise ApiError for others."""
        agent = await self._runs.agent(app)
        root = _root(agent)
        if not is_instance_of(root, *_LLM_AGENT):
            raise ApiError(400, "Root agent is not an LlmAgent")
        # A toolset may connect to a server to list its tools: the application's loop does that.
        agents = await self._runs.loops.call(app, lambda: _agents(app, root))
        described = self._description(app, agent)
        return {**described, "language": "python", "isComputerUse": False, "agents": agents}

    def _description(self, app: str, agent: Agent) -> dict[str, Any]:
        tools = getattr(_root(agent), "tools", None) or ()
        return {
            "name": app,
            "rootAgentName": agent.name,
            "description": agent.description,
            "language": self._runs.directory.language(app),
            "isComputerUse": any(is_instance_of(one, *_COMPUTER_USE) for one in tools),
            "agents": None,
        }


def _root(agent: Agent) -> Any:
    """Return the framework's agent, which an App has inside."""
    return getattr(agent.native, "root_agent", agent.native)


async def _agents(app: str, root: Any) -> Mapping[str, Any]:
    try:
        await import_in_thread(_AGENT_INFO)
    except ModuleNotFoundError:
        raise ApiError(501, "The app-info needs a newer google-adk, with agent_info.") from None
    from google.adk.utils.agent_info import get_agents_dict

    try:
        found = await get_agents_dict(root)
    except Exception as error:  # of a toolset of the user
        told = f"The tools of {app!r} cannot be listed: {type(error).__name__}: {error}"
        raise ApiError(500, told) from error
    return {
        name: one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, one in found.items()
    }
