"""The routes of section 4.2: they parse a request, call a service and serialize the result."""

from __future__ import annotations

import builtins
import contextlib
import logging
import platform
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentdouble.agents.agent import Agent
from agentdouble.agents.framework import is_instance_of
from agentdouble.api_server import RUN_LIVE, models, request_values, response_json
from agentdouble.api_server.json_text import dumps
from agentdouble.api_server.models import Json
from agentdouble.api_server.run_responses import EventListResponse, RunStreamResponse
from agentdouble.api_server.runs import Runs
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import SessionKey
from agentdouble.core import ledger
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import ApiError, NotBuiltError, StateError
from agentdouble.journal.failures import report
from agentdouble.openapi import Answer, hidden, operation
from agentdouble.openapi.operation import EVENTS

_AGENT_INFO = "google.adk.utils.agent_info"
_LLM_AGENT = "google.adk.agents.llm_agent", "LlmAgent"
_COMPUTER_USE = "google.adk.tools.computer_use.computer_use_toolset", "ComputerUseToolset"

SESSIONS = "/apps/{app}/users/{user}/sessions"
SESSION = SESSIONS + "/{session}"

Endpoint = Callable[[Request], Awaitable[Response]]

_UNBUILT = {
    ("GET", "/docs"): "The page of its routes",
    ("POST", "/agent-identity/finalize"): "The agent identity",
}
_log = logging.getLogger(__name__)


class Applications:
    """Describes the applications whose agents ``runs`` has."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def names(self) -> list[str]:
        """Return the names of all applications, sorted."""
        return self._runs.directory.names()

    async def described(self) -> list[dict[str, Any]]:
        """Describe every application that can be imported."""
        descriptions = []
        for app in self.names():
            with contextlib.suppress(ApiError):
                descriptions.append(self._description(app, await self._runs.agent(app)))
        return descriptions

    async def info(self, app: str) -> dict[str, Any]:
        """Describe an LlmAgent, its sub-agents and their tools; raise ApiError for others."""
        agent = await self._runs.agent(app)
        root = _root(agent)
        if not is_instance_of(root, *_LLM_AGENT):
            raise ApiError(400, "Root agent is not an LlmAgent")
        # A toolset may connect to a server to list its tools: the application's loop does that.
        agents = await self._runs.loops.call(app, lambda: _agents(app, root))
        described = self._description(app, agent)
        return {**described, "language": "python", "isComputerUse": False, "agents": agents}

    def _description(self, app: str, agent: Agent) -> dict[str, Any]:
        tools = getattr(_root(agent), "tools", None) or ()
        return {
            "name": app,
            "rootAgentName": agent.name,
            "description": agent.description,
            "language": self._runs.directory.language(app),
            "isComputerUse": any(is_instance_of(tool, *_COMPUTER_USE) for tool in tools),
            "agents": None,
        }


def _root(agent: Agent) -> Any:
    """Return the framework's agent, even from inside an App."""
    return getattr(agent.native, "root_agent", agent.native)


async def _agents(app: str, root: Any) -> Mapping[str, Any]:
    try:
        await import_in_thread(_AGENT_INFO)
    except ModuleNotFoundError:
        raise ApiError(501, "app-info requires a newer google-adk, with agent_info.") from None
    from google.adk.utils.agent_info import get_agents_dict  # optional: google-adk

    try:
        agents = await get_agents_dict(root)
    except Exception as error:  # of a toolset of the user
        message = f"The tools of {app!r} cannot be listed: {type(error).__name__}: {error}"
        raise ApiError(500, message) from error
    return {
        name: agent.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, agent in agents.items()
    }


class SessionRoutes:
    """The routes of sessions."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions

    def routes(self) -> list[BaseRoute]:
        """Return the routes; the first route of a path names the method that a 405 allows."""
        return [
            route("GET", SESSIONS, self.list),
            route("POST", SESSIONS, self.create),
            route("GET", SESSION, self.read),
            route("POST", SESSION, self.create_with_id),
            route("DELETE", SESSION, self.delete),
            route("PATCH", SESSION, self.update),
        ]

    @operation(response_json.Session, body=models.CreateSession | None, optional=True)
    async def create(self, request: Request) -> Response:
        """Create a session; its id is generated unless the body gives one (API-02)."""
        body = await request_values.optional(request, request_values.CREATE)
        return json(response_json.session(await self._sessions.create(*_user(request), body)))

    @operation(response_json.Session, body=Json | None, optional=True)
    async def create_with_id(self, request: Request) -> Response:
        """Create a session with the id in the path; the body is its state (API-03)."""
        state = await request_values.optional(request, request_values.STATE)
        return json(response_json.session(await self._sessions.create_with_id(key(request), state)))

    @operation(response_json.Sessions)
    async def list(self, request: Request) -> Response:
        """List a user's sessions (API-04)."""
        return json(response_json.sessions(await self._sessions.of_user(*_user(request))))

    @operation(response_json.Session)
    async def read(self, request: Request) -> Response:
        """Return a session with its history (API-05)."""
        return json(response_json.session(await self._sessions.read(key(request))))

    @operation((Answer(type(None)), Answer(None, 204)))
    async def delete(self, request: Request) -> Response:
        """Delete a session (API-06, U-SESSION-DELETE)."""
        await self._sessions.delete(key(request))
        if ledger.choose("U-SESSION-DELETE") == "204":
            return Response(status_code=204)
        return json(b"null")

    @operation(response_json.Session, body=models.UpdateSession)
    async def update(self, request: Request) -> Response:
        """Change a session's state."""
        body = await request_values.required(request, request_values.UPDATE)
        return json(
            response_json.session(await self._sessions.update(key(request), body.state_delta))
        )


class RunRoutes:
    """The routes of runs and of the applications."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._applications = Applications(runs)

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            route("POST", "/run", self.run),
            route("POST", "/run_sse", self.run_sse),
            route("GET", "/list-apps", self.list_apps),
            route("GET", "/apps/{app}/app-info", self.app_info),
            route("PATCH", "/apps/{app}/users/{user}/memory", self.remember),
        ]

    @operation(builtins.list[models.EventBody], body=models.RunRequest)
    async def run(self, request: Request) -> Response:
        """Run an agent and return all events of the turn (API-07)."""
        body = await request_values.required(request, request_values.RUN)
        return EventListResponse(await self._runs.prepare(body, streaming=False))

    @operation(Answer(str, media_type=EVENTS), body=models.RunRequest)
    async def run_sse(self, request: Request) -> Response:
        """Run an agent and stream its events (API-08, API-09)."""
        body = await request_values.required(request, request_values.RUN)
        run = await self._runs.prepare(body, streaming=body.streaming)
        return RunStreamResponse(run, together=bool(body.function_call_event_id))

    @operation(builtins.list[str] | response_json.Described, query=response_json.AppsQuery)
    async def list_apps(self, request: Request) -> Response:
        """List the applications (API-01, U-LIST-APPS)."""
        detailed = request_values.flag(request, "detailed")
        if detailed or ledger.choose("U-LIST-APPS") == "detailed":
            return json(dumps({"apps": await self._applications.described()}))
        return json(dumps(self._applications.names()))

    @operation(Json)
    async def app_info(self, request: Request) -> Response:
        """Describe the agents of an application."""
        return json(dumps(await self._applications.info(request.path_params["app"])))

    @operation(type(None), body=models.UpdateMemory)
    async def remember(self, request: Request) -> Response:
        """Add a session to the memory that its application's agents search."""
        body = await request_values.required(request, request_values.MEMORY)
        await self._runs.add_session_to_memory(SessionKey(*_user(request), body.session_id))
        return json(b"null")


def unbuilt_routes() -> list[BaseRoute]:
    """Return routes of the real server that are beyond section 4.2; they answer 501."""
    return [
        *(route(method, path, _unbuilt(feature)) for (method, path), feature in _UNBUILT.items()),
        WebSocketRoute(RUN_LIVE, _run_live),
    ]


def _unbuilt(feature: str) -> Endpoint:
    @hidden
    async def refuse(_request: Request) -> Response:
        raise ApiError(501, str(NotBuiltError(f"{feature} of API-server mode")))

    return refuse


async def _run_live(websocket: WebSocket) -> None:
    refusal = str(NotBuiltError("The live run (/run_live) of API-server mode"))
    await websocket.send_denial_response(refused(501, refusal))


@operation(response_json.Health)
async def health(_request: Request) -> Response:
    """Report that the server is running (API-14, U-API-HEALTH)."""
    ledger.choose("U-API-HEALTH")
    return json(b'{"status":"ok"}')


class VersionRoute:
    """The versions of the server and of the language (API-15)."""

    def __init__(self, version: str) -> None:
        self._body = dumps(
            {
                "version": version,
                "language": "python",
                "language_version": platform.python_version(),
            }
        )

    @operation(response_json.Version)
    async def show(self, _request: Request) -> Response:
        """Return the versions (U-API-VERSION)."""
        ledger.choose("U-API-VERSION")
        return json(self._body)


class Application:
    """An ASGI application of routes that answers errors with ``{"detail": ...}``."""

    def __init__(self, routes: list[BaseRoute]) -> None:
        self.router = Router(routes)

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return self.router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an error before the response begins is answered in JSON."""
        has_begun = False
        scope["app"] = self  # for Starlette: its routes raise errors, and do not answer in text

        async def noting_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.router(scope, receive, noting_send)
        except (ApiError, HTTPException, StateError) as error:
            if has_begun:
                raise
            await _refusal(error)(scope, receive, send)
        except ClientDisconnect:
            raise
        except Exception as error:
            if has_begun:
                raise
            await refused(500, report(error, "The API server"))(scope, receive, send)


def route(method: str, path: str, endpoint: Endpoint) -> Route:
    """Return a route for one method; GET does not include HEAD."""
    new = Route(path, endpoint, methods=[method])
    new.methods = {method}
    return new


def json(body: bytes, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(body, status, media_type="application/json")


def refused(status: int, detail: object) -> Response:
    """Return the response of a refusal."""
    return json(dumps({"detail": detail}), status)


def _user(request: Request) -> tuple[str, str]:
    return request.path_params["app"], request.path_params["user"]


def key(request: Request) -> SessionKey:
    """Return the key of the session in the path."""
    return SessionKey(*_user(request), request.path_params["session"].strip())


def _refusal(error: ApiError | HTTPException | StateError) -> Response:
    if isinstance(error, StateError):
        _log.error("A request failed: %s", error)
        return refused(error.status, str(error))
    if isinstance(error, ApiError):
        return refused(error.status, error.detail)
    response = refused(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response
