"""Mutants of the decorator contract."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types import Task

from agentdouble import serving
from agentdouble.apps import mcp, simple
from agentdouble.apps.a2a import A2AApp, application, assembly, classes
from agentdouble.apps.mcp import checks
from agentdouble.apps.mcp.hosting import Runner
from agentdouble.apps.simple import SimpleApp
from agentdouble.errors import DecorationError
from tests.mutants import Mutant

ASYNC = "entrypoint: must be async (4.6)"
FIRST = "payload is first, headers second (4.6)"
STREAMS = "an async generator yielding strings streams (4.6)"
SYNC = "ping: must be sync (4.6)"
NO_PARAMETERS = "ping: synchronous function with no parameters (4.6)"
PLANNED = "async_task: planned, not implemented (4.6)"
ANY_TOOL = "tool: function (sync or async) (4.6)"
ANNOTATED = "tool: function with type-annotated parameters (4.6)"
COMPLEX = "a complex object parameter is allowed (4.6)"
EXECUTOR = "agent_executor: must derive from an agent-executor class (4.6)"
RUNNER = "agent_executor: runner is required (4.6)"
KEYWORDS = "agent_executor(runner=..., other kwargs), applied to a class (4.6)"
STORE = "task_store: must derive from a task-store class (4.6)"
THREE = "Required store operations: save_task, get_task, delete_task (2.9)"
OPTIONAL = "task_store: optional; default is in-memory storage (4.6)"
OPTIONS = "task_store(kwargs), applied to a class (4.6)"
RUNS = "The A2A application runs with an agent card, a host and a port (4.6)"

Mutate = Callable[[pytest.MonkeyPatch], None]
Function = Callable[..., Any]


def _refused(decorator: str, why: str) -> DecorationError:
    return DecorationError(f"@app.{decorator} refuses this function: {why}.", decorator=decorator)


def _replaced(owner: Any, name: str, other: Any) -> Mutate:
    return lambda patch: patch.setattr(owner, name, other)


def _accepts(owner: Any, name: str, accepts: Callable[[Any], bool]) -> Mutate:
    """Let a check of a decorator pass for some functions."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = getattr(owner, name)

        def check(function: Any, *given: Any) -> None:
            if not accepts(function):
                whole(function, *given)

        patch.setattr(owner, name, check)

    return mutant


def _refuses(owner: Any, name: str, decorator: str, refuses: Callable[[Any], bool]) -> Mutate:
    """Let a check of a decorator fail for some functions."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = getattr(owner, name)

        def check(function: Any, *given: Any) -> None:
            if refuses(function) and not _is_ours(function):
                raise _refused(decorator, "it is not supported")
            whole(function, *given)

        patch.setattr(owner, name, check)

    return mutant


def _is_ours(function: Any) -> bool:
    """Whether a function or class is of the reference applications, which must be made."""
    module = getattr(function, "__module__", "")
    return module.startswith(("doublecheck.contracts.reference", "agentdouble."))


def _names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def _kinds(function: Any) -> list[Any]:
    found = inspect.signature(function).parameters.values()
    return [parameter.kind for parameter in found]


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


# ---- entrypoint


def _entrypoint(accepts: Callable[[Any], bool]) -> Mutate:
    return _accepts(simple, "check_entrypoint", accepts)


def _swapped(patch: pytest.MonkeyPatch) -> None:
    whole = SimpleApp.entrypoint

    def entrypoint(app: SimpleApp, function: Function) -> Function:
        whole(app, function)
        registered = app._entrypoint
        assert registered is not None
        app._entrypoint = lambda payload, headers: registered(headers, payload)
        return function

    patch.setattr(SimpleApp, "entrypoint", entrypoint)


ENTRYPOINT: tuple[tuple[str, str, Mutate], ...] = (
    ("accept_anything", ASYNC, _entrypoint(lambda _: True)),
    (
        "accept_a_sync_function",
        ASYNC,
        _entrypoint(lambda one: inspect.isfunction(one) and not _is_async(one)),
    ),
    ("accept_a_sync_generator", ASYNC, _entrypoint(inspect.isgeneratorfunction)),
    (
        "accept_a_lambda",
        ASYNC,
        _entrypoint(lambda one: getattr(one, "__name__", "") == "<lambda>"),
    ),
    ("accept_no_parameters", FIRST, _entrypoint(lambda one: _is_async(one) and not _names(one))),
    (
        "accept_one_parameter",
        FIRST,
        _entrypoint(lambda one: _is_async(one) and len(_names(one)) == 1),
    ),
    (
        "accept_three_parameters",
        FIRST,
        _entrypoint(lambda one: _is_async(one) and len(_names(one)) == 3),
    ),
    (
        "accept_headers_first",
        FIRST,
        _entrypoint(lambda one: _is_async(one) and _names(one) == ["headers", "payload"]),
    ),
    (
        "accept_keyword_only_parameters",
        FIRST,
        _entrypoint(
            lambda one: _is_async(one) and inspect._ParameterKind.KEYWORD_ONLY in _kinds(one)
        ),
    ),
    (
        "accept_any_async_generator",
        FIRST,
        _entrypoint(inspect.isasyncgenfunction),
    ),
    (
        "refuse_an_async_generator",
        STREAMS,
        _refuses(simple, "check_entrypoint", "entrypoint", inspect.isasyncgenfunction),
    ),
    ("hand_headers_over_first", FIRST, _swapped),
)


# ---- ping and async_task


def _ping(accepts: Callable[[Any], bool]) -> Mutate:
    return _accepts(simple, "check_ping", accepts)


def _has_defaults(function: Any) -> bool:
    found = inspect.signature(function).parameters.values()
    return bool(found) and all(one.default is not one.empty for one in found)


PINGS: tuple[tuple[str, str, Mutate], ...] = (
    ("accept_an_async_function", SYNC, _ping(inspect.iscoroutinefunction)),
    ("accept_an_async_generator", SYNC, _ping(inspect.isasyncgenfunction)),
    (
        "accept_a_parameter",
        NO_PARAMETERS,
        _ping(lambda one: not _is_async(one) and len(_names(one)) == 1),
    ),
    (
        "accept_a_parameter_with_a_default",
        NO_PARAMETERS,
        _ping(lambda one: not _is_async(one) and _has_defaults(one)),
    ),
    (
        "accept_a_keyword_only_parameter",
        NO_PARAMETERS,
        _ping(lambda one: inspect._ParameterKind.KEYWORD_ONLY in _kinds(one)),
    ),
    (
        "accept_any_number_of_parameters",
        NO_PARAMETERS,
        _ping(lambda one: inspect._ParameterKind.VAR_POSITIONAL in _kinds(one)),
    ),
    (
        "accept_two_parameters",
        NO_PARAMETERS,
        _ping(lambda one: not _is_async(one) and len(_names(one)) == 2),
    ),
)


def _task(other: Function) -> Mutate:
    return _replaced(SimpleApp, "async_task", other)


class _MissingError(AttributeError):
    """An error that is meant, unlike one that a mutant makes by mistake."""


def _raise_attribute_error(_app: SimpleApp, _function: Function) -> Any:
    raise _MissingError("async_task")


def _raise_an_error(_app: SimpleApp, _function: Function) -> Any:
    raise RuntimeError("Internal error.")


def _refuse_sync_functions(app: SimpleApp, function: Function) -> Any:
    if not _is_async(function):
        raise NotImplementedError("async_task is planned and not implemented.")
    return function


def _run_as_a_task(_app: SimpleApp, function: Function) -> Function:
    async def task(*given: Any, **named: Any) -> Any:
        return await function(*given, **named)

    return task


TASKS: tuple[tuple[str, Mutate], ...] = (
    ("return_the_function", _task(lambda _app, function: function)),
    ("return_nothing", _task(lambda _app, _function: None)),
    ("wrap_the_function", _task(_run_as_a_task)),
    ("accept_async_functions_alone", _task(_refuse_sync_functions)),
    ("raise_attribute_error", _task(_raise_attribute_error)),
    ("raise_an_error_that_does_not_say_so", _task(_raise_an_error)),
)


# ---- tools


def _parameters(accepts: Callable[[Any, inspect.Parameter], bool]) -> Mutate:
    """Accept parameters without an annotation, as strings."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole, read = checks._check_parameter, checks.signature_of

        def check(function: Function, parameter: inspect.Parameter) -> None:
            if not accepts(function, parameter):
                whole(function, parameter)

        def signature(function: Function, *given: Any) -> inspect.Signature:
            found = read(function, *given)
            annotated = [
                one.replace(annotation=str)
                if one.annotation is one.empty and accepts(function, one)
                else one
                for one in found.parameters.values()
            ]
            return found.replace(parameters=annotated)

        patch.setattr(checks, "_check_parameter", check)
        patch.setattr(checks, "signature_of", signature)

    return mutant


def _refuses_parameters(refuses: Callable[[inspect.Parameter], bool]) -> Mutate:
    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = checks._check_parameter

        def check(function: Function, parameter: inspect.Parameter) -> None:
            if refuses(parameter) and not _is_ours(function):
                raise _refused("tool", f"its parameter {parameter.name!r} is too complex")
            whole(function, parameter)

        patch.setattr(checks, "_check_parameter", check)

    return mutant


def _is_further(function: Any, parameter: inspect.Parameter) -> bool:
    return parameter.name in _names(function)[1:]


def _is_plain(parameter: inspect.Parameter) -> bool:
    return parameter.annotation in (str, int, float, bool, parameter.empty)


def _waits_for_nothing(patch: pytest.MonkeyPatch) -> None:
    async def run(_runner: Any, function: Function, arguments: inspect.BoundArguments) -> Any:
        value = function(*arguments.args, **arguments.kwargs)
        if inspect.iscoroutine(value):
            value.close()
            return repr(value)
        return value

    patch.setattr(Runner, "run", run)


def _loses_async_tools(patch: pytest.MonkeyPatch) -> None:
    whole = mcp.MCPApp._add

    def add(app: mcp.MCPApp, offered: checks.Offered, **options: bool) -> None:
        if not _is_async(offered.function):
            whole(app, offered, **options)

    patch.setattr(mcp.MCPApp, "_add", add)


TOOLS: tuple[tuple[str, str, Mutate], ...] = (
    (
        "refuse_async_functions",
        ANY_TOOL,
        _refuses(checks, "_check_kind", "tool", inspect.iscoroutinefunction),
    ),
    (
        "refuse_sync_functions",
        ANY_TOOL,
        _refuses(checks, "_check_kind", "tool", lambda one: not _is_async(one)),
    ),
    ("wait_for_no_async_tool", ANY_TOOL, _waits_for_nothing),
    ("forget_async_tools", ANY_TOOL, _loses_async_tools),
    (
        "accept_parameters_without_annotations",
        ANNOTATED,
        _parameters(lambda _, one: one.annotation is one.empty),
    ),
    (
        "accept_further_parameters_without_annotations",
        ANNOTATED,
        _parameters(
            lambda function, one: one.annotation is one.empty and _is_further(function, one)
        ),
    ),
    (
        "accept_defaults_without_annotations",
        ANNOTATED,
        _parameters(lambda _, one: one.annotation is one.empty and one.default is not one.empty),
    ),
    (
        "accept_keyword_only_parameters_without_annotations",
        ANNOTATED,
        _parameters(lambda _, one: one.annotation is one.empty and one.kind is one.KEYWORD_ONLY),
    ),
    (
        "accept_async_functions_without_annotations",
        ANNOTATED,
        _parameters(lambda function, one: one.annotation is one.empty and _is_async(function)),
    ),
    ("refuse_complex_parameters", COMPLEX, _refuses_parameters(lambda one: not _is_plain(one))),
    (
        "refuse_classes_as_parameters",
        COMPLEX,
        _refuses_parameters(lambda one: hasattr(one.annotation, "__annotations__")),
    ),
)


# ---- A2A's classes


class _Nothing(AgentExecutor):
    """An executor that does nothing, in place of a class that is none."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        """Do nothing."""

    async def cancel(self, context: Any, event_queue: Any) -> None:
        """Do nothing."""


def _executor(accepts: Callable[[Any], bool]) -> Mutate:
    """Accept some classes that are no executors."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = classes.executor_of

        def executor_of(cls: Any, arguments: Mapping[str, Any]) -> AgentExecutor:
            derived = isinstance(cls, type) and issubclass(cls, AgentExecutor)
            return whole(cls, arguments) if derived or not accepts(cls) else _Nothing()

        patch.setattr(classes, "executor_of", executor_of)

    return mutant


def _runner_if_any(patch: pytest.MonkeyPatch) -> None:
    whole = A2AApp.agent_executor

    def agent_executor(
        app: A2AApp, cls: Any = None, /, *, runner: Any = "echo", **more: Any
    ) -> Any:
        made = whole(app, runner=runner, **more)
        return made if cls is None else made(cls)

    patch.setattr(A2AApp, "agent_executor", agent_executor)


def _runner_or_none(patch: pytest.MonkeyPatch) -> None:
    whole = A2AApp.agent_executor
    missing = object()

    def agent_executor(
        app: A2AApp, cls: Any = None, /, *, runner: Any = missing, **more: Any
    ) -> Any:
        given = {} if runner is missing else {"runner": runner or "echo"}
        return whole(app, cls, **given, **more)

    patch.setattr(A2AApp, "agent_executor", agent_executor)


def _without_parentheses(patch: pytest.MonkeyPatch) -> None:
    whole = A2AApp.agent_executor

    def agent_executor(app: A2AApp, cls: Any = None, /, **more: Any) -> Any:
        return whole(app, **more) if cls is None else whole(app, runner="echo")(cls)

    patch.setattr(A2AApp, "agent_executor", agent_executor)


def _executor_arguments(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Mutate:
    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = classes.executor_of

        def executor_of(cls: Any, arguments: Mapping[str, Any]) -> AgentExecutor:
            return whole(cls, change({**arguments}))

        patch.setattr(classes, "executor_of", executor_of)

    return mutant


def _direct_executor(patch: pytest.MonkeyPatch) -> None:
    whole = classes.executor_of

    def executor_of(cls: Any, arguments: Mapping[str, Any]) -> AgentExecutor:
        if isinstance(cls, type) and AgentExecutor not in cls.__bases__:
            raise _refused("agent_executor", "it does not derive from AgentExecutor itself")
        return whole(cls, arguments)

    patch.setattr(classes, "executor_of", executor_of)


def _at_the_first_call(patch: pytest.MonkeyPatch) -> None:
    """Register any class, and say what is wrong with it only when it is used."""
    whole = classes.executor_of

    def executor_of(cls: Any, arguments: Mapping[str, Any]) -> AgentExecutor:
        try:
            return whole(cls, arguments)
        except DecorationError:
            return _Nothing()

    patch.setattr(classes, "executor_of", executor_of)


EXECUTORS: tuple[tuple[str, str, Mutate], ...] = (
    ("accept_any_class", EXECUTOR, _executor(lambda cls: isinstance(cls, type))),
    (
        "accept_a_class_with_execute",
        EXECUTOR,
        _executor(lambda cls: isinstance(cls, type) and hasattr(cls, "execute")),
    ),
    ("accept_a_function", EXECUTOR, _executor(inspect.isfunction)),
    ("refuse_classes_derived_further", EXECUTOR, _direct_executor),
    ("wait_with_refusals_for_a_call", EXECUTOR, _at_the_first_call),
    ("need_no_runner", RUNNER, _runner_if_any),
    ("accept_none_for_a_runner", RUNNER, _runner_or_none),
    ("accept_a_class_without_parentheses", RUNNER, _without_parentheses),
    (
        "lose_the_runner",
        RUNNER,
        _executor_arguments(lambda given: {**given, "runner": None}),
    ),
    (
        "lose_the_other_keywords",
        KEYWORDS,
        _executor_arguments(lambda given: {"runner": given["runner"]}),
    ),
)


# ---- task stores


def _store(accepts: Callable[[Any], bool]) -> Mutate:
    """Accept some classes that are no task stores, and keep the tasks in memory."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = classes.store_of

        def store_of(cls: Any, arguments: Mapping[str, Any]) -> TaskStore:
            return InMemoryTaskStore() if accepts(cls) else whole(cls, arguments)

        patch.setattr(classes, "store_of", store_of)

    return mutant


def _is_store(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, TaskStore)


def _lacks(*names: str) -> Callable[[Any], bool]:
    return lambda cls: _is_store(cls) and any(not hasattr(cls, name) for name in names)


def _store_arguments(patch: pytest.MonkeyPatch) -> None:
    whole = classes.store_of
    patch.setattr(classes, "store_of", lambda cls, _arguments: whole(cls, {}))


def _direct_store(patch: pytest.MonkeyPatch) -> None:
    whole = classes.store_of

    def store_of(cls: Any, arguments: Mapping[str, Any]) -> TaskStore:
        if _is_store(cls) and TaskStore not in cls.__bases__:
            raise _refused("task_store", "it does not derive from TaskStore itself")
        return whole(cls, arguments)

    patch.setattr(classes, "store_of", store_of)


def _refuses_methods(refuses: Callable[[Any], bool]) -> Mutate:
    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = classes.store_of

        def store_of(cls: Any, arguments: Mapping[str, Any]) -> TaskStore:
            if _is_store(cls) and refuses(getattr(cls, "save_task", None)) and not _is_ours(cls):
                raise _refused("task_store", "its methods are of the other kind")
            return whole(cls, arguments)

        patch.setattr(classes, "store_of", store_of)

    return mutant


class _Forgetting(InMemoryTaskStore):
    """A store that keeps nothing."""

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep nothing."""


def _own(make: Callable[[], TaskStore]) -> Mutate:
    """Give applications without a store another one."""

    async def own_store(_app: Any) -> TaskStore:
        return make()

    return _replaced(assembly, "_own_store", own_store)


def _shared_store(patch: pytest.MonkeyPatch) -> None:
    store = InMemoryTaskStore()
    _own(lambda: store)(patch)


def _no_store() -> TaskStore:
    raise DecorationError("Register a task store with @app.task_store.", decorator="task_store")


STORES: tuple[tuple[str, str, Mutate], ...] = (
    ("accept_any_class", STORE, _store(lambda cls: isinstance(cls, type) and not _is_store(cls))),
    (
        "accept_a_class_with_the_methods",
        STORE,
        _store(lambda cls: not _is_store(cls) and hasattr(cls, "save_task")),
    ),
    (
        "accept_a_function",
        STORE,
        _store(inspect.isfunction),
    ),
    ("accept_a_store_without_methods", THREE, _store(_lacks("save_task"))),
    ("accept_a_store_without_delete_task", THREE, _store(_lacks("delete_task"))),
    ("accept_a_store_without_get_task", THREE, _store(_lacks("get_task"))),
    ("refuse_stores_derived_further", STORE, _direct_store),
    (
        "refuse_sync_methods",
        STORE,
        _refuses_methods(lambda one: one is not None and not inspect.iscoroutinefunction(one)),
    ),
    ("refuse_async_methods", STORE, _refuses_methods(inspect.iscoroutinefunction)),
    ("lose_the_keywords", OPTIONS, _store_arguments),
    ("need_a_store", OPTIONAL, _own(_no_store)),
    ("forget_tasks_without_a_store", OPTIONAL, _own(_Forgetting)),
    ("share_one_store_among_applications", OPTIONAL, _shared_store),
)


# ---- running


def _run(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Mutate:
    """Change what an application runs with."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = A2AApp.run

        def run(
            app: A2AApp,
            agent_card: Any = None,
            host: str = "0.0.0.0",
            port: int = 8000,
            **more: Any,
        ) -> None:
            whole(app, **change({"agent_card": agent_card, "host": host, "port": port}), **more)

        patch.setattr(A2AApp, "run", run)

    return mutant


def _another_port(patch: pytest.MonkeyPatch) -> None:
    whole = serving.open_socket
    patch.setattr(
        application,
        "serving",
        _With(serving, open_socket=lambda host, port: whole(host, port + 1 if port else 0)),
    )


class _With:
    """A module with something else in it."""

    def __init__(self, module: Any, **others: Any) -> None:
        self.__dict__.update({**vars(module), **others})


def _card(**others: str) -> Mutate:
    def changed(given: dict[str, Any]) -> dict[str, Any]:
        card = given["agent_card"]
        if isinstance(card, Mapping):
            return {**given, "agent_card": {**card, **others}}
        if card is not None:
            card = type(card).FromString(card.SerializeToString())
            for name, value in others.items():
                setattr(card, name, value)
        return {**given, "agent_card": card}

    return _run(changed)


# An application runs in a process of its own, so that its signals end it.
IN_PROCESSES: Mapping[str, Mutate] = {
    "ignore_the_card": _run(lambda given: {**given, "agent_card": None}),
    "rename_the_card": _card(name="agent"),
    "change_the_description_of_the_card": _card(description="An agent."),
    "listen_at_another_host": _run(lambda given: {**given, "host": "127.0.0.9"}),
    "listen_at_every_host": _run(lambda given: {**given, "host": "0.0.0.0"}),
    "listen_at_another_port": _another_port,
}


def _in_processes(name: str) -> Mutate:
    """Break an application that a check starts as a process."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        here = Path(__file__).parent
        patch.setenv("PYTHONPATH", f"{here / 'in_processes'}{os.pathsep}{here.parents[1]}")
        patch.setenv("MUTANT", f"{__name__}:{name}")

    return mutant


MUTANTS: tuple[Mutant, ...] = (
    *(Mutant(name, "DEC-01", sentence, change) for name, sentence, change in ENTRYPOINT),
    *(Mutant(name, "DEC-02", sentence, change) for name, sentence, change in PINGS),
    *(Mutant(name, "DEC-03", PLANNED, change) for name, change in TASKS),
    *(Mutant(name, "DEC-04", sentence, change) for name, sentence, change in TOOLS),
    *(Mutant(name, "DEC-05", sentence, change) for name, sentence, change in EXECUTORS),
    *(Mutant(name, "DEC-06", sentence, change) for name, sentence, change in STORES),
    *(Mutant(name, "A2A-05", RUNS, _in_processes(name)) for name in IN_PROCESSES),
)
