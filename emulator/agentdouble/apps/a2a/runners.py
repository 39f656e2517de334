"""What may be the runner of an A2A application: an agent, in any of the forms they come in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentdouble.agents.adk import adk_agent
from agentdouble.agents.agent import Adapter, Agent, as_agent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.agents import simple_agent

ADAPTERS: Sequence[Adapter] = (simple_agent, adk_agent)


async def agent_of(runner: object, app: str, directory: AgentsDirectory) -> Agent:
    """Return the agent that a runner is.

    A runner is the name of an application of the agents directory, what its ``root_agent`` may
    be, or a framework's runner that has such an ``agent``. Raises AgentNotFoundError and
    AgentLoadError.
    """
    if isinstance(runner, str):
        loaded = directory.loaded(runner)
        return await asyncio.wrap_future(directory.loading(runner)) if loaded is None else loaded
    return _agent(runner, app)


def _agent(runner: object, app: str) -> Agent:
    for root in (runner, getattr(runner, "agent", None)):
        for adapter in ADAPTERS:
            agent = adapter(root, app)
            if agent is not None:
                return agent
    inner = getattr(runner, "agent", None)
    return as_agent(runner if inner is None else inner, app)
