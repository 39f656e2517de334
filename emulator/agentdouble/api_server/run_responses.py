"""The responses of /run and /run_sse: framing, errors, disconnected clients (sections 5 and 6)."""

from __future__ import annotations

import json
import logging
import re
import traceback
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from agentdouble.agents.framework import RunEvent
from agentdouble.api_server import response_json
from agentdouble.api_server.json_text import dumps, loads
from agentdouble.api_server.run import Run
from agentdouble.core import ledger
from agentdouble.errors import ApiError, StateError
from agentdouble.journal.failures import beneath, report
from agentdouble.server.disconnects import cancel_on_disconnect

_log = logging.getLogger(__name__)


class RunResponse(Response):
    """A response that runs an agent, and cancels the run when the client disconnects."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the agent and send its events."""
        try:
            await cancel_on_disconnect(receive, self._respond(scope, receive, send))
        except ClientDisconnect:
            _log.info("The client of a run in session %r disconnected.", self._run.key.id)

    @abstractmethod
    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class EventListResponse(RunResponse):
    """All events of the turn as one list (API-07)."""

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        collected: list[Any] = []

        async def collect(events: Sequence[RunEvent]) -> None:
            collected.extend(response_json.visible_events(event.json for event in events))

        try:
            await self._run.execute(collect, collected=True)
        except (ApiError, StateError):  # these are not the agent's errors
            raise
        except Exception as error:
            await _failure(error, self._run)(scope, receive, send)
            return
        await Response(dumps(collected), media_type="application/json")(scope, receive, send)


class RunStreamResponse(RunResponse):
    """A stream of events, each as one line of ``data:`` and one chunk (API-08).

    If ``together``, an event's content and artifacts are sent together, otherwise one after the
    other.
    """

    # Not sse-starlette's response: it sends pings and headers that the real server does not send,
    # and takes 6.6 µs for an event; this one takes 0.2.
    def __init__(self, run: Run, *, together: bool) -> None:
        super().__init__(run)
        self._together = together

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_line(data: bytes) -> None:
            body = b"data: " + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async def send_events(events: Sequence[RunEvent]) -> None:
            for event in events:
                if event.artifacts and not self._together:
                    for part in _split(event.json):
                        await send_line(response_json.event(part))
                else:
                    await send_line(response_json.event(event.json))

        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        try:
            await self._run.execute(send_events)
        except Exception as error:
            await send_line(_error_line(error, self._run))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_ABOUT_KEYS = re.compile(r"api.?key", re.IGNORECASE)  # as the SDKs of models say it
_NO_KEY = (
    " The double has a model that needs no provider's key: use the fixture platform_model, or set "
    "the variables of Emulator.environment('model') or 'agentdouble env --for model'."
)
_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]


def _split(event_json: bytes) -> Iterator[bytes]:
    """Yield an event, or its content and then its artifacts if it has both."""
    event = loads(event_json)
    if not event.get("content"):
        yield event_json
        return
    yield dumps({**event, "actions": {**event["actions"], "artifactDelta": {}}})
    yield dumps({key: value for key, value in event.items() if key != "content"})


def _failure(error: Exception, run: Run) -> Response:
    """Return the response for a run that raised (U-RUN-ERROR)."""
    message = _own_failure(error, run)
    if message is not None:
        return Response(dumps({"detail": message}), 500, media_type="application/json")
    details = _details(error, run)
    if ledger.choose("U-RUN-ERROR") == "text":
        return PlainTextResponse("Internal Server Error", 500)
    body = {"detail": _summary(error), "error_details": details}
    return Response(dumps(body), 500, media_type="application/json")


def _error_line(error: Exception, run: Run) -> bytes:
    """Return the last line of a stream whose run raised, in the real server's JSON format."""
    message = _own_failure(error, run)
    if message is not None:
        return json.dumps({"error": message}).encode()
    details = _details(error, run)
    if ledger.choose("U-RUN-SSE-ERROR") == "error-only":
        return dumps({"error": str(error)})
    return json.dumps({"error": _summary(error), "error_details": details}).encode()


def _own_failure(error: Exception, run: Run) -> str | None:
    """Return the message of a failure in the double, or None for an error of the agent."""
    if run.is_expected(error):
        return beneath(error)
    return report(error, f"The run of {run.key.app}")


def _details(error: Exception, run: Run) -> Mapping[str, Any]:
    advice = _NO_KEY if _ABOUT_KEYS.search(str(error)) else ""
    _log.error("The agent of %s raised.%s", run.key.app, advice, exc_info=error)
    details: dict[str, Any] = {
        "error_type": type(error).__name__,
        "error_message": str(error),
        "timestamp": run.now(),
    }
    if _log.isEnabledFor(logging.DEBUG):
        details["stacktrace"] = "".join(traceback.format_exception(error))
    return details


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
