"""The answers of /run and /run_sse: framing, errors, and clients that go away (sections 5 and 6)."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from agentdouble import ledger
from agentdouble.api_server import views
from agentdouble.api_server.encoding import dumps, loads
from agentdouble.api_server.records import Shown
from agentdouble.api_server.runs import Run
from agentdouble.disconnects import gone
from agentdouble.errors import ApiError, StateError
from agentdouble.failing import beneath, report

_log = logging.getLogger(__name__)


class RunAnswer(Response):
    """An answer that runs an agent, and ends the run when nobody waits for it any more."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the agent and send what it says."""
        here = asyncio.current_task()
        assert here is not None
        leaving = asyncio.ensure_future(gone(receive))
        over = False

        def left(_: object) -> None:
            if not over:
                here.cancel()

        leaving.add_done_callback(left)
        try:
            await self._answer(scope, receive, send)
        except asyncio.CancelledError:
            if not leaving.done():
                raise
            _log.info("The client of a run in session %r went away.", self._run.key.id)
            if sys.version_info >= (3, 11):
                here.uncancel()
        finally:
            over = True
            leaving.cancel()

    @abstractmethod
    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class EventList(RunAnswer):
    """All events of the turn as one list (API-07)."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown: list[Any] = []

        async def show(events: Sequence[Shown]) -> None:
            shown.extend(views.events(event.json for event in events))

        try:
            await self._run.execute(show)
        except (ApiError, StateError):  # not the agent's
            raise
        except Exception as error:
            await _failure(error, self._run)(scope, receive, send)
            return
        await Response(dumps(shown), media_type="application/json")(scope, receive, send)


class EventStream(RunAnswer):
    """A stream of events, one line of ``data:`` and one chunk each (API-08).

    ``whole`` leaves content and artifacts together, which otherwise are sent apart.
    """

    def __init__(self, run: Run, *, whole: bool) -> None:
        super().__init__(run)
        self._whole = whole

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def line(data: bytes) -> None:
            body = b"data: " + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async def show(events: Sequence[Shown]) -> None:
            for event in events:
                if event.artifacts and not self._whole:
                    for one in _apart(event.json):
                        await line(views.event(one))
                else:
                    await line(views.event(event.json))

        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        try:
            await self._run.execute(show)
        except Exception as error:
            await line(_error_line(error, self._run))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]


def _apart(json: bytes) -> Iterator[bytes]:
    """Yield an event's content and its artifacts one after the other, if it has both."""
    event = loads(json)
    if not event.get("content"):
        yield json
        return
    yield dumps({**event, "actions": {**event["actions"], "artifactDelta": {}}})
    yield dumps({key: value for key, value in event.items() if key != "content"})


def _failure(error: Exception, run: Run) -> Response:
    """Return the answer to a run that raised (U-RUN-ERROR)."""
    told = _told(error, run)
    if told is not None:
        return Response(dumps({"detail": told}), 500, media_type="application/json")
    details = _details(error, run)
    if ledger.choose("U-RUN-ERROR") == "text":
        return PlainTextResponse("Internal Server Error", 500)
    body = {"detail": _in_short(error), "error_details": details}
    return Response(dumps(body), 500, media_type="application/json")


def _error_line(error: Exception, run: Run) -> bytes:
    """Return the last line of a stream whose run raised, in the real server's style of JSON."""
    told = _told(error, run)
    if told is not None:
        return json.dumps({"error": told}).encode()
    details = _details(error, run)
    if ledger.choose("U-RUN-SSE-ERROR") == "error-only":
        return dumps({"error": str(error)})
    return json.dumps({"error": _in_short(error), "error_details": details}).encode()


def _told(error: Exception, run: Run) -> str | None:
    """Return what is told of a failure of the double's own, None for one of the agent's."""
    if run.is_expected(error):
        return beneath(error)
    return report(error, f"The run of {run.key.app}")


def _details(error: Exception, run: Run) -> Mapping[str, Any]:
    _log.error("The agent of %s raised.", run.key.app, exc_info=error)
    details: dict[str, Any] = {
        "error_type": type(error).__name__,
        "error_message": str(error),
        "timestamp": run.now(),
    }
    if _log.isEnabledFor(logging.DEBUG):
        details["stacktrace"] = "".join(traceback.format_exception(error))
    return details


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
