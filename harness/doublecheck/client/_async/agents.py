"""The agents of API-server mode: their sessions, runs and artifacts (sections 2.2 to 2.4, 4.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.core.code_tool import DEFAULT_USER
from doublecheck.client._async.connection import AsyncConnection, events
from doublecheck.client.arguments import require
from doublecheck.values.agents import AgentEvent, AgentEvents, AgentSession, AgentSessions
from doublecheck.values.executions import checked
from doublecheck.wire import api_server, application, calls, near_misses
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

# The real server ignores other fields. Where it accepts two spellings, both are here.
_RUN_FIELDS = (
    *("check", "streaming", "appName", "userId", "sessionId", "newMessage", "stateDelta"),
    *("state_delta", "functionCallEventId", "function_call_event_id", "invocationId"),
    *("invocation_id", "customMetadata", "custom_metadata", "serviceTier", "service_tier"),
)

T = TypeVar("T")


class AsyncAgents:
    """The agents of a platform, and the sessions that users have with them.

    Every method raises RefusedError if the platform refuses.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list_apps(self) -> tuple[str, ...]:
        """Return the names of the agents, which are the applications of requests (API-01)."""
        return await self._call("GET", "/list-apps", api_server.read_apps)

    async def create(
        self,
        app: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> AgentSession:
        """Create a session with an agent; the id is generated unless given (API-02, API-03)."""
        fields = {"sessionId": session_id, "state": None if state is None else dict(state)}
        body = {name: value for name, value in fields.items() if value is not None}
        path = api_server.sessions_path(app, user_id)
        session = await self._call("POST", path, api_server.read_session, body)
        return _addressed(session, app, user_id)

    async def get(self, app: str, session_id: str, *, user_id: str = DEFAULT_USER) -> AgentSession:
        """Return a session with its history (API-05)."""
        path = api_server.session_path(app, user_id, session_id)
        session = await self._call("GET", path, api_server.read_session)
        return _addressed(session, app, user_id)

    async def list(self, app: str, *, user_id: str = DEFAULT_USER) -> AgentSessions:
        """Return a user's sessions with an agent, without their histories (API-04)."""
        path = api_server.sessions_path(app, user_id)
        sessions = await self._call("GET", path, api_server.read_sessions)
        return AgentSessions(_addressed(session, app, user_id) for session in sessions)

    async def delete(self, session: AgentSession) -> None:
        """Delete a session (API-06)."""
        await self._call("DELETE", _path(session, "delete"), calls.refuse)

    async def run(
        self, session: AgentSession, message: str, *, check: bool = False, **fields: Any
    ) -> AgentEvents:
        """Run a session's agent for one turn and return its events (API-07).

        ``fields`` are further fields of the request, for example ``stateDelta``. With ``check`` an
        event that reports a failure raises ResultError.
        """
        request = self._turn("run", session, message, fields)
        return checked(await self._connection.call(Call(request, api_server.read_events)), check)

    async def run_sse(
        self,
        session: AgentSession,
        message: str,
        *,
        streaming: bool = False,
        check: bool = False,
        **fields: Any,
    ) -> AsyncGenerator[AgentEvent]:
        """Run a session's agent and yield its events as they arrive (API-08).

        With ``streaming`` the text arrives in increments first. A failure is an event with
        ``error``; with ``check`` it raises ResultError. The run begins when the first event is
        read.

        To stop early, close the iterator, as for ``Platform.stream()``.
        """
        request = self._turn("run_sse", session, message, {"streaming": streaming, **fields})
        async with (
            self._connection.streaming(request) as response,
            events(response, application.refuse_no_stream) as arriving,
        ):
            async for event in arriving:
                yield checked(api_server.read_event(event.data), check)

    async def list_artifacts(self, session: AgentSession) -> tuple[str, ...]:
        """Return the names of a session's artifacts (API-13)."""
        path = f"{_path(session, 'list_artifacts')}/artifacts"
        return await self._call("GET", path, api_server.read_names)

    async def download_artifact(
        self, session: AgentSession, name: str, *, version: int | None = None
    ) -> bytes:
        """Download an artifact of a session, by default its newest version.

        A text is encoded as UTF-8. The specification only describes the list of artifacts
        (U-ARTIFACTS). This uses the route of ADK's API server; a platform without it raises
        RefusedError.
        """
        artifacts = f"{_path(session, 'download_artifact')}/artifacts"
        path = f"{artifacts}/{api_server.segment('name', name)}"
        query = "" if version is None else f"?version={version}"
        return await self._call("GET", path + query, api_server.read_content)

    def _turn(
        self, name: str, session: AgentSession, message: str, fields: Mapping[str, Any]
    ) -> Request:
        require(session, AgentSession, name, "the session that create() or get() returned")
        near_misses.warn(name, fields, _RUN_FIELDS)
        return self._request("POST", f"/{name}", api_server.body(session, message, fields))

    async def _call(
        self, method: str, path: str, read: Callable[[httpx.Response], T], body: Any = None
    ) -> T:
        return await self._connection.call(Call(self._request(method, path, body), read))

    def _request(self, method: str, path: str, body: Any) -> Request:
        if body is None:
            return calls.request(self._connection.target, method, path)
        return calls.json_request(self._connection.target, method, path, body)

    def __repr__(self) -> str:
        return f"<AsyncAgents of {self._connection.target.at('api_server')}>"


def _path(session: AgentSession, method: str) -> str:
    require(session, AgentSession, method, "the session that create() or get() returned")
    return api_server.session_path(session.app_name, session.user_id, session.id)


def _addressed(session: AgentSession, app: str, user_id: str) -> AgentSession:
    """Return a session with the requested application and user, whatever the answer names.

    They are its address: later requests must go to the same place.
    """
    return replace(session, app_name=app, user_id=user_id)
