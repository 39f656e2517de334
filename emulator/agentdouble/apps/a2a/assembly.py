"""Puts an application's classes, stores and the SDK together; imports the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.utils.errors import UnsupportedOperationError

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.application_loop import ApplicationLoop
from agentdouble.apps.a2a.executor_loop import ExecutorLoop
from agentdouble.apps.a2a.guarding import GuardingExecutor, Limits
from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.apps.a2a.runners import ADAPTERS
from agentdouble.apps.a2a.service import Parts, Service
from agentdouble.apps.a2a.stores import GuardedTaskStore, KeptTaskStore

if TYPE_CHECKING:
    from agentdouble.apps.a2a.app import A2AApp


@dataclass(frozen=True)
class AtWork:
    """An application that answers, and how it is ended."""

    service: Service
    beside: ExecutorLoop
    store_loop: ApplicationLoop

    async def close(self) -> None:
        """End every turn and every loop."""
        await self.service.close()
        await self.beside.close()
        await self.store_loop.stop()


async def assemble(app: A2AApp) -> AtWork:
    """Put an application to work; raise StateError if its tasks cannot be read."""
    beside, store_loop = ExecutorLoop(app.name), ApplicationLoop()
    if app.hosted:
        beside.open()
    store = await _store(app, store_loop)
    limits = Limits(app.turn_limit_s, app.cancel_limit_s, app.show_errors)
    executor = GuardingExecutor(_executor(app), lambda: app.name, beside, lambda: app.clock, limits)
    service = Service(Parts(executor, store, app.card, app.keys, app.push_hosts))
    return AtWork(service, beside, store_loop)


async def _store(app: A2AApp, loop: ApplicationLoop) -> TaskStore:
    if app.store is not None:
        if app.hosted:
            await loop.start()
        return GuardedTaskStore(app.store, loop.run, app.store_limit_s)
    if app.memory is None:
        app.memory = await _own(app)
    return app.memory


async def _own(app: A2AApp) -> TaskStore:
    if app.state is None:
        return InMemoryTaskStore()
    kept = KeptTaskStore(app.state, app.name)
    await kept.load(app.clock.now())
    return kept


def _executor(app: A2AApp) -> AgentExecutor:
    executor = app.executor
    if executor is None and app.runner is None:
        return _None()
    if executor is None:
        executor = RunnerExecutor()
        executor.runner = app.runner
    if isinstance(executor, RunnerExecutor):
        executor.hosted(app.name, app.directory or AgentsDirectory(adapters=ADAPTERS))
    return executor


class _None(AgentExecutor):
    """The executor of an application that has none."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError(
            "The application has no executor. Register a class with @app.agent_executor."
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError("The application has no executor.")
