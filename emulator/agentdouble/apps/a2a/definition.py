"""The definition of an A2A application: its card, executor, task store and limits (section 4.6).

The SDK is imported when a class is registered or a card is made, not earlier.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.a2a.cards import MODES, agent_card, checked
from agentdouble.clock import Clock
from agentdouble.errors import DecorationError
from agentdouble.imports import import_now
from agentdouble.state import Store

if TYPE_CHECKING:
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskStore
    from a2a.types import AgentCard

_CLASSES = "agentdouble.apps.a2a.classes"

C = TypeVar("C", bound=type)

TURN_LIMIT_S = 600.0
CANCEL_LIMIT_S = 5.0
STORE_LIMIT_S = 30.0


class A2ADefinition:
    """The parts of an A2AApp that the author defines, and those that the host sets."""

    def __init__(
        self,
        name: str = "agent",
        *,
        runner: object = None,
        card: AgentCard | Mapping[str, Any] | None = None,
        input_modes: Sequence[str] = MODES,
        keys: Sequence[str] = (),
        push_hosts: Sequence[str] = (),
        turn_limit_s: float = TURN_LIMIT_S,
        cancel_limit_s: float = CANCEL_LIMIT_S,
        store_limit_s: float = STORE_LIMIT_S,
        show_errors: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.clock = clock or Clock()
        self.runner = runner
        self.input_modes = tuple(input_modes)
        self.keys = tuple(keys)
        self.push_hosts = tuple(push_hosts)
        self.turn_limit_s = turn_limit_s
        self.cancel_limit_s = cancel_limit_s
        self.store_limit_s = store_limit_s
        self.show_errors = show_errors
        self.directory: AgentsDirectory | None = None
        self.state: Store | None = None
        self.hosted = False
        self.memory: TaskStore | None = None
        self.executor: AgentExecutor | None = None
        self.store: TaskStore | None = None
        self._card = None if card is None else checked(card)

    def agent_executor(
        self, cls: object = None, /, *, runner: object = None, **arguments: Any
    ) -> Callable[[C], C]:
        """Register an executor class; it is created with the runner and the other arguments.

        The class may define ``execute(context, event_queue)``; otherwise the runner answers.
        ``adapters.agent_of`` says which objects a runner can be. Raises DecorationError for a class
        that is not an agent executor, for a missing runner, and for a second class (DEC-05).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.classes import executor_of, without_runner

        if cls is not None or runner is None:
            raise without_runner(cls)

        def register(given: C) -> C:
            made = executor_of(given, {"runner": runner, **arguments})
            if self.executor is not None:
                raise _twice("agent_executor", given)
            self.executor = made
            return given

        return register

    def task_store(self, cls: C | None = None, /, **arguments: Any) -> Any:
        """Register a task store class, created with the arguments; the default store is in memory.

        Raises DecorationError for a class that is not a task store, and for a second class
        (DEC-06).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.classes import store_of

        def register(given: C) -> C:
            made = store_of(given, arguments)
            if self.store is not None:
                raise _twice("task_store", given)
            self.store = made
            return given

        return register if cls is None else register(cls)

    def card(self, url: str) -> AgentCard:
        """Return the card that is served at a URL (A2A-01)."""
        if self._card is not None:
            return self._card
        return agent_card(self, url, bearer=bool(self.keys), input_modes=self.input_modes)

    @property
    def description(self) -> str:
        """The description of the executor or the runner."""
        for one in (self.executor, self.runner):
            text = getattr(one, "description", None)
            if isinstance(text, str) and text:
                return text
            if one is not None and (inspect.isroutine(one) or one is self.executor):
                return inspect.cleandoc(vars(type(one)).get("__doc__") or inspect.getdoc(one) or "")
        return ""


def _twice(decorator: str, cls: type) -> DecorationError:
    return DecorationError(
        f"@app.{decorator} has registered a class already; {cls.__qualname__} is a second one.",
        decorator=decorator,
    )
