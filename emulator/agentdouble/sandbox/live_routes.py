"""``/_emulator/outputs`` and ``/_emulator/complete``: a session's outputs and completions.

Notebooks use them. The first streams the outputs of the session's code while it runs. The second
returns the completions for the tab key in a cell.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core import threads
from agentdouble.errors import LiveError
from agentdouble.sandbox import languages
from agentdouble.sandbox.completions import no_completion
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.output_feed import Listener, OutputEvent
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.server.disconnects import ListenerResponse

_LARGE = 64 * 1024  # bytes; to write a larger event as JSON would block the loop


class Complete(BaseModel):
    """The code to complete, in a session and a language; ``cursor_pos`` is its end by default."""

    model_config = ConfigDict(strict=True)

    tool_id: str | None = None
    user_session_id: str
    code: str
    language: str = "python3"
    cursor_pos: int | None = Field(None, ge=0)


def live_routes(sessions: SandboxSessions, tool_id: str) -> list[Route]:
    """Return the routes below the double's own prefix; they raise LiveError and SandboxError."""

    async def outputs(request: Request) -> Response:
        """Stream the outputs of a session's code while it runs, from now on."""
        query = request.query_params
        if "user_session_id" not in query:
            raise LiveError("'user_session_id' is missing.")
        key = InstanceKey(query.get("tool_id", tool_id), query["user_session_id"])
        return ListenerResponse(sessions.feed.listen(key), _written)

    async def complete(request: Request) -> Response:
        """Complete code with the session's own living kernel."""
        try:
            body = Complete.model_validate_json(await request.body())
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            field = ".".join(map(str, wrong["loc"]))
            raise LiveError(f"{field!r} {wrong['msg']}.") from None
        position = len(body.code) if body.cursor_pos is None else body.cursor_pos
        if position > len(body.code):
            raise LiveError(f"'cursor_pos' must be from 0 to {len(body.code)}.")
        language = languages.find(body.language)
        completion = no_completion(position)
        session = await sessions.find(body.tool_id or tool_id, body.user_session_id)
        if session is not None:
            completion = await session.processes.complete(body.code, position, language)
        ends = {"cursor_start": completion.start, "cursor_end": completion.end}
        return JSONResponse({"matches": completion.matches, **ends})

    return [Route("/outputs", outputs), Route("/complete", complete, methods=["POST"])]


async def _written(listener: Listener) -> AsyncGenerator[str, None]:
    async with aclosing(listener.events()) as events:
        async for event in events:
            yield await _event(event)


async def _event(event: OutputEvent) -> str:
    if event.size < _LARGE:
        return _sse(event)
    return await threads.run_in_thread(lambda: _sse(event))


def _sse(event: OutputEvent) -> str:
    return f"event: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
