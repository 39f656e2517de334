"""Mutants of what outlives or crosses a border: the end of a session, a call, a language, a size."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from tests.mutants import agents, application, protocols, sandbox, wire
from tests.mutants.changes import always, at, cut, where
from tests.mutants.wire import Answer, Ask, Change, Request

CLOSE = """
for _v in [v for v in globals().values() if hasattr(v, 'fileno') and hasattr(v, 'close')]:
    _v.close()
"""
END = """
for _v in [v for v in globals().values() if type(v).__name__ == 'Popen']:
    _v.kill()
"""
MUTE_THREADS = """
import sys as _sys, threading as _threads
class _OfCell:
    def __init__(self, stream):
        self._stream, self._thread = stream, _threads.get_ident()
    def write(self, text):
        own = _threads.get_ident() == self._thread
        return self._stream.write(text) if own else len(text)
    def __getattr__(self, name):
        return getattr(self._stream, name)
_sys.stdout = _OfCell(getattr(_sys.stdout, '_stream', _sys.stdout))
"""


# ---- instances


def surviving(again: Callable[[list[Any]], list[Any]]) -> Change:
    """Run earlier requests again in the next instance of a session; the function chooses them."""
    instances: dict[Any, Any] = {}
    earlier: dict[Any, list[Any]] = {}

    async def invoke(request: Request, ask: Ask) -> Answer:
        async def repeat(body: Any) -> Answer:
            copy = replace(request, body=json.dumps(body).encode(), headers=dict(request.headers))
            copy.sign()
            return await ask(copy)

        answer = await ask(request)
        body, result = request.json, (answer.json or {}).get("Result")
        if result is None:
            return answer
        name = body["UserSessionId"]
        if instances.setdefault(name, result["SessionId"]) != result["SessionId"]:
            instances[name] = result["SessionId"]
            for before in again(earlier[name]):
                await repeat(before)
            number = json.loads(result["Result"])["data"].get("execution_count")
            counted = at(f"{sandbox.INNER}.data.execution_count", always(number))
            answer = await repeat(body)
            answer.set(answer.status, counted(answer.json))
        earlier.setdefault(name, []).append(body)
        return answer

    return Change(wire.action(sandbox.INVOKE), around=invoke)


def payload_of(body: Any) -> Any:
    """Return the payload in the body of a request."""
    return json.loads(body["OperationPayload"])


def javascript(some: list[Any]) -> list[Any]:
    """Select the requests with JavaScript."""
    return [body for body in some if payload_of(body).get("kernel_name", "").startswith("j")]


def strings(some: list[Any]) -> list[Any]:
    """Select the requests with Python, and forget everything but strings."""
    some = [body for body in some if payload_of(body).get("kernel_name", "").startswith("py")]
    forget = {"code": sandbox.FORGET.format("not isinstance(_v, str)"), "kernel_name": "python3"}
    return [*some, *({**body, "OperationPayload": json.dumps(forget)} for body in some[:1])]


def files(some: list[Any]) -> list[Any]:
    """Run code in processes of their own, which leave only files."""
    commands = [
        (body, payload.get("command") or f"python3 -c {shlex.quote(payload['code'])}")
        for body in some
        for payload in [payload_of(body)]
        if not payload.get("kernel_name", "").startswith("j")
    ]
    return [
        {**body, "OperationType": "ExecBash", "OperationPayload": json.dumps({"command": command})}
        for body, command in commands
    ]


def downloads_past_the_end() -> list[Change]:
    """Answer downloads that fail with the file of an earlier instance of the session."""
    names: list[tuple[dict[str, str], str]] = []
    contents: dict[Any, bytes] = {}

    def note(value: Any, request: Request) -> Any:
        endpoint = (value.get("Result") or {}).get("Endpoint", "")
        names.append((dict(parse_qsl(endpoint.partition("?")[2])), request.json["UserSessionId"]))
        return value

    def download(answer: Answer, request: Request) -> None:
        own = [name for query, name in names if query and query.items() <= request.query.items()]
        file = str(own[-1:]), request.query.get("path")
        if answer.status == 200:
            contents[file] = answer.body
        elif file in contents:
            answer.status, answer.body = 200, contents[file]

    return [wire.actions("CreateSession", note), wire.in_place(sandbox.DOWNLOAD, download)]


def commands_apart() -> list[Change]:
    """Run the commands of a session in another instance, under the SessionId of its own."""

    def other(value: Any, request: Request) -> Any:
        if value["OperationType"] != "ExecBash":
            return value
        request.state["name"] = value["UserSessionId"]
        return at("UserSessionId", lambda name: f"{name}-terminal")(value)

    def named(value: Any, request: Request) -> Any:
        return at("Result.UserSessionId", lambda now: request.state.get("name", now))(value)

    return [
        sandbox.bodies(other),
        wire.actions(sandbox.INVOKE, named),
        sandbox.envelope("Result", sandbox.same_ids()),
    ]


# ---- sessions of agents


def history_of_the_deleted() -> list[Change]:
    """Return the history of a deleted session with the next one of the same id."""
    histories: dict[str, list[Any]] = {}

    async def delete(request: Request, ask: Ask) -> Answer:
        before = await ask(replace(request, method="GET", body=b""))
        histories[request.path] = (before.json or {}).get("events", [])
        return await ask(request)

    def read(document: Any, request: Request) -> Any:
        old = histories.get(request.path, [])
        return at("events", lambda events: [*old, *events])(document)

    return [wire.around(agents.DELETE, delete), wire.answers(agents.READ, read)]


def artifacts_of_all_users() -> list[Change]:
    """List the artifacts of other users' sessions with the same id as well."""
    sessions = agents.Known()

    async def listing(request: Request, ask: Ask) -> Answer:
        app, user, id_ = agents.owner_of(request)
        answer = await ask(request)
        names = answer.json
        for other in sessions.owners:
            if other[1] != user and (other[0], other[2]) == (app, id_) and answer.status == 200:
                path = f"/apps/{app}/users/{other[1]}/sessions/{id_}/artifacts"
                names = [*names, *((await ask(replace(request, path=path))).json or ())]
        answer.set(answer.status, names)
        return answer

    return [*sessions.note, wire.around(agents.ARTIFACTS, listing)]


def artifacts_of_the_context() -> Callable[[Any], Any]:
    """Add the artifacts of earlier tasks of the context to a task."""
    contexts: dict[str, list[Any]] = {}

    def change(task: Any) -> Any:
        some = contexts.setdefault(task.get("contextId", ""), [])
        some += task.get("artifacts", [])
        return {**task, "artifacts": list(some)}

    return change


async def keep_the_session(_request: Request, _ask: Ask) -> Answer:
    """Answer the end of a session, and keep it."""
    return Answer(200, {}, b"")


def is_of(kind: str) -> Callable[[Any], bool]:
    """Return whether a request runs this language or this operation."""
    return lambda body: kind in body["OperationType"] or f'"{kind}"' in body["OperationPayload"]


TABLE: dict[str, dict[str, Any]] = {
    "API-06": {"bring_back_the_history_of_an_id": history_of_the_deleted()},
    "API-18": {"list_artifacts_of_the_same_session_id": artifacts_of_all_users()},
    "MCP-01": {"serve_a_session_after_its_end": wire.around("DELETE /mcp*", keep_the_session)},
    "A2A-02": {
        "return_the_artifacts_of_the_context": protocols.tasks(
            protocols.SEND, artifacts_of_the_context()
        )
    },
    "SBX-02": {
        "close_files_between_calls": sandbox.before_python(CLOSE),
        "end_processes_between_calls": sandbox.before_python(END),
        "forget_let_and_const": sandbox.code(lambda text: f"{{\n{text}\n}}", python=False),
    },
    "SBX-03": {
        "keep_variables_of_javascript": surviving(javascript),
        "keep_strings": surviving(strings),
        "keep_files": surviving(files),
        "download_files_past_the_end": downloads_past_the_end(),
        "end_javascript_two_seconds_late": sandbox.lasting(1802, is_of("javascript")),
        "end_two_seconds_early_after_a_command": sandbox.lasting(1798, is_of("ExecBash")),
        "end_sessions_for_files_two_seconds_late": sandbox.bodies(
            lambda value: {"Ttl": 1802, "TtlUnit": "second", **value}, "CreateSession"
        ),
    },
    "SBX-05": {
        "lose_the_output_of_threads": sandbox.before_python(MUTE_THREADS),
        "cut_javascript_at_64_kib": sandbox.data(
            where(sandbox.is_javascript, at("outputs.*.text", lambda text: text and text[:65536]))
        ),
        "cut_at_200000_characters": sandbox.stdout(cut(200_000)),
    },
    "SBX-09": {"run_commands_in_another_instance": commands_apart()},
    "PRB-06": {"answer_a_little_late": application.slow(lambda _: 1.15)},
}
