"""Start an application: combine its classes, its stores and the SDK. This imports the SDK."""

from __future__ import annotations

from dataclasses import dataclass

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.utils.errors import UnsupportedOperationError

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.application_loop import ApplicationLoop
from agentdouble.apps.a2a.definition import A2ADefinition
from agentdouble.apps.a2a.executor_loop import ExecutorLoop
from agentdouble.apps.a2a.guarding_executor import GuardingExecutor
from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.apps.a2a.service import Parts, Service
from agentdouble.apps.a2a.task_stores import GuardedTaskStore, PersistentTaskStore
from agentdouble.apps.adapters import ADAPTERS


@dataclass(frozen=True)
class RunningApplication:
    """The running parts of an application, until it is closed."""

    service: Service
    executors: ExecutorLoop
    store_loop: ApplicationLoop

    async def close(self) -> None:
        """End every turn and every event loop."""
        await self.service.close()
        await self.executors.close()
        await self.store_loop.stop()


async def assemble(app: A2ADefinition) -> RunningApplication:
    """Start an application; raise StateError if its tasks cannot be read."""
    executors, store_loop = ExecutorLoop(app.name), ApplicationLoop()
    if app.hosted:
        executors.open()
    store = await _store(app, store_loop)
    executor = GuardingExecutor(_executor(app), app, executors)
    service = Service(Parts(executor, store, app.card, app.keys, app.push_hosts))
    return RunningApplication(service, executors, store_loop)


async def _store(app: A2ADefinition, loop: ApplicationLoop) -> TaskStore:
    if app.store is not None:
        if app.hosted:
            await loop.start()
        return GuardedTaskStore(app.store, loop.run, app.store_limit_s)
    if app.memory is None:
        app.memory = await _own_store(app)
    return app.memory


async def _own_store(app: A2ADefinition) -> TaskStore:
    if app.state is None:
        return InMemoryTaskStore()
    store = PersistentTaskStore(app.state, app.name)
    await store.load(app.clock.now())
    return store


def _executor(app: A2ADefinition) -> AgentExecutor:
    executor = app.executor
    if executor is None and app.runner is None:
        return _NoExecutor()
    if executor is None:
        executor = RunnerExecutor()
        executor.runner = app.runner
    if isinstance(executor, RunnerExecutor):
        executor.hosted(app.name, app.directory or AgentsDirectory(adapters=ADAPTERS))
    return executor


class _NoExecutor(AgentExecutor):
    """An executor that refuses every message, because no executor class is registered."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError(
            "The application has no executor. Register a class with @app.agent_executor."
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError("The application has no executor.")
