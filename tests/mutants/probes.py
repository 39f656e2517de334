"""Mutants of the four probes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from agentdouble.apps import simple_responses as responses
from agentdouble.apps.simple import SimpleApp
from tests.mutants import Mutant, wire

PING = "GET /ping"
HEALTH = "GET /health"
READINESS = "GET /readiness"
LIVENESS = "GET /liveness"
BARE = "GET /runtimes/reference-bare"
PROBES = (PING, HEALTH, READINESS, LIVENESS)

STRING = "GET /ping: string from the ping function (4.1)"
STATUS = "GET /health: health status string (4.1)"
READY = "GET /readiness: readiness probe result (4.1)"
ALIVE = "GET /liveness: liveness probe result (4.1)"
DEFAULT = "The default ping function returns a short text of healthy status (4.1)"
WITHIN = "should answer within 1 second; lightweight (4.6, 8)"
AUTOMATIC = "The four probe endpoints are registered automatically from the ping function (4.1)"

Mutate = Callable[[pytest.MonkeyPatch], None]


def _status(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Change the ``status`` of a probe's object, or its string."""

    def answer(document: Any) -> Any:
        if isinstance(document, dict) and "status" in document:
            return {**document, "status": change(document["status"])}
        return change(document) if isinstance(document, str) else document

    return answer


def _empty(route: str) -> wire.Change:
    def answer(answer: wire.Answer, _request: wire.Request) -> None:
        answer.body = b""

    return wire.answered(route, answer)


def _unavailable(answer: wire.Answer) -> None:
    answer.status, answer.body = 503, json.dumps({"error": "Service Unavailable"}).encode()


def _fails_after(route: str, times: int) -> Mutate:
    """Answer a route a number of times, and fail then."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []

        def answer(answer: wire.Answer, request: wire.Request) -> None:
            asked.append(request.path)
            if len(asked) > times:
                _unavailable(answer)

        wire.install(patch, wire.answered(route, answer))

    return mutant


def _needs(route: str, name: str) -> wire.Change:
    """Refuse a probe without a header."""

    def answer(answer: wire.Answer, request: wire.Request) -> None:
        if name not in request.headers:
            answer.status, answer.body = 400, json.dumps({"error": f"{name} is missing"}).encode()

    return wire.answered(route, answer)


def _needs_an_invocation(route: str) -> Mutate:
    """Register a probe with the first invocation."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        invoked: list[str] = []

        def note(request: wire.Request) -> None:
            invoked.append(request.path)

        def answer(answer: wire.Answer, _request: wire.Request) -> None:
            if not invoked:
                answer.status, answer.body = 404, b'{"detail": "Not Found"}'

        changes = wire.requested("POST */invoke", note), wire.answered(route, answer)
        wire.install(patch, *changes)

    return mutant


def _keep_the_first_answer(patch: pytest.MonkeyPatch) -> None:
    first: list[bytes] = []

    def answer(answer: wire.Answer, _request: wire.Request) -> None:
        first.append(answer.body)
        answer.body = first[0]

    wire.install(patch, wire.answered(PING, answer))


# ---- pings of a busy application


Handler = Callable[[SimpleApp, Request], Awaitable[Response]]


def _ping(make: Callable[[Handler], Handler]) -> Mutate:
    """Replace how a ping is answered."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(SimpleApp, "_on_ping", make(SimpleApp._on_ping))

    return mutant


def _late(whole: Handler) -> Handler:
    async def on_ping(app: SimpleApp, request: Request) -> Response:
        await asyncio.sleep(1.4)
        return await whole(app, request)

    return on_ping


def _third_late(whole: Handler) -> Handler:
    asked: list[Request] = []

    async def on_ping(app: SimpleApp, request: Request) -> Response:
        asked.append(request)
        await asyncio.sleep(0 if len(asked) % 3 else 1.4)
        return await whole(app, request)

    return on_ping


def _one_after_the_other(whole: Handler) -> Handler:
    answering = asyncio.Semaphore()

    async def on_ping(app: SimpleApp, request: Request) -> Response:
        async with answering:
            await asyncio.sleep(0.4)
            return await whole(app, request)

    return on_ping


def _on_the_application_loop(_whole: Handler) -> Handler:
    async def called(app: SimpleApp) -> Any:
        return app._ping() if app._ping is not None else "pong!"

    async def on_ping(app: SimpleApp, _request: Request) -> Response:
        return responses.ping(await app._loop.run(called(app)))

    return on_ping


class _Busy:
    """Counts the invocations and streams that run, for a ping that minds them."""

    def __init__(self, *, streams: bool, refuses: bool = False) -> None:
        self._streams = streams
        self._refuses = refuses

    def __call__(self, patch: pytest.MonkeyPatch) -> None:
        self._running = 0
        self._ping = SimpleApp._on_ping
        self._stream, self._invoke = SimpleApp._stream, SimpleApp._invoke
        patch.setattr(SimpleApp, "_on_ping", self._pinged())
        if self._streams:
            patch.setattr(SimpleApp, "_stream", self._streamed())
        else:
            patch.setattr(SimpleApp, "_invoke", self._invoked())

    def _pinged(self) -> Handler:
        async def on_ping(app: SimpleApp, request: Request) -> Response:
            if self._running and self._refuses:
                return responses.failure(503, "The application is busy.", "Busy")
            for _ in range(100):
                if not self._running:
                    break
                await asyncio.sleep(0.02)
            return await self._ping(app, request)

        return on_ping

    def _invoked(self) -> Callable[..., Awaitable[Response]]:
        async def invoke(app: SimpleApp, *given: Any) -> Response:
            self._running += 1
            try:
                return await self._invoke(app, *given)
            finally:
                self._running -= 1

        return invoke

    def _streamed(self) -> Callable[..., AsyncIterator[bytes]]:
        async def stream(app: SimpleApp, strings: AsyncIterator[Any]) -> AsyncIterator[bytes]:
            self._running += 1
            try:
                events = cast("AsyncGenerator[bytes, None]", self._stream(app, strings))
                async with aclosing(events):
                    async for one in events:
                        yield one
            finally:
                self._running -= 1

        return stream


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "answer_with_the_default_text",
        "PRB-01",
        STRING,
        wire.answers(PING, _status(lambda _: "ok")),
    ),
    Mutant(
        "answer_with_the_first_word",
        "PRB-01",
        STRING,
        wire.answers(PING, _status(lambda text: text.split()[0])),
    ),
    Mutant("shout", "PRB-01", STRING, wire.answers(PING, _status(str.upper))),
    Mutant("say_null", "PRB-01", STRING, wire.answers(PING, _status(lambda _: None))),
    Mutant("say_true", "PRB-01", STRING, wire.answers(PING, _status(lambda _: True))),
    Mutant("keep_the_first_answer", "PRB-01", STRING, _keep_the_first_answer),
    Mutant("answer_once", "PRB-01", STRING, _fails_after(PING, 1)),
    Mutant("ask_for_a_user", "PRB-01", STRING, _needs(PING, "user_id")),
    Mutant("have_no_health", "PRB-02", STATUS, wire.statuses(HEALTH, 404, {"detail": "Not Found"})),
    Mutant("fail", "PRB-02", STATUS, wire.statuses(HEALTH, 500)),
    Mutant("say_nothing", "PRB-02", STATUS, _empty(HEALTH)),
    Mutant("say_an_empty_object", "PRB-02", STATUS, wire.answers(HEALTH, lambda _: {})),
    Mutant("say_an_empty_status", "PRB-02", STATUS, wire.answers(HEALTH, _status(lambda _: ""))),
    Mutant(
        "say_null_for_a_status", "PRB-02", STATUS, wire.answers(HEALTH, _status(lambda _: None))
    ),
    Mutant("ask_for_a_session", "PRB-02", STATUS, _needs(HEALTH, "session_id")),
    Mutant("answer_once", "PRB-02", STATUS, _fails_after(HEALTH, 1)),
    Mutant("have_no_readiness", "PRB-03", READY, wire.statuses(READINESS, 404)),
    Mutant("be_never_ready", "PRB-03", READY, wire.statuses(READINESS, 503)),
    Mutant("answer_once", "PRB-03", READY, _fails_after(READINESS, 1)),
    Mutant("answer_post_alone", "PRB-03", READY, wire.statuses(READINESS, 405)),
    Mutant("have_no_liveness", "PRB-04", ALIVE, wire.statuses(LIVENESS, 404)),
    Mutant("fail", "PRB-04", ALIVE, wire.statuses(LIVENESS, 500)),
    Mutant("answer_once", "PRB-04", ALIVE, _fails_after(LIVENESS, 1)),
    Mutant("fail_the_default_ping", "PRB-05", DEFAULT, wire.statuses(f"{BARE}/ping", 500)),
    Mutant(
        "say_null_by_default",
        "PRB-05",
        DEFAULT,
        wire.answers(f"{BARE}/ping", _status(lambda _: None)),
    ),
    Mutant(
        "say_nothing_by_default",
        "PRB-05",
        DEFAULT,
        wire.answers(f"{BARE}/ping", _status(lambda _: "")),
    ),
    Mutant(
        "say_a_page_by_default",
        "PRB-05",
        DEFAULT,
        wire.answers(f"{BARE}/ping", _status(lambda text: f"<p>{text}</p>\n" * 5000)),
    ),
    Mutant(
        "be_unhealthy_by_default",
        "PRB-05",
        DEFAULT,
        wire.answers(f"{BARE}/ping", _status(lambda _: "error: no ping function")),
    ),
    *(
        Mutant(f"have_no_{name}_by_default", "PRB-05", AUTOMATIC, wire.statuses(route, 404))
        for name in ("health", "readiness", "liveness")
        for route in [f"{BARE}/{name}"]
    ),
    Mutant("answer_late", "PRB-06", WITHIN, _ping(_late)),
    Mutant("answer_every_third_ping_late", "PRB-06", WITHIN, _ping(_third_late)),
    Mutant("answer_one_after_the_other", "PRB-06", WITHIN, _ping(_one_after_the_other)),
    Mutant("ping_on_the_entrypoints_loop", "PRB-06", WITHIN, _ping(_on_the_application_loop)),
    Mutant("wait_for_the_running_invocations", "PRB-06", WITHIN, _Busy(streams=False)),
    Mutant("wait_for_the_running_streams", "PRB-06", WITHIN, _Busy(streams=True)),
    Mutant("refuse_while_an_invocation_runs", "PRB-06", WITHIN, _Busy(streams=False, refuses=True)),
    Mutant("refuse_while_a_stream_runs", "PRB-06", WITHIN, _Busy(streams=True, refuses=True)),
    *(
        Mutant(f"leave_out_{route[5:]}", "PRB-07", AUTOMATIC, wire.statuses(route, 404))
        for route in PROBES[1:]
    ),
    Mutant(
        "register_with_the_first_invocation", "PRB-07", AUTOMATIC, _needs_an_invocation(LIVENESS)
    ),
)
