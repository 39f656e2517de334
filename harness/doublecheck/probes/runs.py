"""Probes of runs in API-server mode: unknown sessions, events, failures, two at once."""

from __future__ import annotations

import json
from typing import Any

from doublecheck.probes.api_server import agent, sessions
from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import (
    REFERENCE_AGENT,
    Probing,
    answered_meanwhile,
    background,
    unlike,
)
from doublecheck.values.agents import AgentSession


@probe("U-EVENT-FIELDS", "api_server", writes=True)
def event_fields(at: Probing) -> str:
    """Look at the events of a run."""
    events = at.ask("POST", "/run", _order(at, _session(at), "hello")).json()
    if not isinstance(events, list) or not events:
        raise NotSettledError("the run has no events")
    fields = events[0].keys()
    if fields == {"content"}:
        return "content-only"
    if {"content", "id", "author"} <= fields:
        return "full"
    raise unlike("the fields are", sorted(fields))


@probe("U-RUN-UNKNOWN-SESSION", "api_server", writes=True)
def unknown_session(at: Probing) -> str:
    """Run in a session that is not there."""
    path = f"{sessions(at)}/s-{at.token}"
    at.finally_(lambda: at.ask("DELETE", path))
    status = at.ask("POST", "/run", _order(at, f"s-{at.token}", "hello")).status_code
    answers = {404: "404", 200: "create"}
    if status not in answers:
        raise unlike("the answer is", f"HTTP {status}")
    return answers[status]


@probe("U-RUN-ERROR", "api_server", writes=True, reference=True)
def run_error(at: Probing) -> str:
    """Have the agent raise."""
    answer = at.ask("POST", "/run", _order(at, _session(at), _failing(at)))
    if answer.status_code != 500:
        raise unlike("the answer is", f"HTTP {answer.status_code}")
    try:
        answer.json()
    except ValueError:
        return "text"
    return "json"


@probe("U-RUN-SSE-ERROR", "api_server", writes=True, reference=True)
def stream_error(at: Probing) -> str:
    """Have the agent raise in a stream."""
    text = at.ask("POST", "/run_sse", _order(at, _session(at), _failing(at))).text
    last = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1:]
    fields = json.loads(last[0]).keys() if last else set()
    answers = {("error",): "error-only", ("error", "error_details"): "detailed"}
    if tuple(sorted(fields)) not in answers:
        raise unlike("the last line is", last)
    return answers[tuple(sorted(fields))]


@probe("U-RUN-CONCURRENT", "api_server", writes=True, reference=True)
def at_once(at: Probing) -> str:
    """Run in a session in which a run is waiting."""
    session = AgentSession(_session(at), _reference(at), f"u-{at.token}")
    other = _session(at)
    waiting = {"do": "stream", "chunks": ["begun", "gone on"], "gate": at.token, "within_s": 20}
    run = at.platform.run_sse(session, json.dumps(waiting), streaming=True)
    next(run)
    second = background(lambda: at.ask("POST", "/run", _order(at, session.id, "second")))
    meanwhile = answered_meanwhile(
        second, lambda: at.ask("POST", "/run", _order(at, other, "hello"))
    )
    for _ in range(2):
        release = json.dumps({"do": "release", "gate": at.token})
        at.ask("POST", "/run", _order(at, other, release))
    list(run)
    if second.result(30).status_code != 200:
        raise unlike("the second run is answered", f"HTTP {second.result().status_code}")
    return "interleaved" if meanwhile else "queued"


def _session(at: Probing) -> str:
    """Make a session that is deleted in the end; return its id."""
    path = sessions(at)
    made = at.ask("POST", path, {}).json()["id"]
    at.finally_(lambda: at.ask("DELETE", f"{path}/{made}"))
    return str(made)


def _order(at: Probing, session: str, message: str) -> dict[str, Any]:
    return {
        "appName": agent(at),
        "userId": f"u-{at.token}",
        "sessionId": session,
        "newMessage": {"role": "user", "parts": [{"text": message}]},
    }


def _failing(at: Probing) -> str:
    """Return a message at which the reference agent raises."""
    _reference(at)
    order = {"do": "stream", "chunks": ["a"], "gate": at.token, "within_s": 0.01}
    return json.dumps(order)


def _reference(at: Probing) -> str:
    if agent(at) != REFERENCE_AGENT:
        raise NotSettledError(f"the platform does not serve the agent {REFERENCE_AGENT}")
    return REFERENCE_AGENT
