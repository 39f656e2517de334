"""Mutants of the history that an agent of API-server mode sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.agents.events import Event, Part
from agentdouble.api_server.agent_run import SessionBackend
from agentdouble.api_server.run import Run
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    READ,
    OfText,
    Patching,
    segments,
)

HISTORY = "the session including its history of events (2.3)"


def _history(change: Callable[[tuple[Event, ...]], Any]) -> Patching:
    """Change the history that an agent gets."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        whole = SessionBackend.history

        async def history(self: SessionBackend) -> tuple[Event, ...]:
            return tuple(change(await whole(self)))

        patch.setattr(SessionBackend, "history", history)

    return patching


def _of_users(change: Callable[[list[Event]], list[Event]]) -> Patching:
    """Change the users' messages in the history that an agent gets."""
    return _history(lambda events: change([event for event in events if event.author == "user"]))


def _history_texts(change: OfText) -> Patching:
    def changed(event: Event) -> Event:
        parts = tuple(Part.of_text(change(event.text)) for _part in event.parts[:1])
        return replace(event, parts=parts)

    return _of_users(lambda events: [changed(event) for event in events])


def _not_remembered(streams: bool) -> Patching:
    """Forget a turn of one way of running when the next one begins."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        latest: set[str] = set()
        forgotten: set[str] = set()
        whole, begun = SessionBackend.history, Run.__init__

        def begin(self: Run, *given: Any, **named: Any) -> None:
            begun(self, *given, **named)
            forgotten.update(latest)
            latest.clear()
            if named["streaming"] is streams:
                latest.add(self._invocation_id)

        async def history(self: SessionBackend) -> tuple[Event, ...]:
            return tuple(
                event
                for event in await whole(self)
                if event.more.get("invocationId") not in forgotten
            )

        patch.setattr(Run, "__init__", begin)
        patch.setattr(SessionBackend, "history", history)

    return patching


def _forgotten_once_read(patch: pytest.MonkeyPatch) -> None:
    """Give an agent no history of a session that was read."""
    read: set[str] = set()
    whole = SessionBackend.history

    async def history(self: SessionBackend) -> tuple[Event, ...]:
        events = await whole(self)
        return events[-1:] if self._key.id in read else events

    patch.setattr(SessionBackend, "history", history)
    wire.requested(READ, lambda request: read.add(segments(request)[5]))(patch)


MUTANTS: tuple[Mutant, ...] = (
    Mutant("tell_an_agent_no_history", "API-17", HISTORY, _history(lambda events: events[-1:])),
    Mutant("tell_an_agent_the_last_turn", "API-17", HISTORY, _of_users(lambda said: said[-2:])),
    Mutant(
        "tell_an_agent_the_first_turn",
        "API-17",
        HISTORY,
        _of_users(lambda said: [*said[:1], *said[1:][-1:]]),
    ),
    Mutant("tell_an_agent_the_last_four", "API-17", HISTORY, _of_users(lambda said: said[-4:])),
    Mutant("tell_an_agent_the_newest_first", "API-17", HISTORY, _of_users(lambda said: said[::-1])),
    Mutant(
        "tell_an_agent_each_text_once",
        "API-17",
        HISTORY,
        _of_users(lambda said: list({one.text: one for one in said}.values())),
    ),
    Mutant("forget_streamed_turns", "API-17", HISTORY, _not_remembered(True)),
    Mutant("forget_turns_of_run", "API-17", HISTORY, _not_remembered(False)),
    Mutant("forget_the_history_once_it_is_read", "API-17", HISTORY, _forgotten_once_read),
    Mutant("strip_what_an_agent_remembers", "API-17", HISTORY, _history_texts(str.strip)),
    Mutant(
        "cut_what_an_agent_remembers_at_256",
        "API-17",
        HISTORY,
        _history_texts(lossy.cut(256)),
    ),
    Mutant("remember_only_ascii", "API-17", HISTORY, _history_texts(lossy.to_ascii)),
    Mutant(
        "remember_only_the_first_line",
        "API-17",
        HISTORY,
        _history_texts(lossy.first_line),
    ),
)
