"""Mutants of simple applications (INV), probes (PRB) and hosted runtimes (HST)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.mutants.changes import always, answers_after_the_first, at, cut, drop, previous, where
from tests.mutants.wire import (
    Answer,
    Ask,
    Change,
    Headers,
    Request,
    actions,
    answers,
    around,
    calls,
    events,
    in_place,
    raw_events,
    refused,
    requested,
    requests,
    routed,
    statuses,
    text_of,
)

INVOKE = "POST */invoke"
BARE = "GET /runtimes/reference-bare"

USUAL = ("user_id", "session_id", "request_id")
OF_HTTP = (
    *("host", "accept", "accept-encoding", "connection", "user-agent"),
    *("content-type", "content-length", "transfer-encoding", "authorization"),
)


def is_object(value: Any) -> bool:
    """Return whether a value is an object."""
    return isinstance(value, dict)


def is_text(value: Any) -> bool:
    """Return whether a value is a string."""
    return isinstance(value, str)


# ---- requests


def payload(change: Callable[[Any], Any]) -> Change:
    """Change the JSON object of invocations."""
    return requests(INVOKE, where(is_object, change))


def prompt(change: Callable[[str], Any]) -> Change:
    """Change the prompt of invocations."""
    return payload(at("prompt", where(is_text, change)))


def headers(change: Callable[[Headers], Any]) -> Change:
    """Change the headers of invocations in place."""
    return requested(INVOKE, lambda request: change(request.headers))


def custom(change: Callable[[str, str], str | None]) -> Change:
    """Change the values of custom headers; None drops one."""

    def change_headers(all_headers: Headers) -> None:
        for name in set(all_headers) - {*USUAL, *OF_HTTP}:
            changed = change(name, all_headers.pop(name))
            if changed is not None:
                all_headers[name] = changed

    return headers(change_headers)


def header(name: str, change: Callable[[str], str]) -> Change:
    """Change the value of a header if it was sent."""
    return headers(lambda some: some.update({name: change(some[name])}) if name in some else None)


def absent(name: str, value: Callable[[Headers], str | None]) -> Change:
    """Add a header if it is absent."""
    return headers(lambda some: some.setdefault(name, value(some) or "") if value(some) else None)


def number(text: str) -> str:
    """Parse a number and format it again."""
    return str(int(text)) if text.isdecimal() else text


# ---- answers


def string(change: Callable[[str], Any]) -> Change:
    """Change the string that the entrypoint returned."""
    return answers(INVOKE, where(is_text, change))


def raised(change: Callable[[Answer, Request], None], kind: str = "") -> Change:
    """Change responses to exceptions of the entrypoint, or to one kind of them, in place."""

    def change_answer(answer: Answer, request: Request) -> None:
        if answer.status == 500 and f'"{kind}'.encode() in answer.body:
            change(answer, request)

    return in_place(INVOKE, change_answer)


def after_exception(route: str, failures: int) -> tuple[Change, ...]:
    """Refuse a route's requests after this many exceptions."""
    paths: list[str] = []

    def note(answer: Answer, request: Request) -> None:
        if answer.status == 500:
            paths.append(request.path)

    return refused(route, lambda _: len(paths) >= failures, 503), in_place(INVOKE, note)


def error_again(route: str = INVOKE) -> Change:
    """Repeat an error for the next request."""
    pending: list[bytes] = []

    def change_answer(answer: Answer, _request: Request) -> None:
        if answer.status == 500:
            pending.append(answer.body)
        elif pending:
            answer.status, answer.body = 500, pending.pop()

    return in_place(route, change_answer)


def no_json(change: Callable[[Answer], None]) -> Change:
    """Change in place the refusals of bodies that are not JSON."""

    def change_answer(answer: Answer, request: Request) -> None:
        if answer.status == 400 and request.json is None:
            change(answer)

    return in_place(INVOKE, change_answer)


# ---- streams


def is_failure(raw: bytes) -> bool:
    """Return whether an event reports a failure."""
    return raw.startswith(b'data: {"error":')


def event(text: str) -> bytes:
    """Return the event for a string."""
    return "".join(f"data: {line}\n" for line in text.split("\n")).encode() + b"\n"


def strings(change: Callable[[str, list[str]], str | list[str]]) -> Change:
    """Change each string of a stream; the function takes it and the strings before it."""

    def changed(raw: bytes, request: Request) -> list[bytes]:
        if is_failure(raw):
            return [raw]
        before = request.state.setdefault("before", [])
        new = change(text_of(raw), before)
        before.append(text_of(raw))
        return [event(text) for text in ([new] if isinstance(new, str) else new)]

    return Change(routed(INVOKE), event=changed)


def hold_back(release: Callable[[list[bytes]], int]) -> Change:
    """Hold events back; the function takes the waiting ones and returns how many to send now."""

    def changed(raw: bytes, request: Request) -> list[bytes]:
        waiting = request.state.setdefault("waiting", [])
        waiting.append(raw)
        count = release(waiting)
        ready = waiting[:count]
        del waiting[:count]
        return list(ready)

    def ended(request: Request) -> Iterable[bytes]:
        return list(request.state.get("waiting", []))

    return Change(routed(INVOKE), event=changed, end=ended)


def failure(change: Callable[[Any], Any]) -> Change:
    """Change the JSON of the event that reports a failure."""
    return events(INVOKE, where(lambda value: is_object(value) and "error" in value, change))


def raw_failure(change: Callable[[str], str]) -> Change:
    """Change the event that reports a failure; the function takes the message."""
    return raw_events(
        INVOKE,
        lambda raw: change(json.loads(raw[6:])["error"]).encode() if is_failure(raw) else raw,
    )


# ---- probes


def probe(name: str, change: Callable[[Any], Any]) -> Change:
    """Change the status in a probe's response."""
    return answers(f"GET /{name}", at("status", change))


def once(name: str) -> Change:
    """Answer a probe only once."""
    down = answers_after_the_first(lambda answer: answer.set(503, {"error": "down"}))
    return in_place(f"GET /{name}", down)


def after_an_invocation(route: str) -> tuple[Change, ...]:
    """Answer a route only after the first invocation."""
    invoked: list[str] = []
    note = requested(INVOKE, lambda request: invoked.append(request.path))
    return note, refused(route, lambda _: not invoked, 404)


def slow(seconds: Callable[[int], float]) -> Change:
    """Delay pings; the function takes the number of the ping."""
    count = 0

    async def late(request: Request, ask: Ask) -> Answer:
        nonlocal count
        count += 1
        await asyncio.sleep(seconds(count))
        return await ask(request)

    return around("GET /ping", late)


def busy(*, refuses: bool) -> tuple[Change, ...]:
    """Make pings wait for running invocations, or refuse them meanwhile."""
    running: set[int] = set()

    async def invoked(request: Request, ask: Ask) -> Answer:
        running.add(id(request))
        try:
            return await ask(request)
        finally:
            running.discard(id(request))

    async def pinged(request: Request, ask: Ask) -> Answer:
        for _ in range(0 if refuses else 100):
            if not running:
                break
            await asyncio.sleep(0.02)
        if running:
            return Answer(503, {}, b"busy")
        return await ask(request)

    return around(INVOKE, invoked), around("GET /ping", pinged)


# ---- runtimes

RUNTIME = "/runtimes/{name}"
HOSTED = f"POST {RUNTIME}/invoke"


def session(change: Callable[[str], str]) -> Change:
    """Change the session of requests to runtimes."""

    def change_request(request: Request) -> None:
        if "session_id" in request.headers:
            request.headers["session_id"] = change(request.headers["session_id"])

    return requested(f"* {RUNTIME}/*", change_request)


def environment(document: Any, request: Request) -> Any:
    """Return a different environment to each session."""
    try:
        result = json.loads(document)
        return json.dumps(
            {**result, "environment": f"{result['environment']}-{request.header('session_id')}"}
        )
    except (KeyError, TypeError, ValueError):
        return document


def scaled(spoil: Callable[[Answer], None], *, always: bool = False) -> tuple[Change, ...]:
    """Spoil the first answer after a runtime has scaled to zero, or all answers from then on."""
    down = [False]

    def note(document: Any) -> Any:
        down[0] = down[0] or not document["Result"].get("InstanceItems", True)
        return document

    def change_answer(answer: Answer, _request: Request) -> None:
        if down[0]:
            spoil(answer)
            down[0] = always

    return actions("ListRuntimeInstances", note), in_place(f"* {RUNTIME}/*", change_answer)


def first_runtime() -> Change:
    """Send all requests to the first runtime."""
    ids: list[str] = []

    def change_request(request: Request) -> None:
        name = request.path.split("/")[2]
        ids.append(name)
        request.path = request.path.replace(f"/{name}/", f"/{ids[0]}/", 1)

    return requested(f"* {RUNTIME}/*", change_request)


def logs(change: Callable[[str], str]) -> Change:
    """Change the logs of runtimes."""
    return actions("GetRuntimeInstanceLogs", at("Result.Logs", change))


def instances(change: Callable[[Any], Any]) -> Change:
    """Change the instances of runtimes."""
    return actions("ListRuntimeInstances", at("Result.InstanceItems", change))


def hosted(method: str, change: Callable[[Any], Any]) -> Change:
    """Change the results of a JSON-RPC method of runtimes."""
    return calls(method, change, f"POST {RUNTIME}/*")


TABLE = {
    "INV-01": {"lose_fields_named_like_a_header": payload(drop(*USUAL))},
    "INV-02": {"cut_custom_headers_at_256": custom(lambda _, value: value[:256])},
    "INV-03": {
        "fill_in_a_user_id": absent("user_id", lambda _: "platform-user"),
        "fail_without_a_session_id": refused(INVOKE, lambda r: not r.header("session_id"), 500),
    },
    "INV-04": {"wrap_twice": string(json.dumps)},
    "INV-05": {
        "send_newlines_as_they_are": raw_events(
            INVOKE, lambda raw: raw.replace(b"\ndata: ", b"\n")
        ),
        "hold_one_string_back": hold_back(lambda waiting: len(waiting) - 1),
    },
    "INV-06": {
        "send_it_as_a_comment": raw_failure(lambda text: f": {json.dumps({'error': text})}\n\n")
    },
    "INV-07": {
        "answer_null_for_a_key_error": raised(lambda answer, _: answer.set(200, None), "KeyError"),
        "repeat_the_error_to_the_next_request": error_again(),
    },
    "INV-08": {
        "fail_with_500": no_json(lambda answer: answer.set(500, {"error": "no JSON"})),
        "refuse_without_a_word": no_json(lambda answer: setattr(answer, "body", b"")),
    },
    "INV-09": {
        "read_the_first_8_characters": header("session_id", cut(8)),
        "read_numbers_without_leading_zeros": header("session_id", number),
    },
    "PRB-01": {
        "answer_with_the_default_text": probe("ping", always("ok")),
        "answer_once": once("ping"),
    },
    "PRB-02": {
        "answer_an_empty_status": probe("health", always("")),
        "answer_once": once("health"),
    },
    "PRB-03": {
        "have_no_readiness": statuses("GET /readiness", 404),
        "answer_once": once("readiness"),
    },
    "PRB-04": {"have_no_liveness": statuses("GET /liveness", 404), "answer_once": once("liveness")},
    "PRB-05": {
        "fail_the_default_ping": statuses(f"{BARE}/ping", 500),
        "have_no_liveness_by_default": statuses(f"{BARE}/liveness", 404),
    },
    "PRB-06": {"wait_for_running_invocations": busy(refuses=False)},
    "PRB-07": {
        "leave_out_health": statuses("GET /health", 404),
        "register_with_the_first_invocation": after_an_invocation("GET /readiness"),
    },
    "HST-01": {"give_each_session_an_environment": answers(HOSTED, environment)},
    "HST-02": {
        "refuse_the_request_that_starts_again": scaled(lambda a: a.set(503, {"error": "starts"})),
        "stay_at_zero": scaled(lambda a: a.set(503, {"error": "zero"}), always=True),
    },
    "HST-03": {
        "send_all_requests_to_the_first_runtime": first_runtime(),
        "answer_a_runtime_with_the_answer_of_another": answers(HOSTED, previous()),
    },
    "HST-04": {
        "show_the_first_line_of_logs": logs(lambda text: text.partition("\n")[0]),
        "list_no_instances": instances(always([])),
    },
    "HST-05": {
        "call_tools_in_vain": hosted("tools/call", always({"content": [], "isError": False})),
        "return_no_artifacts": hosted("SendMessage", at("task", drop("artifacts"))),
    },
}
