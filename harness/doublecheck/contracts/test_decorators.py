"""Checks of the decorator contract (DEC)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

import agentdouble
from doublecheck.contracts.clauses import clause


async def _right(payload: dict[str, Any], headers: dict[str, str]) -> str:
    return ""


async def _right_stream(payload: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[str]:
    yield ""


def _sync(payload: dict[str, Any], headers: dict[str, str]) -> str:
    return ""


async def _nothing() -> str:
    return ""


async def _payload_alone(payload: dict[str, Any]) -> str:
    return ""


async def _three(payload: dict[str, Any], headers: dict[str, str], more: str) -> str:
    return ""


async def _turned_round(headers: dict[str, str], payload: dict[str, Any]) -> str:
    return ""


def _right_ping() -> str:
    return ""


def _ping_with_parameter(verbose: bool = False) -> str:
    return ""


async def _async_ping() -> str:
    return ""


def _accepted(decorate: Callable[[Any], Any], functions: tuple[Any, ...]) -> list[Any]:
    """Return the functions that a decorator accepts."""
    accepted = []
    for function in functions:
        try:
            decorate(function)
        except TypeError:
            continue
        accepted.append(function)
    return accepted


@clause("DEC-01")
def test_entrypoint_refuses_what_is_no_entrypoint() -> None:
    """An async function with payload and headers is accepted, also a generator; no other is."""
    right = (_right, _right_stream)
    wrong = (_sync, _nothing, _payload_alone, _three, _turned_round)

    assert [*right] == _accepted(agentdouble.SimpleApp().entrypoint, right + wrong)


@clause("DEC-02")
def test_ping_refuses_what_is_no_ping() -> None:
    """A sync function without parameters is accepted; no other is."""
    wrong = (_ping_with_parameter, _async_ping)

    assert [_right_ping] == _accepted(agentdouble.SimpleApp().ping, (_right_ping, *wrong))


@clause("DEC-03")
def test_async_task_says_that_it_is_not_implemented() -> None:
    """The decorator raises, and the message names it."""
    with pytest.raises(NotImplementedError, match="async_task"):
        agentdouble.SimpleApp().async_task(_right)


def _tool(city: str, days: int = 1) -> dict[str, Any]:
    return {}


async def _async_tool(city: str) -> str:
    return ""


def _tool_without_parameters() -> str:
    return ""


def _unannotated(city, days: int = 1) -> str:  # type: ignore[no-untyped-def]
    return ""


async def _unannotated_async(city: str, days=1) -> str:  # type: ignore[no-untyped-def]
    return ""


@clause("DEC-04")
def test_tool_refuses_a_parameter_without_a_type() -> None:
    """Sync and async functions are accepted; the error for others names the parameter."""
    right = (_tool, _async_tool, _tool_without_parameters)
    wrong = (_unannotated, _unannotated_async)

    assert [*right] == _accepted(agentdouble.MCPApp().tool, right + wrong)
    assert [*right] == _accepted(agentdouble.MCPApp().tool(), right + wrong)
    with pytest.raises(TypeError, match="'city'"):
        agentdouble.MCPApp().tool(_unannotated)
    with pytest.raises(TypeError, match="'days'"):
        agentdouble.MCPApp().tool(_unannotated_async)


@clause("DEC-05")
def test_agent_executor_refuses_what_is_no_executor() -> None:
    """A class derived from an executor class is accepted, but only with a runner."""
    from a2a.server.agent_execution import AgentExecutor

    class Executor(AgentExecutor):
        async def execute(self, context: Any, event_queue: Any) -> None: ...

    class Other:
        async def execute(self, context: Any, event_queue: Any) -> None: ...

    def with_runner(cls: type) -> type:
        return agentdouble.A2AApp().agent_executor(runner="echo")(cls)

    def without_runner(cls: type) -> type:
        return agentdouble.A2AApp().agent_executor()(cls)

    assert [Executor] == _accepted(with_runner, (Executor, Other, object, _right))
    assert [] == _accepted(without_runner, (Executor, Other))


@clause("DEC-06")
def test_task_store_refuses_what_is_no_task_store() -> None:
    """A class derived from a task-store class that has the three operations is accepted."""
    from a2a.server.tasks import TaskStore

    class Store(TaskStore):
        def save_task(self, task: Any) -> None: ...

        def get_task(self, task_id: str) -> Any: ...

        def delete_task(self, task_id: str) -> None: ...

    class Other:
        save_task, get_task, delete_task = Store.save_task, Store.get_task, Store.delete_task

    def decorate(cls: type) -> Any:
        return agentdouble.A2AApp().task_store()(cls)

    assert [Store] == _accepted(decorate, (Store, Other, object, _right))


@clause("DEC-06")
def test_without_a_task_store_tasks_are_in_memory() -> None:
    """A task can be read again; another application does not know it."""
    app, other = (agentdouble.A2AApp(runner="echo") for _ in range(2))
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}

    task = _posted(app, "SendMessage", {"message": message})["result"]["task"]
    read = _posted(app, "GetTask", {"id": task["id"]})
    unknown = _posted(other, "GetTask", {"id": task["id"]})

    assert task == read.get("result")
    assert -32001 == unknown.get("error", {}).get("code")


def _posted(app: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of an application that runs in this process."""

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await client.post("/", json=body, headers={"A2A-Version": "1.0"})

    answer: dict[str, Any] = asyncio.run(post()).json()
    return answer
