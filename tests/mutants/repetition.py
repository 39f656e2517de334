"""Mutants that fail only the n-th time, or after something else has happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from tests.mutants import agents, application, protocols, sandbox, wire
from tests.mutants.callers import Key, session_of, session_of_run
from tests.mutants.changes import always, drop, every, nothing, put
from tests.mutants.wire import Answer, Ask, Change, Headers, Request

Note = Callable[[Request], None]


# ---- when


def nth(change: Change, number: Callable[[int], bool], key: Key = nothing) -> Change:
    """Apply a change only to requests whose number, from 1, is selected; numbers are by key."""
    numbers: Counter[Any] = Counter()

    def matches(request: Request) -> bool:
        if not change.matches(request):
            return False
        name = key(request)
        numbers[name] += 1
        return number(numbers[name])

    return replace(change, matches=matches)


def after(cause: Callable[[Note], Change], change: Change, key: Key = nothing) -> list[Change]:
    """Apply a change only to the next request after something has happened, by key."""
    pending: set[Any] = set()

    def matches(request: Request) -> bool:
        if not change.matches(request) or key(request) not in pending:
            return False
        pending.discard(key(request))
        return True

    return [replace(change, matches=matches), cause(lambda request: pending.add(key(request)))]


def failing(route: str) -> Callable[[Note], Change]:
    """Take an error status as the cause."""
    return lambda note: wire.in_place(
        route, lambda answer, request: note(request) if answer.status >= 400 else None
    )


def streaming(route: str) -> Callable[[Note], Change]:
    """Take the end of a stream as the cause."""
    return lambda note: Change(wire.routed(route), end=lambda request: note(request) or ())


def failing_call(note: Note) -> Change:
    """Take the error of a tool as the cause."""

    def result(value: Any, request: Request) -> Any:
        if value.get("isError"):
            note(request)
        return value

    return wire.calls("tools/call", result, "POST /mcp")


def failing_code(note: Note) -> Change:
    """Take a failed execution as the cause."""

    def noted(value: Any, request: Request) -> Any:
        if '"status": "error"' in value.get("Result", {}).get("Result", ""):
            note(request)
        return value

    return wire.actions(sandbox.INVOKE, noted)


# ---- changes


def leaking_headers() -> Change:
    """Repeat the custom headers of a session's request in the next one."""
    before: dict[str, Headers] = {}

    def change(all_headers: Headers) -> None:
        custom = {
            n: v
            for n, v in all_headers.items()
            if n not in {*application.USUAL, *application.OF_HTTP}
        }
        for name, value in before.get(all_headers.get("session_id", ""), {}).items():
            all_headers.setdefault(name, value)
        before[all_headers.get("session_id", "")] = custom

    return application.headers(change)


def third_as_second() -> list[Change]:
    """Read the second session of a user for the third."""
    ids: dict[Any, list[str]] = {}

    def note(document: Any, request: Request) -> Any:
        ids.setdefault(agents.owner_of(request)[:2], []).append(document.get("id", ""))
        return document

    def path(request: Request) -> None:
        *owner, id_ = agents.owner_of(request)
        some = ids.get(tuple(owner), [])
        if some[2:3] == [id_]:
            request.path = f"{request.path.rpartition('/')[0]}/{some[1]}"

    return [
        wire.answers(agents.CREATE, note),
        wire.answers(agents.NAMED, note),
        wire.requested(agents.READ, path),
    ]


def without_the_last(state: dict[str, Any], event: Any) -> Any:
    """Send each event when the next one arrives, so that the last one is lost."""
    before, state["held"] = state["held"], [event]
    return before


async def twice(request: Request, ask: Ask) -> Answer:
    """Run a request twice."""
    await ask(request)
    return await ask(request)


def refuse(status: int) -> Callable[[Request, Ask], Awaitable[Answer]]:
    """Return a function that answers with an error status, also instead of a stream."""

    async def answer(_request: Request, _ask: Ask) -> Answer:
        return Answer(status, {"content-type": "application/json"}, b'{"error": "no"}')

    return answer


def leaking_arguments() -> Change:
    """Keep the arguments of the call before where a call has none."""
    before: dict[Any, Any] = {}

    def params(value: Any, request: Request) -> Any:
        name = request.path, protocols.name_of(request)
        sent = value.get("arguments") or {}
        merged = {**before.get(name, {}), **sent}
        before[name] = sent
        return {**value, "arguments": merged}

    return wire.called_with("tools/call", params, protocols.SERVICE)


def cached() -> Change:
    """Answer a repeated code of a session with the first result."""
    cache: dict[Any, Any] = {}

    def changed(value: Any, request: Request) -> Any:
        if "Result" not in value:
            return value
        name = session_of(request), request.json.get("OperationPayload")
        return {**value, "Result": cache.setdefault(name, value["Result"])}

    return wire.actions(sandbox.INVOKE, changed)


def repeated_code() -> Callable[[Any], bool]:
    """Return whether a code differs from the one before, by session."""
    before: dict[str, str] = {}

    def differs(value: Any) -> bool:
        code = before.get(value["session_id"])
        before[value["session_id"]] = value["code"]
        return bool(code != value["code"])

    return differs


def third_session_as_second() -> Callable[[str], str]:
    """Use the second session of a user for the third."""
    names: dict[str, list[str]] = {}

    def changed(name: str) -> str:
        some = names.setdefault(name.rpartition("_")[0], [])
        if name not in some:
            some.append(name)
        return some[1] if some[2:3] == [name] else name

    return changed


def first_upload() -> Change:
    """Upload the first content of a path again."""
    uploads: dict[Any, Any] = {}

    def change(request: Request) -> None:
        path = sandbox.PATH.search(request.body)
        name = str(request.query), path and path[2]
        first = uploads.setdefault(name, (request.body, request.header("content-type")))
        request.body, request.headers["content-type"] = first

    return wire.requested(sandbox.UPLOAD, change)


def sessions_beyond(number: int) -> Change:
    """Refuse sessions of a runtime beyond this many."""
    names: dict[str, list[str]] = {}

    def beyond(request: Request) -> bool:
        some = names.setdefault(agents.runtime_of(request), [])
        if request.header("session_id") not in some:
            some.append(request.header("session_id"))
        return request.header("session_id") in some[number:]

    return wire.refused(application.HOSTED, beyond, 503)


def is_nth(number: int) -> Callable[[int], bool]:
    """Select one number."""
    return lambda now: now == number


TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {
        "lose_a_field_of_every_fifth_payload": nth(
            application.payload(lambda body: dict(list(body.items())[:-1])),
            lambda number: number % 5 == 0,
        )
    },
    "INV-02": {"repeat_custom_headers": leaking_headers()},
    "INV-04": {
        "cut_the_answer_after_a_stream": after(
            streaming(application.INVOKE), application.string(lambda t: t[1:])
        )
    },
    "INV-05": {
        "lose_every_tenth_string": application.strings(
            lambda text, before: [] if len(before) % 10 == 9 else text
        )
    },
    "INV-06": {"end_silently_the_second_time": application.failure(every(2, always(wire.DROP)))},
    "INV-07": {
        "go_down_after_three_exceptions": application.after_exception(application.INVOKE, 3)
    },
    "PRB-01": {
        "answer_nothing_after_an_exception": after(
            failing(application.INVOKE), application.probe("ping", always(""))
        )
    },
    "HST-01": {"serve_three_sessions": sessions_beyond(3)},
    "AUT-02": {
        "refuse_the_key_after_a_wrong_one": after(
            failing("* /runtimes/{name}/*"),
            wire.statuses("* /runtimes/{name}/*", 401),
            agents.runtime_of,
        )
    },
    "API-04": {"list_30_sessions": wire.answers(agents.LIST, lambda some: some[:30])},
    "API-05": {
        "lose_the_fifth_event": agents.history(lambda some: [*some[:4], *some[5:]]),
        "read_the_second_session_for_the_third": third_as_second(),
        "store_the_third_turn_twice": nth(
            wire.around(agents.RUN, twice), is_nth(3), session_of_run
        ),
    },
    "API-07": {"fail_after_a_failed_run": application.error_again(agents.RUN)},
    "API-08": {
        "lose_the_end_of_the_third_stream": nth(
            agents.stream_events(without_the_last), is_nth(3), session_of_run
        )
    },
    "API-09": {
        "join_the_increments_of_the_second_stream": nth(
            agents.stream_events(agents.hold_back(agents.joined)), is_nth(2), session_of_run
        )
    },
    "API-11": {
        "lose_the_calls_of_the_second_run": nth(
            agents.of_run(agents.each_event(agents.lost(agents.is_call))), is_nth(2), session_of_run
        )
    },
    "API-13": {"lose_the_third_artifact": agents.artifacts(lambda some: [*some[:2], *some[3:]])},
    "API-17": {
        "forget_the_turns_before_the_fourth": agents.fresh(lambda _path, number: number == 4)
    },
    "MCP-01": {
        "forget_a_session_after_ten_requests": nth(
            Change(wire.routed(protocols.SERVICE), around=refuse(404)),
            lambda number: number > 10,
            lambda request: request.header("mcp-session-id") or id(request),
        )
    },
    "MCP-03": {
        "fail_after_a_failed_call": after(failing_call, protocols.results(put(isError=True))),
        "lose_a_tool_in_the_third_list": nth(
            protocols.tools(lambda some: some[:-1]), is_nth(3), lambda request: request.path
        ),
    },
    "MCP-05": {
        "lose_structured_content_after_an_error": after(
            failing_call, protocols.results(drop("structuredContent"))
        )
    },
    "SVC-01": {
        "refuse_the_third_session": nth(
            Change(wire.rpc("initialize", protocols.SERVICE), around=refuse(503)),
            is_nth(3),
            lambda request: request.path,
        )
    },
    "SVC-02": {"keep_the_arguments_of_the_call_before": leaking_arguments()},
    "A2A-02": {
        "forget_the_context_of_the_third_message": [
            nth(change, is_nth(2), lambda r: r.json["params"]["message"].get("contextId"))
            for change in protocols.message(drop("contextId"))
        ]
    },
    "A2A-03": {"lose_the_fifth_result": protocols.numbered(lambda number: number != 5)},
    "A2A-04": {
        "keep_the_last_three_tasks": protocols.created_tasks(
            lambda ids, document, id_: protocols.missing(document) if id_ in ids[:-3] else document
        )
    },
    "SBX-02": {"answer_repeated_code_from_a_cache": cached()},
    "SBX-04": {
        "use_the_second_session_of_a_user_for_the_third": sandbox.sessions(
            third_session_as_second()
        )
    },
    "SBX-05": {
        "lose_the_outputs_after_an_error": after(
            failing_code, sandbox.outputs(always([])), session_of
        )
    },
    "SBX-06": {
        "keep_the_status_of_an_error": after(
            failing_code, sandbox.data(put(status="error")), session_of
        )
    },
    "SBX-07": {"count_repeated_code_once": sandbox.count(sandbox.of_session, repeated_code())},
    "SBX-09": {
        "run_every_fourth_command_twice": nth(
            Change(
                lambda request: (
                    wire.action(sandbox.INVOKE)(request) and b"ExecBash" in request.body
                ),
                around=twice,
            ),
            lambda number: number % 4 == 0,
        )
    },
    "SBX-10": {"keep_the_first_content_of_a_path": first_upload()},
}
