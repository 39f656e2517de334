"""Mutants that mix up callers at the same moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

from tests.mutants import agents, application, protocols, sandbox, wire
from tests.mutants.changes import always, at, nothing
from tests.mutants.wire import Answer, Ask, Change, Matches, Request

PATIENCE_S = 0.2  # how long a request waits for another one
Exchange = Callable[[Request, Request], None]
Key = Callable[[Request], Any]
Later = Callable[[Request, Ask, Awaitable[Answer]], Awaitable[Answer]]


# ---- two at once


def meeting(matches: Matches, change: Exchange, *, key: Key = nothing, both: bool = True) -> Change:
    """Change requests that meet another one; the function takes a request and the other.

    The first one waits a moment for the second. Without ``both`` only the second is changed.
    """
    waiting: dict[Any, tuple[Request, asyncio.Future[Request]]] = {}

    async def meet(request: Request) -> None:
        own = replace(request, headers=dict(request.headers))
        first = waiting.pop(key(request), None)
        if first is not None:
            other, future = first
            future.set_result(own)
            change(request, other)
            return
        future = asyncio.get_running_loop().create_future()
        waiting[key(request)] = own, future
        await asyncio.wait({future}, timeout=PATIENCE_S)
        if not future.done():
            del waiting[key(request)]
        elif both:
            change(request, future.result())

    return Change(matches, request=meet)


def overlapping(matches: Matches, later: Later, *, key: Key = nothing) -> Change:
    """Answer requests that arrive during another one with a function, which takes its answer too."""
    running: dict[Any, asyncio.Task[Answer]] = {}

    async def answer(request: Request, ask: Ask) -> Answer:
        name = key(request)
        if name in running:
            return await later(request, ask, running[name])

        async def late() -> Answer:
            await asyncio.sleep(PATIENCE_S)
            return await ask(request)

        running[name] = asyncio.create_task(late())
        try:
            return await running[name]
        finally:
            del running[name]

    return Change(matches, around=answer)


# ---- what is exchanged


def body(request: Request, other: Request) -> None:
    """Take the body of the other request."""
    request.body = other.body


def path(request: Request, other: Request) -> None:
    """Take the path of the other request."""
    request.path = other.path


def header(name: str) -> Exchange:
    """Take a header of the other request, if both have it."""

    def change(request: Request, other: Request) -> None:
        if name in request.headers and name in other.headers:
            request.headers[name] = other.headers[name]

    return change


def fields(*paths: str) -> Exchange:
    """Take the values at paths in the JSON of the other request."""

    def change(request: Request, other: Request) -> None:
        document = request.json
        for path in paths:
            try:
                value = reduce(getitem, path.split("."), other.json)
            except (KeyError, TypeError):
                return
            document = at(path, always(value))(document)
        request.body = json.dumps(document).encode()
        if "Action" in request.query:
            request.sign()

    return change


def of_other_sessions(change: Exchange) -> Exchange:
    """Change only requests of different sandbox sessions."""

    def changed(request: Request, other: Request) -> None:
        if session_of(request) != session_of(other):
            change(request, other)

    return changed


def content(request: Request, other: Request) -> None:
    """Take the content of the other upload."""
    file = sandbox.PART.search(other.body)
    if file is not None:
        request.body = sandbox.PART.sub(lambda m: m[1] + file[2] + m[3], request.body, count=1)


def note(request: Request, other: Request) -> None:
    """Note the other request."""
    request.state["other"] = other


def session_of(request: Request) -> Any:
    """Return the sandbox session of a request."""
    return (request.json or {}).get("UserSessionId")


def session_of_run(request: Request) -> Any:
    """Return the session of a run."""
    return (request.json or {}).get("sessionId")


def any_of(methods: tuple[str, ...]) -> Matches:
    """Return a matcher of requests for a method of either version of A2A."""
    matchers = [wire.rpc(method) for method in methods]
    return lambda request: any(matches(request) for matches in matchers)


# ---- streams


def broadcast() -> list[Change]:
    """Send the strings of a stream to a stream at the same moment as well."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        if "other" in request.state:
            request.state["other"].state.setdefault("more", []).append(raw)
        return [*waiting(request), raw]

    def waiting(request: Request) -> list[bytes]:
        return list(request.state.pop("more", ()))

    return [
        meeting(wire.routed(application.INVOKE), note),
        Change(wire.routed(application.INVOKE), event=event, end=waiting),
    ]


# ---- answers to the second


async def first_answer(_request: Request, _ask: Ask, first: Awaitable[Answer]) -> Answer:
    """Answer as the first request."""
    return await first


async def as_created(request: Request, ask: Ask, first: Awaitable[Answer]) -> Answer:
    """Return a named session that was not created."""
    created = await first
    if created.status >= 300:
        return await ask(request)
    answer = replace(created, headers=dict(created.headers))
    answer.set(created.status, {**created.json, "id": agents.owner_of(request)[2], "events": []})
    return answer


async def in_new_session(request: Request, ask: Ask, _first: Awaitable[Answer]) -> Answer:
    """Run the turn in a session of its own."""
    return await agents.run_anew(request, ask)


def two_instances() -> Change:
    """Create an instance for each of two first calls of a session at once."""
    names: set[str] = set()

    async def second(request: Request, ask: Ask, _first: Awaitable[Answer]) -> Answer:
        name = session_of(request)
        if name in names:
            return await ask(request)
        request.body = json.dumps({**request.json, "UserSessionId": f"{name}-2"}).encode()
        request.sign()
        answer = await ask(request)
        if answer.status == 200:
            answer.set(200, at("Result.UserSessionId", always(name))(answer.json))
        return answer

    change = overlapping(wire.action(sandbox.INVOKE), second, key=session_of)

    async def answer(request: Request, ask: Ask) -> Answer:
        assert change.around is not None
        name = session_of(request)
        result = await change.around(request, ask)
        names.add(name)
        return result

    return replace(change, around=answer)


def other_name(value: Any, request: Request) -> Any:
    """Return the name of the session in the other request."""
    other = request.state.get("other")
    return at("Result.UserSessionId", lambda name: session_of(other) if other else name)(value)


def counted_twice(value: Any, request: Request) -> Any:
    """Count the execution of another session as well."""
    more = "other" in request.state
    return at(f"{sandbox.INNER}.data.execution_count", lambda number: number + more)(value)


def method_and_tool(request: Request) -> Any:
    """Return the path and the tool of a call."""
    return request.path, protocols.name_of(request)


PAYLOAD = fields("OperationPayload", "OperationType")
CALLS, SERVICE_CALLS = (
    wire.rpc("tools/call", "POST /mcp"),
    wire.rpc("tools/call", protocols.SERVICE),
)
TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {"swap_the_payloads_of_two_callers": meeting(wire.routed(application.INVOKE), body)},
    "INV-02": {
        "swap_the_users_of_two_callers": meeting(wire.routed(application.INVOKE), header("user_id"))
    },
    "INV-04": {
        "answer_the_second_caller_as_the_first": meeting(
            wire.routed(application.INVOKE), body, both=False
        )
    },
    "INV-05": {"send_strings_to_another_stream": broadcast()},
    "INV-09": {
        "use_the_sandbox_of_another_caller": meeting(
            wire.routed(application.INVOKE), header("session_id")
        )
    },
    "HST-01": {
        "swap_sessions_of_a_runtime": meeting(wire.routed(application.HOSTED), header("session_id"))
    },
    "API-02": {
        "create_one_session_for_two_callers": overlapping(wire.routed(agents.CREATE), first_answer)
    },
    "API-03": {
        "create_one_of_two_named_sessions": overlapping(wire.routed(agents.NAMED), as_created)
    },
    "API-05": {"swap_the_sessions_of_two_readers": meeting(wire.routed(agents.READ), path)},
    "API-06": {"delete_one_of_two_sessions": overlapping(wire.routed(agents.DELETE), first_answer)},
    "API-07": {
        "swap_the_messages_of_two_runs": meeting(wire.routed(agents.RUN), fields("newMessage"))
    },
    "API-08": {
        "swap_the_messages_of_two_streams": meeting(
            wire.routed(agents.STREAM), fields("newMessage")
        )
    },
    "API-17": {
        "lose_one_of_two_turns": overlapping(
            wire.routed(agents.RUN), in_new_session, key=session_of_run
        )
    },
    "API-18": {
        "run_in_the_session_of_another_user": meeting(
            wire.routed(agents.RUNS), fields("userId", "sessionId")
        )
    },
    "AUT-03": {
        "take_the_second_caller_for_the_first": meeting(
            wire.routed("* /runtimes/{name}/*"),
            header("authorization"),
            key=agents.runtime_of,
            both=False,
        )
    },
    "MCP-01": {
        "swap_answers_with_the_same_id": meeting(
            SERVICE_CALLS, fields("params"), key=lambda request: request.json.get("id")
        )
    },
    "MCP-03": {
        "swap_the_arguments_of_two_calls": meeting(CALLS, fields("params"), key=method_and_tool)
    },
    "MCP-05": {
        "answer_the_second_call_as_the_first": meeting(
            CALLS, fields("params"), key=method_and_tool, both=False
        )
    },
    "SVC-02": {
        "swap_the_arguments_of_two_calls": meeting(
            SERVICE_CALLS, fields("params"), key=method_and_tool
        )
    },
    "A2A-02": {
        "swap_the_messages_of_two_callers": meeting(
            any_of(protocols.SEND), fields("params.message.parts")
        )
    },
    "A2A-03": {
        "swap_the_messages_of_two_streams": meeting(
            any_of(protocols.STREAM), fields("params.message.parts")
        )
    },
    "A2A-04": {
        "swap_the_tasks_of_two_callers": meeting(any_of(protocols.GET_TASK), fields("params.id"))
    },
    "CTL-01": {
        "name_the_session_of_another_caller": [
            meeting(wire.action(sandbox.INVOKE), note),
            wire.actions(sandbox.INVOKE, other_name),
        ]
    },
    "SBX-02": {"create_two_instances_for_two_first_calls": two_instances()},
    "SBX-04": {
        "run_the_code_of_another_session": meeting(
            wire.action(sandbox.INVOKE), of_other_sessions(PAYLOAD)
        )
    },
    "SBX-07": {
        "count_an_execution_of_another_session": [
            meeting(wire.action(sandbox.INVOKE), of_other_sessions(note)),
            wire.actions(sandbox.INVOKE, counted_twice),
        ]
    },
    "SBX-09": {
        "swap_two_commands_of_a_session": meeting(
            lambda request: wire.action(sandbox.INVOKE)(request) and b"ExecBash" in request.body,
            PAYLOAD,
            key=session_of,
        )
    },
    "SBX-10": {"swap_the_contents_of_two_uploads": meeting(wire.routed(sandbox.UPLOAD), content)},
}
