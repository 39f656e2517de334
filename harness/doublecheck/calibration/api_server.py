"""Probes of API-server mode: applications, sessions, runs, and two simultaneous runs."""

from __future__ import annotations

import json
from typing import Any

from agentdouble.core.event_stream import data_of
from doublecheck.calibration.probe import probe
from doublecheck.calibration.probing import (
    REFERENCE_AGENT,
    NotSettledError,
    Probing,
    answered_meanwhile,
    background,
    one_of,
    unlike,
)
from doublecheck.values.agents import AgentSession
from doublecheck.wire import api_server


@probe("U-LIST-APPS", "api_server")
def list_apps(at: Probing) -> str:
    """List the applications."""
    document = at.ask("GET", "/list-apps").json()
    if isinstance(document, list):
        return "names"
    if isinstance(document, dict) and "apps" in document:
        return "detailed"
    raise unlike("the body is", document)


@probe("U-SESSION-FIELDS", "api_server", writes=True)
def session_fields(at: Probing) -> str:
    """Look at a session that was just created."""
    fields = _create(at).keys()
    if fields <= {"id", "events"}:
        return "id-only"
    if {"id", "appName", "userId"} <= fields:
        return "full"
    raise unlike("the fields are", sorted(fields))


@probe("U-SESSION-CREATE", "api_server", writes=True)
def session_create(at: Probing) -> str:
    """Create a session with an id in the body."""
    requested = f"s-{at.token}"
    return "fields" if _create(at, {"sessionId": requested})["id"] == requested else "ignored"


@probe("U-SESSION-DUPLICATE", "api_server", writes=True)
def session_duplicate(at: Probing) -> str:
    """Create another session with the same id."""
    path = f"{_sessions(at)}/s-{at.token}"
    at.finally_(lambda: at.ask("DELETE", path))
    first, second = (at.ask("POST", path, {}).status_code for _ in range(2))
    answers = {(200, 409): "409", (200, 400): "400", (200, 200): "existing"}
    return one_of(answers, (first, second), "the two creations return HTTP")


@probe("U-SESSION-LIST", "api_server", writes=True)
def session_list(at: Probing) -> str:
    """List a user's sessions."""
    _create(at)
    listed = at.ask("GET", _sessions(at)).json()
    if not isinstance(listed, list) or not listed:
        raise unlike("the list is", listed)
    return "ids" if isinstance(listed[0], str) else "sessions"


@probe("U-SESSION-DELETE", "api_server", writes=True)
def session_delete(at: Probing) -> str:
    """Delete a session twice; the second time it is unknown."""
    path = f"{_sessions(at)}/{_create(at)['id']}"
    first, unknown = at.ask("DELETE", path), at.ask("DELETE", path)
    if first.status_code == 204:
        return "204"
    answers = {(200, 200): "null", (200, 404): "404-unknown"}
    return one_of(answers, (first.status_code, unknown.status_code), "the deletions return HTTP")


def _agent(at: Probing) -> str:
    """Return the agent to call: the reference agent, if there is one."""
    document = at.ask("GET", "/list-apps").json()
    apps = document.get("apps", ()) if isinstance(document, dict) else document
    names = [app["name"] if isinstance(app, dict) else str(app) for app in apps]
    if not names:
        raise NotSettledError("the platform lists no agent")
    return REFERENCE_AGENT if REFERENCE_AGENT in names else names[0]


def _sessions(at: Probing) -> str:
    """Return the path of the sessions of a user that no other probe uses."""
    return f"/apps/{_agent(at)}/users/u-{at.token}/sessions"


def _create(at: Probing, body: Any = None) -> dict[str, Any]:
    """Create a session that is deleted at the end."""
    path = _sessions(at)
    answer = at.ask("POST", path, body or {})
    session = answer.json() if answer.is_success else None
    if not isinstance(session, dict) or "id" not in session:
        raise NotSettledError(f"the session was not created: HTTP {answer.status_code}")
    at.finally_(lambda: at.ask("DELETE", f"{path}/{session['id']}"))
    return session


@probe("U-EVENT-FIELDS", "api_server", writes=True)
def event_fields(at: Probing) -> str:
    """Look at the events of a run."""
    events = at.ask("POST", "/run", _run_body(at, _session(at), "hello")).json()
    if not isinstance(events, list) or not events:
        raise NotSettledError("the run returned no events")
    fields = events[0].keys()
    if fields == {"content"}:
        return "content-only"
    if {"content", "id", "author"} <= fields:
        return "full"
    raise unlike("the fields are", sorted(fields))


@probe("U-RUN-UNKNOWN-SESSION", "api_server", writes=True)
def unknown_session(at: Probing) -> str:
    """Run in a session that does not exist."""
    path = f"{_sessions(at)}/s-{at.token}"
    at.finally_(lambda: at.ask("DELETE", path))
    status = at.ask("POST", "/run", _run_body(at, f"s-{at.token}", "hello")).status_code
    return one_of({404: "404", 200: "create"}, status, "the run returns HTTP")


@probe("U-RUN-ERROR", "api_server", writes=True, reference=True)
def run_error(at: Probing) -> str:
    """Make the agent raise an error."""
    answer = at.ask("POST", "/run", _run_body(at, _session(at), _failing(at)))
    if answer.status_code != 500:
        raise unlike("the answer is", f"HTTP {answer.status_code}")
    try:
        answer.json()
    except ValueError:
        return "text"
    return "json"


@probe("U-RUN-SSE-ERROR", "api_server", writes=True, reference=True)
def stream_error(at: Probing) -> str:
    """Make the agent raise an error in a stream."""
    answer = at.ask("POST", "/run_sse", _run_body(at, _session(at), _failing(at)))
    last = data_of(answer.content)[-1:]
    fields = json.loads(last[0]).keys() if last else set()
    answers = {("error",): "error-only", ("error", "error_details"): "detailed"}
    return one_of(answers, tuple(sorted(fields)), "the last line has")


@probe("U-RUN-CONCURRENT", "api_server", writes=True, reference=True)
def at_once(at: Probing) -> str:
    """Start a run in a session in which another run is waiting."""
    session = AgentSession(_session(at), _reference(at), f"u-{at.token}")
    other_session = _session(at)
    waiting = {"do": "stream", "chunks": ["begun", "gone on"], "gate": at.token, "within_s": 20}
    run = at.platform.agents.run_sse(session, json.dumps(waiting), streaming=True)
    next(run)
    second = background(lambda: at.ask("POST", "/run", _run_body(at, session.id, "second")))
    meanwhile = answered_meanwhile(
        second, lambda: at.ask("POST", "/run", _run_body(at, other_session, "hello"))
    )
    for _ in range(2):
        release = json.dumps({"do": "release", "gate": at.token})
        at.ask("POST", "/run", _run_body(at, other_session, release))
    list(run)
    if second.result(30).status_code != 200:
        raise unlike("the second run returns", f"HTTP {second.result().status_code}")
    return "interleaved" if meanwhile else "queued"


def _session(at: Probing) -> str:
    """Create a session that is deleted at the end; return its id."""
    return str(_create(at)["id"])


def _run_body(at: Probing, session: str, message: str) -> dict[str, Any]:
    return api_server.body(AgentSession(session, _agent(at), f"u-{at.token}"), message, {})


def _failing(at: Probing) -> str:
    """Return a message that makes the reference agent raise an error."""
    _reference(at)
    order = {"do": "stream", "chunks": ["a"], "gate": at.token, "within_s": 0.01}
    return json.dumps(order)


def _reference(at: Probing) -> str:
    if _agent(at) != REFERENCE_AGENT:
        raise NotSettledError(f"the platform does not serve the agent {REFERENCE_AGENT}")
    return REFERENCE_AGENT
