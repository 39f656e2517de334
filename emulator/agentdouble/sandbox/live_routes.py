"""``/_emulator/outputs`` and ``/_emulator/complete``: a session, as a notebook shows it.

The first sends the outputs of the session's code while it runs. The second sends the completions
that the tab key shows in a cell.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import strict_json, threads
from agentdouble.disconnects import ListenerResponse
from agentdouble.errors import LiveRequestError
from agentdouble.sandbox import languages
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.output_feed import Event, Listener
from agentdouble.sandbox.questions import no_completion
from agentdouble.sandbox.session import InstanceKey

T = TypeVar("T")

_LARGE = 64 * 1024  # bytes; to write a larger event as JSON would block the loop


def live_routes(instances: Instances, tool_id: str) -> list[Route]:
    """Return the routes below the double's own prefix; they raise LiveError and SandboxError."""
    routes = _Routes(instances, tool_id)
    return [
        Route("/outputs", routes.outputs),
        Route("/complete", routes.complete, methods=["POST"]),
    ]


class _Routes:
    def __init__(self, instances: Instances, tool_id: str) -> None:
        self._instances = instances
        self._tool_id = tool_id

    async def outputs(self, request: Request) -> Response:
        """Send the outputs of a session's code while it runs, from now on."""
        query = request.query_params
        tool_id = query.get("tool_id", self._tool_id)
        key = InstanceKey(tool_id, _given(query, "user_session_id", str))
        return ListenerResponse(self._instances.feed.listen(key), _written)

    async def complete(self, request: Request) -> Response:
        """Complete code with the session's own living kernel."""
        asked = _json_object(await request.body())
        instance = await self._instances.find(
            _given(asked, "tool_id", str, self._tool_id), _given(asked, "user_session_id", str)
        )
        code, language = _code(asked), _given(asked, "language", str, "python3")
        place = _given(asked, "cursor_pos", int, len(code))
        if not 0 <= place <= len(code):
            raise LiveRequestError("cursor_pos", f"must be from 0 to {len(code)}, not {place}")
        languages.find(language)
        found = no_completion(place)
        if instance is not None:
            found = await instance.complete(code, place, language)
        ends = {"cursor_start": found.start, "cursor_end": found.end}
        return JSONResponse({"matches": found.matches, **ends})


async def _written(listener: Listener) -> AsyncGenerator[str, None]:
    async with aclosing(listener.events()) as events:
        async for event in events:
            yield await _event(event)


async def _event(event: Event) -> str:
    if event.size < _LARGE:
        return _sse(event)
    return await threads.run_in_thread(lambda: _sse(event))


def _sse(event: Event) -> str:
    return f"event: {event.kind}\ndata: {json.dumps(event.data)}\n\n"


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        document = strict_json.loads(body)
    except (ValueError, RecursionError) as error:
        raise LiveRequestError("body", f"is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise LiveRequestError("body", "is no JSON object")
    return document


def _code(asked: Mapping[str, Any]) -> str:
    code = _given(asked, "code", str)
    try:
        code.encode()
    except UnicodeEncodeError as error:
        reason = f"is no valid Unicode text at position {error.start}"
        raise LiveRequestError("code", reason) from None
    return code


def _given(fields: Mapping[str, Any], name: str, kind: type[T], default: T | None = None) -> T:
    value = fields.get(name, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise LiveRequestError(name, f"must be {_KINDS[kind]}")
    return value


_KINDS: Mapping[type, str] = {str: "a string", int: "a whole number"}
