"""Mutants of the library's public names (DEC, RUN, A2A-05), which involve no wire."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agentdouble
from agentdouble import A2AApp, MCPApp, SimpleApp

Patches = Callable[[pytest.MonkeyPatch], None]
TOOL_ID = "PLATFORM_TOOL_ID"
KEYS = ("PLATFORM_ACCESS_KEY", "PLATFORM_SECRET_KEY")


def accepting(owner: Any, name: str, select: Callable[[Any], Any]) -> Patches:
    """Make a decorator accept and ignore what it must refuse."""

    def patches(patch: pytest.MonkeyPatch) -> None:
        decorate = getattr(owner, name)

        def accepts(self: Any, thing: Any = None, *args: Any, **named: Any) -> Any:
            if thing is not None and select(thing):
                return thing
            result = decorate(self, *(() if thing is None else (thing,)), *args, **named)
            if thing is not None or not callable(result):
                return result
            return lambda cls: cls if select(cls) else result(cls)

        patch.setattr(owner, name, accepts)

    return patches


def replaced(owner: Any, name: str, value: Any) -> Patches:
    """Replace a method."""
    return lambda patch: patch.setattr(owner, name, value)


def raising(error: type[Exception], message: str) -> Callable[..., Any]:
    """Return a decorator that raises."""

    def decorate(_self: Any, _function: Any) -> Any:
        raise error(message)

    return decorate


def swapped(patch: pytest.MonkeyPatch) -> None:
    """Pass entrypoints the headers first."""
    decorate: Any = SimpleApp.entrypoint

    def entrypoint(self: Any, function: Any) -> Any:
        if not inspect.iscoroutinefunction(function):
            return decorate(self, function)

        @functools.wraps(function)
        async def swapped(payload: dict[str, Any], headers: dict[str, str]) -> Any:
            return await function(headers, payload)

        decorate(self, swapped)
        return function

    patch.setattr(SimpleApp, "entrypoint", entrypoint)


def parameters(function: Any) -> list[str]:
    """Return the names of a function's parameters."""
    return list(inspect.signature(function).parameters) if callable(function) else []


def unannotated(function: Any) -> bool:
    """Return whether a parameter has no annotation."""
    some = inspect.signature(function).parameters.values() if callable(function) else ()
    return any(parameter.annotation is inspect.Parameter.empty for parameter in some)


def ran(change: Callable[..., Any]) -> Patches:
    """Wrap run_code in a function, and import the checks that use it again."""

    def patches(patch: pytest.MonkeyPatch) -> None:
        original = agentdouble.run_code
        patch.setattr(
            agentdouble, "run_code", lambda *args, **named: change(original, *args, **named)
        )
        for name in [name for name in sys.modules if ".contracts.test_run" in name]:
            patch.delitem(sys.modules, name)

    return patches


def with_tool(id_: str) -> Callable[..., Any]:
    """Use this tool if none is named."""

    def run(original: Any, *args: Any, **named: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if not os.environ.get(TOOL_ID):
                patch.setenv(TOOL_ID, id_)
            return original(*args, **named)

    return run


def with_error(message: str) -> Callable[..., Any]:
    """Replace the message of any error."""

    def run(original: Any, *args: Any, **named: Any) -> Any:
        try:
            return original(*args, **named)
        except Exception as error:
            raise RuntimeError(message) from error

    return run


def without_context(original: Any, *args: Any, **named: Any) -> Any:
    """Ignore the keys of the tool context."""
    for context in (*args, *named.values()):
        some = getattr(context, "state", context)
        if isinstance(some, dict):
            for name in KEYS:
                some.pop(name, None)
    return original(*args, **named)


def without_environment(original: Any, *args: Any, **named: Any) -> Any:
    """Ignore the keys of the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in KEYS:
            patch.delenv(name, raising=False)
        return original(*args, **named)


def run_with(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patches:
    """Run A2A applications with a different card, host or port."""

    def patches(patch: pytest.MonkeyPatch) -> None:
        run: Any = A2AApp.run

        def changed(
            app: Any, agent_card: Any = None, host: str = "0.0.0.0", port: int = 8000, **more: Any
        ) -> None:
            run(app, **change({"agent_card": agent_card, "host": host, "port": port}), **more)

        patch.setattr(A2AApp, "run", changed)

    return patches


def in_process(name: str) -> Patches:
    """Break an application that a check starts in a process."""

    def patches(patch: pytest.MonkeyPatch) -> None:
        folder = Path(__file__).parent
        patch.setenv("PYTHONPATH", f"{folder / 'in_processes'}{os.pathsep}{folder.parents[1]}")
        patch.setenv("MUTANT", name)

    return patches


PROCESSES: dict[str, Patches] = {
    "listen_at_every_host": run_with(lambda options: {**options, "host": "0.0.0.0"}),
    "listen_at_another_port": run_with(lambda options: {**options, "port": options["port"] + 1}),
}
TABLE: dict[str, dict[str, Any]] = {
    "DEC-01": {
        "accept_a_sync_function": accepting(
            SimpleApp,
            "entrypoint",
            lambda func: inspect.isfunction(func) and not inspect.iscoroutinefunction(func),
        ),
        "give_headers_first": swapped,
    },
    "DEC-02": {
        "accept_an_async_function": accepting(SimpleApp, "ping", inspect.iscoroutinefunction),
        "accept_a_parameter": accepting(SimpleApp, "ping", lambda func: len(parameters(func)) == 1),
    },
    "DEC-03": {
        "return_the_function": replaced(SimpleApp, "async_task", lambda _self, func: func),
        "not_say_so": replaced(SimpleApp, "async_task", raising(NotImplementedError, "")),
    },
    "DEC-04": {
        "accept_parameters_without_annotations": accepting(MCPApp, "tool", unannotated),
        "forget_async_tools": accepting(MCPApp, "tool", inspect.iscoroutinefunction),
    },
    "DEC-05": {
        "accept_a_class_with_execute": accepting(
            A2AApp, "agent_executor", lambda cls: len(cls.__mro__) == 2 and hasattr(cls, "execute")
        ),
        "accept_a_function": accepting(A2AApp, "agent_executor", inspect.isfunction),
    },
    "DEC-06": {
        "accept_a_class_with_the_methods": accepting(
            A2AApp, "task_store", lambda cls: len(cls.__mro__) == 2 and hasattr(cls, "save_task")
        ),
        "accept_a_function": accepting(A2AApp, "task_store", inspect.isfunction),
    },
    "RUN-02": {
        "use_a_default_tool": ran(with_tool("t-default")),
        "not_say_what_is_missing": ran(with_error("no")),
    },
    "RUN-03": {
        "ignore_the_tool_context": ran(without_context),
        "ignore_the_environment": ran(without_environment),
    },
    "A2A-05": {name: in_process(name) for name in PROCESSES},
}
