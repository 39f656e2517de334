"""Requests that fail or break off, after which a platform must answer as before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from agentdouble import run_code
from doublecheck.contracts import wire
from doublecheck.contracts.agent_users import ROUTES, User
from doublecheck.contracts.engine import Disturbance
from doublecheck.contracts.sandboxes import JAVASCRIPT
from doublecheck.target.facts import Surface

Fixtures = Mapping[str, Any]


def of(surface: Surface, fixtures: Sequence[str]) -> Sequence[Disturbance]:
    """Return the disturbances of a surface that these fixtures allow."""
    by_fixture = _BY_SURFACE.get(surface, {})
    return [
        disturbance for name in by_fixture if name in fixtures for disturbance in by_fixture[name]
    ]


def _stream_that_breaks_off(fixtures: Fixtures) -> None:
    gate = uuid.uuid4().hex  # which nobody releases
    stream = wire.stream(fixtures["platform"], ["one", "two"], gate=gate, within_s=0.2)
    with closing(stream) as events:
        next(events)


def _stranger(fixtures: Fixtures) -> User:
    user: User = fixtures["user"]
    return replace(user, id=f"{user.id}-disturbing")


def _failing_run(fixtures: Fixtures) -> None:
    user = _stranger(fixtures)
    body = user.body(user.create(), "hello")
    for wrong in ({"sessionId": uuid.uuid4().hex}, {"newMessage": None}):
        for route in ROUTES:
            user.post(route, {**body, **wrong})


def _run_that_breaks_off(fixtures: Fixtures) -> None:
    user = _stranger(fixtures)
    stream = user.stream(user.create(), "said: a message that is not read to its end")
    with closing(stream) as events:
        next(events)


_APPLICATION = (
    Disturbance("a stream", lambda it: list(wire.stream(it["platform"], ["one", "two"]))),
    Disturbance(
        "an exception", lambda it: wire.invoke(it["platform"], {"do": "fail", "prompt": "no"})
    ),
    Disturbance("a stream that breaks off", _stream_that_breaks_off),
    Disturbance(
        "a body that is not JSON",
        lambda it: it["platform"].request("POST", "/invoke", headers=wire.CALLER, content=b"{"),
    ),
)
_AGENTS = (
    Disturbance("runs that fail", _failing_run),
    Disturbance("a stream that breaks off", _run_that_breaks_off),
)
_SANDBOX = (
    Disturbance("an exception", lambda it: it["sandbox"].run("1 / 0")),
    Disturbance("an exception in JavaScript", lambda it: it["sandbox"].run("throw 1", JAVASCRIPT)),
    Disturbance("a command that fails", lambda it: it["sandbox"].exec_bash("echo no >&2; false")),
)


def _tools(client: str) -> Sequence[Disturbance]:
    return (
        Disturbance("a call that cannot be made", lambda it: it[client].call("nobodys")),
        Disturbance("a call with wrong arguments", lambda it: it[client].call("add", a="many")),
    )


_BY_SURFACE: Mapping[str, Mapping[str, Sequence[Disturbance]]] = {
    "application": {"platform": _APPLICATION},
    "api_server": {"user": _AGENTS},
    "sandbox": {"sandbox": _SANDBOX},
    "control_plane": {"sandbox": _SANDBOX},
    "mcp": {"mcp_client": _tools("mcp_client")},
    "services": {
        "through": _tools("through"),
        "things": (Disturbance("an error", lambda it: it["things"].call("failThing", status=500)),),
    },
    "a2a": {
        "agent": (
            Disturbance("an executor that raises", lambda it: it["agent"].fail(["sent"])),
            Disturbance("an unknown task", lambda it: it["agent"].task(uuid.uuid4().hex)),
        )
    },
    "library": {
        "state": (
            Disturbance("an exception", lambda it: run_code("1 / 0", "python3", it["state"])),
        )
    },
}
