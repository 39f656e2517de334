"""show() outside a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import doublecheck
from doublecheck.results import AgentEvent, StreamEvent

EVENTS = (StreamEvent("a"), StreamEvent('{"b": 1}'))


def test_show_prints_and_returns_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert EVENTS == doublecheck.show(iter(EVENTS))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_show_prints_async_events(capsys: pytest.CaptureFixture[str]) -> None:

    async def stream() -> AsyncIterator[StreamEvent]:
        for event in EVENTS:
            yield event

    assert EVENTS == asyncio.run(doublecheck.show(stream()))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_show_prints_whole_texts_and_tool_calls(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"functionCall": {"name": "add"}}
    event = AgentEvent("model", ({"text": "x" * 200},), author="coder")

    doublecheck.show((event, AgentEvent("model", (call,), author="coder")))

    assert f"coder: {'x' * 200}\n<AgentEvent coder calls add>\n" == capsys.readouterr().out


def test_an_interrupted_stream_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
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
