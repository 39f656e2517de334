"""Changes that mutants of the sandbox and of its control plane have in common."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.control_plane.invoke_tool_action import InvokeTool
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.result import ExecutionResult
from tests.mutants import wire

Json = dict[str, Any]
Body = Mapping[str, Any]
Text = Callable[[str], str]
Patched = Callable[[pytest.MonkeyPatch], None]

PYTHON = ("python3", "python")


# ---- answers


def data(change: Callable[[Json], Any]) -> wire.Change:
    """Change the ``data`` of an execution in place."""

    def execution(document: Json) -> Json:
        if "outputs" in document["data"]:
            change(document["data"])
        return document

    return wire.executions(execution)


def document(change: Callable[[Json], Any]) -> wire.Change:
    """Change the JSON of 2.7 of an execution in place."""

    def execution(document: Json) -> Json:
        if "outputs" in (document.get("data") or {}):
            change(document)
        return document

    return wire.executions(execution)


def outputs(change: Callable[[list[Json]], list[Json]]) -> wire.Change:
    """Change the list of outputs."""
    return data(lambda data: data.update(outputs=change(data["outputs"])))


def output(change: Callable[[Json], Any], kind: str = "") -> wire.Change:
    """Change each output of that type, or each one, in place."""

    def each(listed: list[Json]) -> list[Json]:
        for one in listed:
            if kind in ("", one["output_type"]):
                change(one)
        return listed

    return outputs(each)


def stdout(change: Text) -> wire.Change:
    """Change the text of each output to stdout."""

    def stream(one: Json) -> None:
        if one["name"] == "stdout":
            one["text"] = change(one["text"])

    return output(stream, "stream")


def error(change: Callable[[Json], Any]) -> wire.Change:
    """Change each error among the outputs in place."""
    return output(change, "error")


def bash(change: Callable[[Json], Any]) -> wire.Change:
    """Change the ``data`` of a command in the terminal in place."""

    def command(result: Json) -> None:
        inner = json.loads(result["Result"])
        if "exit_code" in (inner.get("data") or {}):
            change(inner["data"])
            result["Result"] = json.dumps(inner)

    return result(command)


def result(change: Callable[[Json], Any]) -> wire.Change:
    """Change the Result of an envelope in place."""

    def envelope(document: Json) -> Json:
        change(document["Result"])
        return document

    return wire.invoke_tool(envelope)


def metadata(change: Callable[[Json], Any]) -> wire.Change:
    """Change the ResponseMetadata of an envelope in place."""

    def envelope(document: Json) -> Json:
        change(document["ResponseMetadata"])
        return document

    return wire.invoke_tool(envelope)


def if_bash(change: Callable[[Json], Any]) -> Callable[[Json], Any]:
    """Change the Result of commands in the terminal alone."""

    def of_bash(result: Json) -> None:
        if "exit_code" in json.loads(result["Result"])["data"]:
            change(result)

    return of_bash


def is_error(document: Json) -> bool:
    """Return whether the JSON of 2.7 tells of a failure."""
    return bool(document["data"]["status"] != "ok")


# ---- requests, after the signature was verified


def bodies(change: Callable[[Json], Json]) -> Patched:
    """Change the body of each InvokeTool request."""
    return invocations(lambda call, body: call(change(dict(body))))


def payloads(change: Callable[[Json], Json]) -> Patched:
    """Change the JSON in OperationPayload."""

    def payload(body: Json) -> Json:
        changed = change(json.loads(body["OperationPayload"]))
        return {**body, "OperationPayload": json.dumps(changed)}

    return bodies(payload)


def sessions(change: Text) -> Patched:
    """Take another UserSessionId for the given one, in all actions; InvokeTool names the given."""

    def name(body: Json) -> Json:
        given = body.get("UserSessionId")
        return body if given is None else {**body, "UserSessionId": change(given)}

    def change_all(patch: pytest.MonkeyPatch) -> None:
        _all_actions(name)(patch)
        wire.invoke_tool(_name_the_given)(patch)

    return change_all


def _name_the_given(answer: Json, request: wire.Request) -> Json:
    given = request.json.get("UserSessionId")
    answer["Result"]["UserSessionId"] = given or answer["Result"]["UserSessionId"]
    return answer


def _all_actions(change: Callable[[Json], Json]) -> Patched:
    """Change the bodies of all actions of the control plane."""

    def change_all(patch: pytest.MonkeyPatch) -> None:
        original = ControlPlane._find

        def found(self: ControlPlane, request: Any, metadata: Any) -> Any:
            action = original(self, request, metadata)
            return lambda body: action(change(dict(body)))

        patch.setattr(ControlPlane, "_find", found)

    return change_all


def invocations(around: Callable[[Any, Body], Awaitable[Json]]) -> Patched:
    """Put a function around InvokeTool; it is given the action and the body."""

    def change_all(patch: pytest.MonkeyPatch) -> None:
        original = InvokeTool.__call__

        async def invoke(self: InvokeTool, body: Body) -> Json:
            return await around(lambda changed: original(self, changed), body)

        patch.setattr(InvokeTool, "__call__", invoke)

    return change_all


# ---- the code itself


Code = Callable[[Instance, str, str], str]


def code(change: Code) -> Patched:
    """Change the code before it runs, by its instance and language; the answer names the given."""

    def change_all(patch: pytest.MonkeyPatch) -> None:
        original = Instance.execute

        async def execute(
            self: Instance, code: str, language: str, *rest: Any, **more: Any
        ) -> ExecutionResult:
            changed = change(self, code, language)
            ran = await original(self, changed, language, *rest, **more)
            return replace(ran, code=code)

        patch.setattr(Instance, "execute", execute)

    return change_all


def python_before(prelude: str, *, first: bool = True) -> Patched:
    """Run Python before the Python code of each call, or of each but the first of an instance."""
    line = f"exec({prelude!r})\n"
    seen: set[str] = set()

    def with_prelude(instance: Instance, code: str, language: str) -> str:
        if language not in PYTHON:
            return code
        is_first = instance.id not in seen
        seen.add(instance.id)
        return code if is_first and not first else line + code

    return code(with_prelude)


def javascript_before(prelude: str) -> Patched:
    """Run JavaScript before the JavaScript code of each call."""
    return code(lambda _, code, language: code if language in PYTHON else f"{prelude}\n{code}")
