"""Make users' classes usable by the SDK (DEC-05, DEC-06).

The specification requires less of a class than the SDK does. An executor may leave out ``cancel``,
and also ``execute`` if its runner does the work; a task store has three methods with other names.
This module adds the missing methods in a subclass.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskStore
from a2a.server.tasks.copying_task_store import CopyingTaskStoreAdapter

from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.apps.a2a.task_stores import METHODS, UserTaskStore
from agentdouble.errors import DecorationError

T = TypeVar("T")


def executor_of(cls: type, arguments: Mapping[str, Any]) -> AgentExecutor:
    """Return an instance of an executor class; raise DecorationError if it is not one.

    ``arguments``, such as the runner, are passed to the class's ``__init__``, or set as
    attributes if the class has no ``__init__``.
    """
    if not (isinstance(cls, type) and issubclass(cls, AgentExecutor)):
        raise DecorationError(
            f"@app.agent_executor takes a class derived from a2a.server.agent_execution."
            f"AgentExecutor; {_named(cls)} is not.",
            decorator="agent_executor",
        )
    for name in ("execute", "cancel"):
        if not inspect.iscoroutinefunction(getattr(cls, name)):
            raise DecorationError(
                f"{_named(cls)}.{name} is not async; it is 'async def {name}(self, context, "
                "event_queue)'.",
                decorator="agent_executor",
            )
    return _make(_completed(cls, RunnerExecutor), arguments, "agent_executor")


def without_runner(cls: object) -> DecorationError:
    """Return the error for a class that is registered without a runner."""
    over = "" if cls is None else f" over {_named(cls)}"
    return DecorationError(
        f"@app.agent_executor needs a runner: write @app.agent_executor(runner=...){over}.",
        decorator="agent_executor",
    )


def store_of(cls: type, arguments: Mapping[str, Any]) -> TaskStore:
    """Return an instance of a task store class; raise DecorationError if it is not one."""
    if not (isinstance(cls, type) and issubclass(cls, TaskStore)):
        raise DecorationError(
            f"@app.task_store takes a class derived from a2a.server.tasks.TaskStore; "
            f"{_named(cls)} is not.",
            decorator="task_store",
        )
    missing = [name for name in METHODS if not callable(getattr(cls, name, None))]
    if not missing:
        return UserTaskStore(_make(_completed(cls, _Unused), arguments, "task_store"))
    if inspect.isabstract(cls):
        raise DecorationError(
            f"{_named(cls)} is no task store yet: it lacks {', '.join(missing)}.",
            decorator="task_store",
        )
    return CopyingTaskStoreAdapter(_make(cls, arguments, "task_store"))


class _Unused(TaskStore):
    """The SDK's methods, for a class that has the specification's methods instead."""

    async def save(self, *_: Any) -> None:
        raise NotImplementedError

    async def get(self, *_: Any) -> None:
        raise NotImplementedError

    async def list(self, *_: Any) -> Any:
        raise NotImplementedError

    async def delete(self, *_: Any) -> None:
        raise NotImplementedError


def _completed(cls: type[T], missing: type) -> type[T]:
    """Return a subclass that adds the methods which the class lacks."""
    if issubclass(cls, missing):
        return cls
    own = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, missing), own)


def _make(cls: type[T], arguments: Mapping[str, Any], decorator: str) -> T:
    if cls.__init__ is object.__init__:
        made = cls()
        for name, value in arguments.items():
            setattr(made, name, value)
        return made
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise DecorationError(
            f"{_named(cls)} does not take the arguments of @app.{decorator}: {error}.",
            decorator=decorator,
        ) from None
    return cls(**arguments)


def _named(cls: object) -> str:
    return getattr(cls, "__qualname__", repr(cls))
