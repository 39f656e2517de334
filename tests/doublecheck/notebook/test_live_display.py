"""show() where there is no notebook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import doublecheck
from doublecheck.results import AgentEvent, StreamEvent

EVENTS = (StreamEvent("a"), StreamEvent('{"b": 1}'))


def test_events_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are returned, as a tuple."""
    assert EVENTS == doublecheck.show(iter(EVENTS))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_async_events_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """As soon as they are awaited."""

    async def stream() -> AsyncIterator[StreamEvent]:
        for event in EVENTS:
            yield event

    assert EVENTS == asyncio.run(doublecheck.show(stream()))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_events_of_agents_are_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """All of a text, and tool calls by name."""
    call = {"functionCall": {"name": "add"}}
    event = AgentEvent("model", ({"text": "x" * 200},), author="coder")

    doublecheck.show((event, AgentEvent("model", (call,), author="coder")))

    assert f"coder: {'x' * 200}\n<AgentEvent coder calls add>\n" == capsys.readouterr().out


def test_a_stream_that_is_left_early_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    """An interrupt leaves no connection open."""
    closed = []

    def stream() -> Iterator[StreamEvent]:
        try:
            yield EVENTS[0]
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        doublecheck.show(stream())
    assert ([True], "a\n") == (closed, capsys.readouterr().out)
