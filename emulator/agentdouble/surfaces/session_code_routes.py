"""``/_emulator/sessions/{id}/...``: routes that run code in a session, as its agent does.

====================================== =========================================================
``POST /sessions/{id}/run``            ``{"code", "language"?: "python3", "timeout_s"?: 60}``
``POST /sessions/{id}/interrupt``      ``{"SessionId", "interrupted": ["python3"]}``: the languages
                                       whose code was interrupted
``GET  /sessions/{id}/variables``      ``{"SessionId", "language", "state", "variables":
       ``?language=python3``           [{"name", "type", "repr", "size"}], "left_out"}``, ``state``
                                       idle, busy, none (no kernel yet) or silent
====================================== =========================================================

The answer of ``run`` is NDJSON. It begins when the code does: until then a refusal has a status of
its own. Each line is an object with its ``event``, in the words of ``/_emulator/outputs``:

``started``: ``language``, ``execution_count``; ``output``: ``msg_type``, ``content``;
``dropped``: ``messages``, for a client that reads too slowly; and at the end ``finished``:
``status``, ``context_lost``, and ``result``, the JSON of section 2.7; or ``failed``: ``error`` with
``type`` and ``message``, if the session ended meanwhile. A client that disconnects interrupts the
code.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from typing_extensions import NotRequired, TypedDict

from agentdouble.control_plane.routes import Action
from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.errors import SandboxError
from agentdouble.guard import ErrorFields
from agentdouble.openapi import Answer, operation
from agentdouble.openapi.operation import NDJSON
from agentdouble.sandbox import languages, output_feed
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.output_feed import Listener
from agentdouble.sandbox.variables import State, Variable
from agentdouble.surfaces.admin import RefusedError
from agentdouble.surfaces.own_requests import Actions, as_refusals, json_object, late_actions
from agentdouble.surfaces.session_routes import find_instance
from agentdouble.threads import run_in_thread


def session_code_routes(instances: Instances, actions: Actions) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise RefusedError.

    ``actions`` returns those of the sandbox.
    """
    routes = _Routes(instances, actions)
    return [
        Route("/sessions/{session_id}/run", routes.run, methods=["POST"]),
        Route("/sessions/{session_id}/interrupt", routes.interrupt, methods=["POST"]),
        Route("/sessions/{session_id}/variables", routes.variables),
    ]


class Run(TypedDict):
    """Code to run in a session."""

    code: str
    language: NotRequired[str]
    timeout_s: NotRequired[Annotated[int, Field(ge=1)]]


class Interrupted(TypedDict):
    """A session whose code was interrupted, in these languages."""

    SessionId: str
    interrupted: list[str]


class VariablesQuery(TypedDict, total=False):
    """The language of the kernel, python3 by default."""

    language: str


class ShownVariables(TypedDict):
    """The variables of a session's kernel, and how many more there are."""

    SessionId: str
    language: str
    state: State
    variables: list[Variable]
    left_out: int


class _Routes:
    def __init__(self, instances: Instances, actions: Actions) -> None:
        self._instances = instances
        self._actions = actions

    @operation(Answer(str, media_type=NDJSON), body=Run, errors=(404, SandboxError))
    async def run(self, request: Request) -> Response:
        """Run code in a session and send its outputs as they come, each as a line of JSON."""
        instance = await find_instance(self._instances, request)
        asked = await json_object(await request.body(), Run.__annotations__)
        payload = {
            "code": asked.get("code"),
            "kernel_name": asked.get("language", "python3"),
            "timeout": asked.get("timeout_s"),
        }
        given = {name: value for name, value in payload.items() if value is not None}
        body = {
            "ToolId": instance.key.tool_id,
            "SessionId": instance.id,
            "OperationType": "RunCode",
            "OperationPayload": json.dumps(given),
        }
        invoke = (await late_actions(self._actions))["InvokeTool"]
        return _RunResponse(self._instances, instance, invoke, body)

    @operation(Interrupted, errors=(404,))
    async def interrupt(self, request: Request) -> Response:
        """Interrupt the code that runs in a session; return when it has ended, or after 2 s."""
        instance = await find_instance(self._instances, request)
        return _json({"SessionId": instance.id, "interrupted": [*await instance.interrupt()]})

    @operation(ShownVariables, query=VariablesQuery, errors=(404, 501, SandboxError))
    async def variables(self, request: Request) -> Response:
        """Return the variables of a session's kernel, if it is idle; this is no use of it."""
        instance = await find_instance(self._instances, request)
        language = request.query_params.get("language", "python3")
        with as_refusals():
            kind = languages.find(language)
        if kind is not languages.PYTHON:
            message = f"The variables of {kind.display_name} are not listed; those of Python are."
            raise RefusedError(501, "NotImplemented", message)
        listed = await instance.list_variables()
        shown: ShownVariables = {
            "SessionId": instance.id,
            "language": language,
            "state": listed.state,
            "variables": [*listed.found],
            "left_out": listed.left_out,
        }
        return _json(shown)


class _RunResponse(Response):
    """Runs code by InvokeTool, and sends what the session's listeners get of it."""

    media_type = NDJSON

    def __init__(
        self, instances: Instances, instance: Instance, invoke: Action, body: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._listening = instances.feed.listen(instance.key)
        self._invoke = invoke
        self._body = body
        self._run = f"run-{secrets.token_hex(8)}"
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(ClientDisconnect):
            await cancel_on_disconnect(receive, self._respond(send))

    async def _respond(self, send: Send) -> None:
        with self._listening as listener, output_feed.named_run(self._run):
            work = asyncio.ensure_future(self._invoke(self._body))
            work.add_done_callback(lambda _: listener.close())
            try:
                await self._follow(listener, work, send)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(
        self, listener: Listener, work: asyncio.Future[dict[str, Any]], send: Send
    ) -> None:
        last: Mapping[str, Any] = {}
        async for event in listener.events():
            if event.data.get("run") != self._run:
                continue
            if event.kind == "finished":
                last = event.data
            else:
                await self._send_line(send, event.kind, event.data)
        try:
            with as_refusals():
                result = await work
        except RefusedError as error:
            if not self._begun:
                raise
            refusal = error.refusal
            failure: ErrorFields = {"type": refusal.kind, "message": refusal.message}
            await self._send_line(send, "failed", {"error": failure})
            return
        document = await run_in_thread(lambda: json.loads(result["Result"]))
        lost = {"context_lost": False, "status": (document["data"] or {}).get("status", "error")}
        await self._send_line(send, "finished", {**lost, **last, "result": document})

    async def _send_line(self, send: Send, event: str, data: Mapping[str, Any]) -> None:
        said = {"event": event, **{name: value for name, value in data.items() if name != "run"}}
        line = await run_in_thread(lambda: json.dumps(said).encode() + b"\n")
        if not self._begun:
            self._begun = True
            headers = [(b"content-type", NDJSON.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": line, "more_body": True})


def _json(shown: Any) -> Response:
    """Return JSON with escapes, because texts of a session may be no valid Unicode."""
    return Response(json.dumps(shown), media_type="application/json")
