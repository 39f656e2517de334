"""Users' classes as the SDK can use them (DEC-05, DEC-06).

The specification asks less of a class than the SDK does: an executor need not define
``cancel``, nor ``execute`` where its runner does the work, and a task store has three methods of
other names. A class is completed by a subclass of it that has what is missing.
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
    """Return the executor that a class is; raise DecorationError if it is none.

    ``arguments`` holds the runner. They are given to the class's ``__init__``, and become
    attributes where the class has none.
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
    """Return the error of a class that was registered without a runner."""
    over = "" if cls is None else f" over {_named(cls)}"
    return DecorationError(
        f"@app.agent_executor needs a runner: write @app.agent_executor(runner=...){over}.",
        decorator="agent_executor",
    )


def store_of(cls: type, arguments: Mapping[str, Any]) -> TaskStore:
    """Return the task store that a class is; raise DecorationError if it is none."""
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
    """The SDK's methods, for a class that has those of the specification."""

    async def save(self, *_: Any) -> None:
        raise NotImplementedError

    async def get(self, *_: Any) -> None:
        raise NotImplementedError

    async def list(self, *_: Any) -> Any:
        raise NotImplementedError

    async def delete(self, *_: Any) -> None:
        raise NotImplementedError


def _completed(cls: type[T], missing: type) -> type[T]:
    """Return a subclass with what the class lacks."""
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
