"""Mutations of the double under which the checks of application fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, Response

from agentdouble.apps import simple, simple_responses
from doublecheck.contracts import wire
from doublecheck.contracts.reference import actions
from tests.mutants.inside import inside


def drop_fields(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: value for name, value in payload.items() if isinstance(value, str | list)}
        return await original(self, entrypoint, kept, headers)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def drop_headers(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: value for name, value in headers.items() if not name.startswith("x-")}
        return await original(self, entrypoint, payload, kept)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def make_up_a_user(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        return await original(self, entrypoint, payload, {"user_id": "anonymous", **headers})

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def return_plain_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple_responses, "result", PlainTextResponse)


def lose_what_is_not_ascii(patch: pytest.MonkeyPatch) -> None:
    original = simple_responses.result
    patch.setattr(
        simple_responses,
        "result",
        lambda value: original(value.encode("ascii", "replace").decode()),
    )


def hold_the_stream_back(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._stream

    async def stream(self: Any, chunks: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        yield b"".join([event async for event in original(self, chunks)])

    patch.setattr(simple.SimpleApp, "_stream", stream)
    patch.setattr(actions, "READ_WITHIN_S", 0.1)


def swallow_the_streams_failure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple_responses, "stream_failure", lambda _: b"")


def pass_an_exception_off_as_success(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple_responses, "entrypoint_failure", lambda _: PlainTextResponse("fine"))


def accept_any_body(patch: pytest.MonkeyPatch) -> None:
    original = simple_responses.failure

    def failure(status: int, message: str, *rest: Any) -> Response:
        broken = message == simple_responses.INVALID_JSON
        return PlainTextResponse("fine") if broken else original(status, message, *rest)

    patch.setattr(simple_responses, "failure", failure)


def share_one_session(patch: pytest.MonkeyPatch) -> None:
    module = __import__("sys").modules["agentdouble.code_tool"]
    patch.setattr(module.Invocation, "user_session_id", "shared")


def answer_another_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple_responses, "ping", lambda _: PlainTextResponse("something else"))


def run_entrypoints_on_the_servers_loop(patch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def lifespan(_self: Any) -> AsyncIterator[None]:
        yield

    patch.setattr(simple.SimpleApp, "lifespan", lifespan)
    patch.setattr(actions, "BUSY_AT_MOST_S", 1.5)
    patch.setattr(wire, "PING_WITHIN_S", 0.5)


def answer_probe(path: str, status: int) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what has a probe answered with a status."""

    def answer_one_probe(patch: pytest.MonkeyPatch) -> None:
        original = simple.SimpleApp.__call__

        async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
            if scope.get("path") == path:
                await PlainTextResponse("fine", status)(scope, receive, send)
                return
            await original(self, scope, receive, send)

        patch.setattr(simple.SimpleApp, "__call__", call)

    return answer_one_probe


MUTANTS = (
    inside("INV-01", drop_fields),
    inside("INV-02", drop_headers),
    inside("INV-03", make_up_a_user),
    inside("INV-04", lose_what_is_not_ascii),
    inside("INV-04", return_plain_text),
    inside("INV-05", hold_the_stream_back),
    inside("INV-06", swallow_the_streams_failure),
    inside("INV-07", pass_an_exception_off_as_success),
    inside("INV-08", accept_any_body),
    inside("INV-09", share_one_session),
    inside("PRB-01", answer_another_ping),
    inside("PRB-02", answer_probe("/health", 404)),
    inside("PRB-03", answer_probe("/readiness", 404)),
    inside("PRB-04", answer_probe("/liveness", 404)),
    inside("PRB-06", run_entrypoints_on_the_servers_loop),
    inside("PRB-07", answer_probe("/readiness", 202)),
)
