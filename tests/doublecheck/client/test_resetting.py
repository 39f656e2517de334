"""Partial resets from a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doublecheck import Platform, Target
from doublecheck.client.open_target import serving_double
from doublecheck.errors import NotADoubleError, RefusedError


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def client(target: Target) -> Iterator[Platform]:
    with Platform(target) as client:
        client.reset(keep=())
        yield client


@pytest.mark.parametrize("kept_kinds", ["agent_sessions", ["agent_sessions", "clock"]])
def test_a_reset_keeps_named_parts(client: Platform, kept_kinds: str | list[str]) -> None:
    client.create_session("echo", session_id="s")
    client.run_code("1")

    client.reset(keep=kept_kinds)

    assert ("s",) == tuple(session.id for session in client.list_sessions("echo"))
    assert () == client.sessions()


def test_unknown_parts_are_refused(client: Platform) -> None:
    """The error lists the valid parts."""
    with pytest.raises(
        RefusedError, match="it can keep faults, clock, model, sessions, session_snap"
    ):
        client.reset(keep=["everything"])


def test_a_live_platform_is_not_reset() -> None:
    """The error comes before any request."""
    with (
        Platform(Target(url="http://127.0.0.1:1", kind="live")) as live,
        pytest.raises(NotADoubleError),
    ):
        live.reset()
