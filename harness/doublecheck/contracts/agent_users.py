"""Users of an application in API-server mode, and their sessions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from agentdouble.core.event_stream import data_of
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.engine import FAILURES, for_caller, renewed
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.values.agents import AgentEvent, AgentSession
from doublecheck.wire import api_server, calls
from doublecheck.wire.calls import Request
from doublecheck.wire.event_stream import is_stream

REFERENCE, SECOND = "doublecheck_reference", "doublecheck_second"
HARMLESS = "echo"
ROUTES = ("/run", "/run_sse")
GENERAL = ("/list-apps", "/version")  # the endpoints that do not name a session
HISTORY = json.dumps({"do": "history"})  # the reference agent's action
JSON = {"Content-Type": "application/json"}
ALONE = {**JSON, "Connection": "close"}  # a server may disconnect after an error


@dataclass(frozen=True)
class User:
    """A user of an application. The platform assigns the session ids.

    With ``leftovers``, its sessions are deleted when the check ends.
    """

    platform: Platform
    app: str
    id: str
    leftovers: Leftovers | None = field(default=None, compare=False, repr=False)

    def of(self, app: str) -> User:
        """Return the user with the same id at another application."""
        return replace(self, app=app)

    def create(self, session: str | None = None) -> str:
        """Create a session, with the given id or a generated one, and return its id."""
        self._note()
        path = self.path(session) if session else api_server.sessions_path(self.app, self.id)
        answer = self.platform.request("POST", path, headers=JSON, content=b"{}")
        return api_server.read_session(answer).id

    def may_create(self, session: str) -> bool:
        """Whether the platform accepts this session id. It may refuse it."""
        self._note()
        answer = self.platform.request("POST", self.path(session), headers=JSON, content=b"{}")
        assert answer.status_code < 500, f"creating a session is answered {answer.status_code}"
        if answer.is_success:
            id_ = api_server.read_session(answer).id
            assert session == id_, f"the created session has the id {instead(id_, session)}"
        return answer.is_success

    def ids(self) -> list[str]:
        """Return the ids of the listed sessions, sorted."""
        listed = self.platform.agents.list(self.app, user_id=self.id)
        return sorted(session.id for session in listed)

    def has(self, session: str) -> bool:
        """Whether a session can be read. Fail if the answer is ambiguous (U-SESSION-UNKNOWN)."""
        answer = self._read(session)
        assert answer.status_code < 500, f"reading a session is answered {answer.status_code}"
        return answer.is_success and bool(wire.words_of(answer))

    def history(self, session: str) -> Sequence[AgentEvent]:
        """Return the events with content in a session's history."""
        details = api_server.read_session(self._read(session))
        assert session == details.id, f"reading {session!r} returns another session"
        return [event for event in details.events if event.parts]

    def delete(self, session: str) -> None:
        """Delete a session."""
        self.platform.agents.delete(self._session(session))

    def artifacts(self, session: str) -> list[str]:
        """Return the names of a session's artifacts, sorted."""
        return sorted(self.platform.agents.list_artifacts(self._session(session)))

    def say(
        self, session: str, *texts: str, route: str = "/run", **fields: Any
    ) -> Sequence[AgentEvent]:
        """Run a turn, with a part per text, and return its events with content.

        None may be an error.
        """
        answer = self.post(route, self.body(session, *texts, **fields))
        assert answer.is_success, (
            f"POST {route} is answered {answer.status_code}: {short(answer.text)}"
        )
        events = api_server.read_events(answer) if route == "/run" else streamed(answer)
        errors = [event.error for event in events if event.error is not None]
        assert not errors, f"POST {route} ends with an error: {listed(errors)}"
        return [event for event in events if event.parts]

    def stream(self, session: str, message: str) -> Generator[AgentEvent, None, None]:
        """Run a turn and yield its events, with increments, as they arrive."""
        running = self._session(session)
        return self.platform.agents.run_sse(running, message, streaming=True)

    def order(
        self, session: str, do: str, route: str = "/run", streaming: bool = False, **arguments: Any
    ) -> Sequence[AgentEvent]:
        """Run a turn in which the reference agent performs an action."""
        fields = {"streaming": True} if streaming else {}
        return self.say(session, json.dumps({"do": do, **arguments}), route=route, **fields)

    def body(self, session: str, *texts: str, **fields: Any) -> dict[str, Any]:
        """Return the request body of a run."""
        message = {"role": "user", "parts": [{"text": text} for text in texts]}
        return api_server.body(self._session(session), "", {"newMessage": message, **fields})

    def post(self, route: str, body: Any) -> httpx.Response:
        """Post a run to a route and return the raw response."""
        return self.platform.send(self.run(route, body))

    def run(self, route: str, body: Any, **headers: str) -> Request:
        """Return the request that posts a run to a route."""
        content, sent = json.dumps(body).encode(), {**ALONE, **headers}
        return calls.request(self.platform.target, "POST", route, headers=sent, content=content)

    def path(self, session: str) -> str:
        """Return the path of a session."""
        return api_server.session_path(self.app, self.id, session)

    def _note(self) -> None:
        if self.leftovers is not None:
            self.leftovers.user(self.app, self.id, self.platform)

    def _session(self, session: str) -> AgentSession:
        return AgentSession(session, self.app, self.id)

    def _read(self, session: str) -> httpx.Response:
        return self.platform.request("GET", self.path(session))


def streamed(answer: httpx.Response) -> list[AgentEvent]:
    """Return the JSON events of a stream. Fail if the response is not an event stream."""
    kind = answer.headers.get("content-type")
    assert is_stream(answer), f"a stream has the content type {kind}"
    return [api_server.read_event(data) for data in data_of(answer.content)]


def ends_in_error(answer: httpx.Response) -> bool:
    """Whether a run ended with an error status or an error event."""
    if answer.status_code >= 400:
        return True
    events = streamed(answer) if is_stream(answer) else api_server.read_events(answer)
    return any(event.error is not None for event in events)


def in_step(user: User, session: str, chunks: Sequence[str]) -> list[str]:
    """Stream chunks, releasing each one only after all previous ones were read.

    Returns the texts of all events, in order.
    """
    gate, control = new_id(), user.create()
    order = {"do": "stream", "chunks": chunks, "gate": gate, "within_s": wire.READ_WITHIN_S}
    received: list[str] = []
    released = 0
    with closing(user.stream(session, json.dumps(order))) as events:
        for event in events:
            assert event.error is None, f"the stream ends with an error: {event.error}"
            received += texts([event])
            while released < len(chunks) and "".join(received) == "".join(chunks[: released + 1]):
                user.order(control, "release", gate=gate)
                released += 1
    return received


def texts(events: Iterable[AgentEvent]) -> list[str]:
    """Return the texts of the events that have text."""
    return [event.text for event in events if event.text]


def new_id() -> str:
    """Return a unique id."""
    return f"doublecheck-{uuid.uuid4().hex}"


@for_caller.register
def _user_of_caller(user: User, number: int, _stack: ExitStack) -> User:
    return replace(user, id=f"{user.id}-{number}")


@renewed.register
def _renewed_user(user: User, number: int) -> User:
    return replace(user, id=f"{user.id}-again-{number}") if number else user


@pytest.fixture
def apps(platform: Platform, patience: Patience) -> Sequence[str]:
    """The names of the platform's applications."""
    return patience.repeat(lambda _: platform.agents.list_apps(), FAILURES)


@pytest.fixture
def app(apps: Sequence[str]) -> str:
    """The application to run: the reference agent, an echo, or the first one listed."""
    assert apps, "The platform lists no application."
    return next((name for name in (REFERENCE, HARMLESS) if name in apps), apps[0])


@pytest.fixture
def user(platform: Platform, leftovers: Leftovers, app: str) -> User:
    """A new user, whose sessions are deleted afterwards."""
    return User(platform, app, new_id(), leftovers)


@pytest.fixture
def other_user(user: User) -> User:
    """Another user of the same application, whose id starts with the id of ``user``."""
    return replace(user, id=f"{user.id}-other")


@pytest.fixture
def user_elsewhere(apps: Sequence[str], app: str, user: User) -> User:
    """The same user at another application, or at the same one if there is only one."""
    names = [name for name in apps if name != app]
    preferred = [name for name in (SECOND,) if name in names]
    app_name = (preferred or names or [app])[0]
    return user.of(app_name)


@dataclass(frozen=True)
class AgentEndpoint:
    """A request to an endpoint. ``name`` identifies the endpoint, not the session."""

    name: str
    path: str
    content: bytes = b""

    def ask(self, platform: Platform, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Send the request and return the raw response."""
        method, own = self.name.partition(" ")[0], ALONE if self.content else {}
        all_headers = {**own, **(headers or {})}
        return platform.request(
            method, self.path, surface="api_server", headers=all_headers, content=self.content
        )

    def works(self, answer: httpx.Response) -> bool:
        """Whether a response is successful and, for a run, free of error events."""
        return answer.is_success and not (self.path in ROUTES and ends_in_error(answer))


def endpoints(user: User, session: str, message: str = "hello") -> list[AgentEndpoint]:
    """Return a request to each endpoint: reads first, and the deletion of the session last."""
    sessions, at = api_server.sessions_path(user.app, user.id), user.path(session)
    run = json.dumps(user.body(session, message)).encode()
    return [
        *(AgentEndpoint(f"GET {path}", path) for path in GENERAL),
        AgentEndpoint("GET sessions", sessions),
        AgentEndpoint("GET session", at),
        AgentEndpoint("GET artifacts", f"{at}/artifacts"),
        AgentEndpoint("POST sessions", sessions, b"{}"),
        AgentEndpoint("POST session", user.path(new_id()), b"{}"),
        *(AgentEndpoint(f"POST {path}", path, run) for path in ROUTES),
        AgentEndpoint("DELETE session", at),
    ]
