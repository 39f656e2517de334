"""Mutations of the double under which the checks of a2a fail."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble.apps.a2a import cards
from agentdouble.apps.a2a.executor_loop import ExecutorLoop
from agentdouble.apps.a2a.task_stores import UserTaskStore
from doublecheck.contracts.reference import executor
from tests.mutants.inside import inside


def leave_addresses_out_of_cards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cards, "_interfaces", lambda *_: [])


def run_no_executor(patch: pytest.MonkeyPatch) -> None:
    async def run(self: Any, *work: Any) -> None:
        return None

    patch.setattr(ExecutorLoop, "run", run)


def hold_results_back(patch: pytest.MonkeyPatch) -> None:
    original = ExecutorLoop.run

    async def run(self: Any, work: Any, receive: Any, limit_s: float) -> None:
        held: list[Any] = []

        async def hold(event: Any) -> None:
            held.append(event)

        try:
            await original(self, work, hold, limit_s)
        finally:
            for event in held:
                await receive(event)

    patch.setattr(ExecutorLoop, "run", run)
    patch.setattr(executor, "READ_WITHIN_S", 0.1)


def ask_no_task_store(patch: pytest.MonkeyPatch) -> None:
    async def get(self: Any, task_id: str, context: Any) -> Any:
        return await self._seen.get(task_id, context)

    patch.setattr(UserTaskStore, "get", get)


MUTANTS = (
    inside("A2A-01", leave_addresses_out_of_cards),
    inside("A2A-02", run_no_executor),
    inside("A2A-03", hold_results_back),
    inside("A2A-04", ask_no_task_store),
)
