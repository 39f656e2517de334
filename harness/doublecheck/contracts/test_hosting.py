"""Checks of hosted runtimes (HST) and of who may call them (AUT)."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from doublecheck.contracts import hosting, wire
from doublecheck.contracts.a2a import Agent
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.hosting import Hosted
from doublecheck.platform import Platform
from doublecheck.verdicts import Verdict

UNCHECKED = ("HST-02", "HST-03", "HST-04", "AUT-02", "AUT-03")


@clause("HST-01")
def test_sessions_share_one_environment(hosted: Hosted) -> None:
    """While one session's answer goes on, another's request is answered in the same process."""
    app, gate = hosted.at(hosting.SIMPLE), uuid.uuid4().hex
    one, other = (_session() for _ in range(2))

    with closing(
        app.stream("", do="stream", chunks=["begun", "done"], gate=gate, headers=one)
    ) as events:
        first = next(events)
        places = [_where(app, session) for session in (one, other)]
        wire.invoke(app, {"do": "release", "gate": gate}, one)
        second = next(events)

    assert ["begun", "done"] == [wire.chunk(event.data) for event in (first, second)]
    assert [one["session_id"], other["session_id"]] == [place["session"] for place in places]
    assert 1 == len({place["environment"] for place in places}), places


@clause("HST-05")
def test_each_kind_of_application_speaks_its_protocol(hosted: Hosted) -> None:
    """HTTP, MCP and A2A: one of each is asked."""
    with ThreadPoolExecutor(3) as pool:  # they start side by side
        said = pool.submit(_invoke, hosted.at(hosting.SIMPLE))
        added = pool.submit(_call, hosted.at(hosting.TOOLS))
        sent = pool.submit(_send, hosted.at(hosting.EXECUTOR))

    assert ("over HTTP", "5", ("over A2A",)) == (said.result(), added.result(), sent.result())


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=clause(id_, reference_app=False)) for id_ in UNCHECKED]
)
def test_what_is_hosted_cannot_be_checked_by_this_version(id_: str) -> None:
    """Told by name."""
    pytest.skip(f"{Verdict.NOT_RUN.value}: this version of doublecheck has no check of {id_}")


def _session() -> dict[str, str]:
    return {"user_id": "doublecheck", "session_id": uuid.uuid4().hex}


def _where(app: Platform, session: dict[str, str]) -> dict[str, Any]:
    return wire.parsed(wire.returned(wire.invoke(app, {"do": "where"}, session)))


def _invoke(app: Platform) -> str:
    return wire.returned(wire.invoke(app, {"do": "say", "prompt": "over HTTP"}))


def _call(app: Platform) -> str:
    with app.mcp() as mcp:
        return mcp.call("add", a=2, b=3).text


def _send(app: Platform) -> tuple[str, ...]:
    return Agent.of(app).send("say over A2A").texts
