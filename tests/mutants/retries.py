"""Mutants that mistake a request for an earlier one, or remember one that failed or broke off."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.errors import RefusedError
from doublecheck.wire import a2a
from tests.mutants import Witnessed, agents, application, protocols, sandbox, wire, witnesses
from tests.mutants.callers import Key, session_of, session_of_run
from tests.mutants.changes import always, at
from tests.mutants.wire import Answer, Ask, Change, Matches, Request
from tests.mutants.witnesses import numbered, require

# ---- seen before


def first_answer(matches: Matches, key: Key) -> Change:
    """Answer a request with the first answer that was given for its key; None is no key."""
    answers: dict[Any, Answer] = {}

    async def answer(request: Request, ask: Ask) -> Answer:
        name = key(request)
        if name not in answers:
            answers[name] = await ask(request)
        first = answers[name]
        return replace(first, headers=dict(first.headers))

    return Change(lambda request: matches(request) and key(request) is not None, around=answer)


def first_result(matches: Matches, key: Key) -> Change:
    """Answer a JSON-RPC request with the first result that was given for its key."""
    change = first_answer(matches, key)

    async def answer(request: Request, ask: Ask) -> Answer:
        assert change.around is not None
        first = await change.around(request, ask)
        if first.json is not None:
            first.set(first.status, {**first.json, "id": request.json["id"]})
        return first

    return replace(change, around=answer)


def request_id(request: Request) -> Any:
    """Return the id of a request, if it has one and wants no stream."""
    return request.path, request.headers["request_id"]


def with_request_id(route: str) -> Matches:
    """Return a matcher of requests with an id."""
    of_route = wire.routed(route)
    return lambda request: of_route(request) and "request_id" in request.headers


def repeated_code(language: str) -> Change:
    """Answer a repeated code of a language with the first result of the session."""

    def is_of(request: Request) -> bool:
        return wire.action(sandbox.INVOKE)(request) and language.encode() in request.body

    return first_answer(
        is_of, lambda request: (session_of(request), request.json["OperationPayload"])
    )


def with_body(request: Request) -> Any:
    """Return the tool and the arguments of a call that has a body for its backend."""
    arguments = request.json["params"].get("arguments") or {}
    has_body = any(isinstance(value, dict) for value in arguments.values())
    name = protocols.name_of(request)
    return (request.path, name, json.dumps(arguments)) if has_body else None


def doubled_upload() -> Change:
    """Append an upload to an equal one before it."""
    contents: dict[Any, bytes] = {}

    def change(request: Request) -> None:
        path, file = sandbox.PATH.search(request.body), sandbox.PART.search(request.body)
        if path is None or file is None:
            return
        name, content = (str(request.query), path[2]), file[2]
        if contents.get(name) == content:
            request.body = sandbox.PART.sub(
                lambda match: match[1] + content + content + match[3], request.body, count=1
            )
        contents[name] = content

    return wire.requested(sandbox.UPLOAD, change)


def repeated_failure() -> Change:
    """Report a failure of repeated code as a success."""
    seen: set[Any] = set()

    def change(value: Any) -> Any:
        name = value["data"]["session_id"], value["data"]["code"]
        repeated = name in seen and sandbox.failed(value)
        seen.add(name)
        return (
            sandbox.succeeds(at("data.outputs", sandbox.without("error"))(value))
            if repeated
            else value
        )

    return sandbox.inner(change)


# ---- refused, but done


def created_again(*, empties: bool) -> Change:
    """Delete a session whose creation is refused because it exists, and perhaps create it again."""

    async def create(request: Request, ask: Ask) -> Answer:
        answer = await ask(replace(request))
        if answer.status >= 400:
            await ask(replace(request, method="DELETE", body=b""))
            if empties:
                await ask(replace(request))
        return answer

    return wire.around(agents.NAMED, create)


def deleted_twice() -> Change:
    """Delete another session of the user if one is deleted again."""
    deleted: set[str] = set()

    async def delete(request: Request, ask: Ask) -> Answer:
        if request.path in deleted:
            sessions = request.path.rpartition("/")[0]
            listed = (await ask(replace(request, method="GET", path=sessions))).json or []
            for session in listed[-1:]:
                await ask(replace(request, path=f"{sessions}/{session['id']}"))
        deleted.add(request.path)
        return await ask(request)

    return wire.around(agents.DELETE, delete)


# ---- after a stream that broke off


def rest(route: str, key: Key) -> list[Change]:
    """Send the last event of a stream that broke off at the beginning of the next one."""
    open_streams: dict[Any, list[bytes]] = {}

    def event(raw: bytes, request: Request) -> list[bytes]:
        begins = "events" not in request.state
        before = open_streams.pop(key(request), []) if begins else []
        events = request.state.setdefault("events", [])
        events.append(raw)
        open_streams[key(request)] = events
        return [*before[-1:], raw]

    def end(request: Request) -> list[bytes]:
        open_streams.pop(key(request), None)
        return []

    return [Change(wire.routed(route), event=event, end=end)]


def after_breaking_off(route: str, key: Key, change: Change) -> list[Change]:
    """Apply a change once after a stream has broken off, by key."""
    open_streams: set[Any] = set()

    def event(raw: bytes, request: Request) -> list[bytes]:
        open_streams.add(key(request))
        return [raw]

    def end(request: Request) -> list[bytes]:
        open_streams.discard(key(request))
        return []

    def matches(request: Request) -> bool:
        if not change.matches(request) or key(request) not in open_streams:
            return False
        open_streams.discard(key(request))
        return True

    stream = Change(wire.routed(route), event=event, end=end)
    return [replace(change, matches=matches), stream]


def session_header(request: Request) -> str:
    """Return the session of an invocation."""
    return request.header("session_id")


# ---- witnesses


def same_request_id(platform: Platform) -> None:
    """Send two payloads with one request id."""
    for text in ("first", "second"):
        require(text, platform.invoke(text, do="say", request_id="the-same"))


def same_request_id_at_a_runtime(platform: Platform) -> None:
    """Send a runtime two payloads with one request id."""
    with witnesses.hosted(platform) as runtime:
        same_request_id(runtime)


def refused_creation(platform: Platform) -> None:
    """Create a session again, and read its history."""
    session = witnesses.named(platform, witnesses.new_id(), "kept")
    witnesses.said(platform, session, "hello")
    try:
        witnesses.named(platform, session.user_id, session.id)
    except RefusedError:
        require(["hello", "hello"], witnesses.history(platform, session))


def second_deletion(platform: Platform) -> None:
    """Delete a session twice, and read another one."""
    user = witnesses.new_id()
    first, second = (witnesses.session_of(platform, user) for _ in range(2))
    platform.agents.delete(first)
    try:
        platform.agents.delete(first)
    except RefusedError as error:
        require(404, error.status)
    platform.agents.get(witnesses.AGENT, second.id, user_id=user)


def stream_after_a_broken_one(platform: Platform) -> None:
    """Break off a stream, and read another one of the session."""
    fields = {"do": "stream", "gate": witnesses.new_id(), "within_s": 0.2}
    events = platform.stream("", chunks=["old", "rest"], session_id="broken", **fields)
    with closing(events):
        next(events)
    require(numbered(3), witnesses.strings(platform, numbered(3), session_id="broken"))


def string_after_a_broken_stream(platform: Platform) -> None:
    """Break off a stream, and invoke the application in its session."""
    fields = {"do": "stream", "gate": witnesses.new_id(), "within_s": 0.2}
    events = platform.stream("", chunks=["old", "rest"], session_id="broken", **fields)
    with closing(events):
        next(events)
    require("hello", platform.invoke("hello", do="say", session_id="broken"))


def run_after_a_broken_one(platform: Platform) -> None:
    """Break off a streamed turn, and stream the next one of the session."""
    session = witnesses.session_of(platform)
    order = json.dumps({"do": "stream", "chunks": ["old", "rest"], "gate": session.id})
    with closing(platform.agents.run_sse(session, order, streaming=True)) as events:
        next(events)
    require(numbered(3), witnesses.stream(platform, session, "events", texts=numbered(3)))


def repeated_message(platform: Platform) -> None:
    """Send a message twice in a session."""
    session = witnesses.session_of(platform)
    heard = [json.loads(witnesses.run(platform, session, "history")[-1].text) for _ in range(2)]
    require([1, 2], [len(messages) for messages in heard])


def repeated_rpc_id(platform: Platform) -> None:
    """Send two messages with one JSON-RPC id."""
    card = a2a.card(platform.target, a2a.PATH)
    agent = card.read(platform.send(card.request))
    for text in ("first", "second"):
        request = a2a.send(agent, text).request
        body = {**json.loads(request.content), "id": 1}
        answer = platform.send(replace(request, content=json.dumps(body).encode()))
        require([text], [*a2a.read_answer(answer).texts])


def repeated_call(platform: Platform) -> None:
    """Call an operation twice with the same body."""
    with witnesses.things(platform) as (client, api):
        for _ in range(2):
            witnesses.fulfilled(client.call("addThing", body={"name": "tea"}))
        require(2, len(api.asked))


def repeated_javascript(platform: Platform) -> None:
    """Count in JavaScript, with the same code."""
    box, code = witnesses.box_of(platform), "globalThis.n = (globalThis.n ?? 0) + 1; console.log(n)"
    require(["1\n", "2\n"], [witnesses.printed(box, code, "javascript") for _ in range(2)])


def repeated_code_that_fails(platform: Platform) -> None:
    """Run code that fails, twice."""
    box = witnesses.box_of(platform)
    for _ in range(2):
        assert box.run("1 / 0").error is not None


def repeated_upload(platform: Platform) -> None:
    """Upload a file twice."""
    box = witnesses.box_of(platform)
    for _ in range(2):
        box.upload("/tmp/file", b"content")
    assert box.download("/tmp/file") == b"content"


def cut_string() -> Change:
    """Return an empty string."""
    return application.string(always(""))


TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {
        "answer_a_request_id_seen_before_with_the_first_answer": Witnessed(
            first_answer(with_request_id(application.INVOKE), request_id), same_request_id
        )
    },
    "INV-04": {
        "lose_the_string_after_a_stream_that_broke_off": Witnessed(
            after_breaking_off(application.INVOKE, session_header, cut_string()),
            string_after_a_broken_stream,
        )
    },
    "INV-05": {
        "begin_with_the_rest_of_a_stream_that_broke_off": Witnessed(
            rest(application.INVOKE, session_header), stream_after_a_broken_one
        )
    },
    "HST-05": {
        "answer_a_request_id_seen_before_with_the_first_answer": Witnessed(
            first_answer(with_request_id(application.HOSTED), request_id),
            same_request_id_at_a_runtime,
        )
    },
    "API-03": {
        "delete_a_session_that_is_created_again": Witnessed(
            created_again(empties=False), refused_creation
        )
    },
    "API-05": {
        "empty_a_session_that_is_created_again": Witnessed(
            created_again(empties=True), refused_creation
        )
    },
    "API-06": {
        "delete_another_session_the_second_time": Witnessed(deleted_twice(), second_deletion)
    },
    "API-08": {
        "begin_with_the_rest_of_a_stream_that_broke_off": Witnessed(
            rest(agents.STREAM, session_of_run), run_after_a_broken_one
        )
    },
    "API-17": {
        "answer_a_repeated_message_as_before": Witnessed(
            first_answer(wire.routed(agents.RUN), lambda request: request.body), repeated_message
        )
    },
    "A2A-02": {
        "answer_a_rpc_id_seen_before_with_the_first_task": Witnessed(
            [
                first_answer(wire.rpc(method), lambda request: str(request.json["id"]))
                for method in protocols.SEND
            ],
            repeated_rpc_id,
        )
    },
    "SVC-02": {
        "answer_a_repeated_body_from_a_cache": Witnessed(
            first_result(wire.rpc("tools/call", protocols.SERVICE), with_body), repeated_call
        )
    },
    "SBX-06": {
        "tell_a_repeated_failure_as_success": Witnessed(
            repeated_failure(), repeated_code_that_fails
        )
    },
    "SBX-08": {
        "answer_repeated_javascript_from_a_cache": Witnessed(
            repeated_code("javascript"), repeated_javascript
        )
    },
    "SBX-10": {"append_a_repeated_upload": Witnessed(doubled_upload(), repeated_upload)},
}
