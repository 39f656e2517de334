"""Mutations of the double under which the checks of library fail."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest
from a2a.server.tasks import InMemoryTaskStore

from agentdouble import run_code as run_code_function
from agentdouble.apps import A2AApp, simple
from agentdouble.apps.a2a import classes
from agentdouble.apps.mcp import checks
from agentdouble.control_plane import invoke_tool_action
from doublecheck import Credentials
from tests.mutants.inside import inside


def forget_the_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(invoke_tool_action, "_inner", lambda *_: '{"success": false, "data": {}}')


def take_any_tool_id(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(run_code_function.__globals__, "_tool_id", lambda _: "t-sandbox")


def prefer_the_environments_keys(patch: pytest.MonkeyPatch) -> None:

    def credentials(_state: Any) -> Credentials:
        return Credentials(os.environ["PLATFORM_ACCESS_KEY"], os.environ["PLATFORM_SECRET_KEY"])

    patch.setitem(run_code_function.__globals__, "_credentials", credentials)


def accept_any_entrypoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_entrypoint", lambda _: None)


def accept_any_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_ping", lambda _: None)


def accept_async_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple.SimpleApp, "async_task", lambda _self, function: function)


def accept_any_tool(patch: pytest.MonkeyPatch) -> None:
    original = checks.signature_of

    def signature_of(*decorated: Any) -> inspect.Signature:
        found = original(*decorated)
        kept = [
            one.replace(annotation=Any) if one.annotation is one.empty else one
            for one in found.parameters.values()
        ]
        return found.replace(parameters=kept)

    patch.setattr(checks, "signature_of", signature_of)


def accept_any_executor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classes, "executor_of", lambda cls, arguments: cls)


def need_no_runner(patch: pytest.MonkeyPatch) -> None:
    original = A2AApp.agent_executor

    def agent_executor(self: Any, *given: Any, runner: Any = "echo", **arguments: Any) -> Any:
        return original(self, *given, runner=runner, **arguments)

    patch.setattr(A2AApp, "agent_executor", agent_executor)


def accept_any_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classes, "store_of", lambda cls, arguments: cls)


def keep_no_task(patch: pytest.MonkeyPatch) -> None:
    async def get(self: Any, *asked: Any) -> None:
        return None

    patch.setattr(InMemoryTaskStore, "get", get)


MUTANTS = (
    inside("DEC-01", accept_any_entrypoint),
    inside("DEC-02", accept_any_ping),
    inside("DEC-03", accept_async_task),
    inside("DEC-04", accept_any_tool),
    inside("DEC-05", accept_any_executor),
    inside("DEC-05", need_no_runner),
    inside("DEC-06", accept_any_store),
    inside("DEC-06", keep_no_task),
    inside("RUN-01", forget_the_result),
    inside("RUN-02", take_any_tool_id),
    inside("RUN-03", prefer_the_environments_keys),
)
