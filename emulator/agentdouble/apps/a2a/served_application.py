"""What a running service reads of its application."""

from __future__ import annotations

from typing import Protocol

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskStore
from a2a.types import AgentCard

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.core.clock import Clock
from agentdouble.state import Store


class ServedApplication(Protocol):
    """An A2AApp; ``memory`` is the store that the service makes if ``store`` is None."""

    name: str
    clock: Clock
    runner: object
    push_hosts: tuple[str, ...]
    turn_limit_s: float
    cancel_limit_s: float
    show_errors: bool
    hosted: bool
    directory: AgentsDirectory | None
    state: Store | None
    memory: TaskStore | None
    executor: AgentExecutor | None
    store: TaskStore | None

    def card(self, url: str) -> AgentCard:
        """Return the card that is served at a URL."""
