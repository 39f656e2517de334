"""The sandbox: tools, sessions, their data plane, and Jupyter's API over them, below ``/jupyter``.

``/_emulator/sessions``: facts about sandbox sessions that no action of the platform returns.

====================================== =========================================================
``GET  /sessions``                     ``{"sessions": [...], "ended": [...]}``: see ``session_events``
``POST /sessions/{id}/interrupt``      ``{"SessionId", "interrupted": ["python3"]}``: the languages
                                       whose code was interrupted
``GET  /sessions/{id}/variables``      ``{"SessionId", "language", "state", "variables":
       ``?language=python3``           [{"name", "type", "repr", "size"}], "left_out"}``, ``state``
                                       idle, busy, none (no kernel yet) or silent
``GET  /nodes``                        ``{"nodes": [...]}``: the nodes on which sessions run
``POST /nodes/{name}/drain``           places no more sessions on a node; body
                                       ``{"deadline_s": 1800}``, when those that live there end
====================================== =========================================================

``{id}`` is the SessionId. An unknown or ended session is 404. CreateSession, PauseSession and the
other actions do the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from typing_extensions import TypedDict

from agentdouble.control_plane.action_methods import Action
from agentdouble.errors import InstanceEndedError, UnknownSessionError
from agentdouble.jupyter import PREFIX
from agentdouble.openapi import Format
from agentdouble.sandbox import languages
from agentdouble.sandbox.data_plane import session_token
from agentdouble.sandbox.data_plane.session_token import SessionQuery
from agentdouble.sandbox.live_routes import live_routes
from agentdouble.sandbox.placement import Placement
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_events import ended, living
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.tools import Tools
from agentdouble.sandbox.workbench.wire import Envelope, WrongFields
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.applications import HostedApplications
from agentdouble.surfaces.surface import (
    DataPart,
    LateApp,
    RouteRefusedError,
    Surface,
    SurfaceContext,
    counted,
    read_json,
)

if TYPE_CHECKING:
    from agentdouble.jupyter.session_kernels import SessionKernels

LONGEST_DRAIN_S = 30 * 86_400


class _Deadline(TypedDict):
    deadline_s: Annotated[float, Field(strict=True, ge=0, le=LONGEST_DRAIN_S)]


def _json(value: object) -> Response:
    """Return JSON with escapes, because texts of a session may not be valid Unicode."""
    return Response(json.dumps(value), media_type="application/json")


_ALL_BELOW = ("", "/{rest:path}")


class Sandbox(Surface):
    """The sessions, which run code (SBX)."""

    name = "Sessions of the sandbox"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        settings, clock, store = context.settings, context.clock, context.store
        self.data_plane = LateApp(self._make_data_plane, "agentdouble.sandbox.data_plane.routes")
        self.tools = Tools(clock, settings.tool_id, store, most=settings.max_tools)
        self.tools.publish_to(context.events)
        self.sessions = SandboxSessions(
            clock,
            settings,
            store=store,
            variables_of=self.tools.variables,
            events=context.events,
            placement=self._placement(),
        )
        self.snapshots = SessionSnapshots(
            clock, settings, self.sessions, store, self.tools.enables_snapshots
        )

    def _placement(self) -> Placement | None:
        if self.context.settings.nodes is None:
            return None
        from agentdouble.sandbox.nodes.node_placement import (  # only for doubles with nodes
            NodePlacement,
        )

        return NodePlacement(self.context.settings, self.context.ledger, self.context.version)

    def paths(self) -> Mapping[str, str]:
        """Return the path of the data plane."""
        return {f"{session_token.PREFIX}/...": "a session's files, terminals, code and browser"}

    def state(self) -> str:
        """Return the number of sessions and tools."""
        sessions, tools = len(self.sessions), len(self.tools.all())
        return f"{counted(sessions, 'session')}, {counted(tools, 'tool')}"

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the data plane."""
        app = self.data_plane
        path = f"{session_token.PREFIX}/{{rest:path}}"
        also = (Route(f"{root}{tail}", app) for root in session_token.BESIDE for tail in _ALL_BELOW)
        return [Route(path, app), WebSocketRoute(path, app), *also]

    def format(self) -> Format:
        """Return the envelope, with the session and its token in the request."""
        return Format(
            self.name,
            error=Envelope | WrongFields,
            security=("sessionToken",),
            query=SessionQuery,
        )

    def _make_data_plane(self) -> ASGIApp:
        from agentdouble.sandbox.data_plane.routes import data_plane  # slow: 20 ms

        return data_plane(self.sessions, self.context.settings, self.context.version)

    def actions(self) -> Mapping[str, Action]:
        """Return InvokeTool and the actions that manage tools and sessions."""
        from agentdouble.control_plane.actions import (  # slow: 60 ms
            AsyncCommandActions,
            InvokeTool,
            SessionActions,
            SnapshotActions,
            ToolActions,
        )

        return {
            "InvokeTool": InvokeTool(self.sessions, self.tools, self.context.settings),
            **ToolActions(self.tools, self.sessions, self.snapshots).by_name(),
            **SessionActions(self.sessions, self.snapshots, self.tools).by_name(),
            **AsyncCommandActions(self.sessions).by_name(),
            **SnapshotActions(self.snapshots, self.sessions, self.tools).by_name(),
        }

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes that show sessions, and those for live output."""
        return [
            Route("/sessions", self._list_sessions),
            Route("/sessions/{session_id}/interrupt", self._interrupt, methods=["POST"]),
            Route("/sessions/{session_id}/variables", self._variables),
            Route("/snapshots", self._list_snapshots),
            Route("/nodes", self._nodes),
            Route("/nodes/{name}/drain", self._drain, methods=["POST"]),
            *live_routes(self.sessions, self.context.settings.tool_id),
        ]

    async def _list_sessions(self, _request: Request) -> Response:
        """Return the living sessions, and the reasons why others ended."""
        self.sessions.destroy_due()
        alive = [living(session, self.context.clock) for session in self.sessions.living()]
        ended_sessions = [
            ended(session, self.sessions.asleep(session.id)) for session in self.sessions.ended()
        ]
        return JSONResponse({"sessions": alive, "ended": ended_sessions})

    async def _list_snapshots(self, _request: Request) -> Response:
        """Return the snapshots of all tools, the oldest first, with what they do not contain."""
        return JSONResponse({"snapshots": [it.to_document() for it in self.snapshots.all()]})

    async def _interrupt(self, request: Request) -> Response:
        """Interrupt the code that runs in a session; return when it has ended, or after 2 s."""
        session = await self._find(request)
        return _json(
            {"SessionId": session.id, "interrupted": [*await session.processes.interrupt()]}
        )

    async def _variables(self, request: Request) -> Response:
        """Return the variables of a session's idle kernel; this does not count as use."""
        session = await self._find(request)
        language = request.query_params.get("language", "python3")
        kind = languages.find(language)
        if kind is not languages.PYTHON:
            message = f"Variables of {kind.display_name} cannot be listed, only those of Python."
            raise RouteRefusedError(message, 501, "NotImplemented")
        listed = await session.processes.list_variables()
        document = {
            "SessionId": session.id,
            "language": language,
            "state": listed.state,
            "variables": [*listed.variables],
            "left_out": listed.omitted,
        }
        return _json(document)

    async def _nodes(self, _request: Request) -> Response:
        """Return the nodes: state, sessions, capacity and load."""
        return JSONResponse({"nodes": self.sessions.placement.list_nodes()})

    async def _drain(self, request: Request) -> Response:
        """Drain a node; return the nodes at once, while its sessions live on."""
        expected = 'The body must be {"deadline_s": N} with N seconds, 0 or more'
        try:
            document = read_json(await request.body(), expected)
            deadline_s = TypeAdapter(_Deadline).validate_python(document)["deadline_s"]
        except ValueError as error:
            raise RouteRefusedError(f"{expected}: {error}") from None
        self.sessions.placement.drain(request.path_params["name"], deadline_s)
        return await self._nodes(request)

    async def _find(self, request: Request) -> SandboxSession:
        session_id = request.path_params["session_id"]
        try:
            return await self.sessions.look_up(session_id)
        except InstanceEndedError as error:
            raise RouteRefusedError(str(error), 404, "NotFound") from None
        except UnknownSessionError:
            message = f"No session instance {session_id!r}."
            raise RouteRefusedError(message, 404, "NotFound") from None

    def health(self) -> Mapping[str, Any]:
        """Return the number of living sessions."""
        return {"instances": len(self.sessions)}

    async def restore(self) -> None:
        await self.sessions.placement.check_access()
        await self.tools.load()
        await self.sessions.load()
        await self.snapshots.load()

    def parts(self) -> Sequence[DataPart]:
        """Return the sessions, their snapshots, and the tools."""
        tools = DataPart("tools", self._reset_tools, in_state=True)
        snapshots = DataPart("session_snapshots", self._reset_snapshots, in_state=True)
        return [DataPart("sessions", self._reset_sessions), snapshots, tools]

    async def _reset_sessions(self, wait: bool) -> None:
        await self.sessions.reset("the double was reset", wait=wait)

    async def _reset_snapshots(self, wait: bool) -> None:
        await self.snapshots.reset(wait=wait)

    async def _reset_tools(self, _wait: bool) -> None:
        before = self.tools.all()
        await self.tools.reset()
        ids = {tool.id for tool in self.tools.all()}
        for tool in before:
            if tool.id not in ids:
                await self.sessions.destroy_of(tool.id, "its tool is gone")
                await self.snapshots.drop_of(tool.id)

    async def settle(self) -> None:
        await self.sessions.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.sessions.close)
            stack.push_async_callback(self.snapshots.close)
            for background in (self.sessions.reap(), self.sessions.usage.watch()):
                stack.callback(asyncio.ensure_future(background).cancel)
            self.sessions.placement.start()
            yield

    def begin_shutdown(self) -> None:
        self.sessions.feed.close()


class JupyterServer(Surface):
    """Sessions of the sandbox as kernels of a Jupyter server."""

    name = "Jupyter"
    is_documented = False

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        self._app = LateApp(self._make_app, "agentdouble.jupyter.jupyter_routes")

    @cached_property
    def _kernels(self) -> SessionKernels:
        from agentdouble.jupyter.session_kernels import SessionKernels  # slow: zmq, 0.2 s

        context, sandbox = self.context, self.context.surface(Sandbox)
        tool_id, clock = context.settings.tool_id, context.clock
        return SessionKernels(sandbox.sessions, tool_id, clock, sandbox.tools.name_of, self._agents)

    def _agents(self) -> Collection[str]:
        """Return the names of applications and agents, which begin the names of their sessions."""
        applications = self.context.surface(HostedApplications).hosted
        return {*applications.names, *self.context.surface(ApiServerMode).agents.names()}

    def _make_app(self) -> ASGIApp:
        from agentdouble.jupyter.jupyter_routes import jupyter_app  # slow: zmq, 0.2 s

        return jupyter_app(self._kernels, self.context.version)

    def paths(self) -> Mapping[str, str]:
        """Return the address for ``jupyter lab --gateway-url``."""
        return {PREFIX: "sessions as kernels: jupyter lab --gateway-url"}

    def state(self) -> str:
        """Return whether a client has used it."""
        return "in use" if "_kernels" in vars(self) else "not used yet"

    def routes(self) -> Sequence[BaseRoute]:
        """Return one route for all."""
        return [Mount(PREFIX, self._app)]

    def begin_shutdown(self) -> None:
        if "_kernels" in vars(self):
            self._kernels.close()
