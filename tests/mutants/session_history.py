"""Mutants of reading a session in API-server mode: its events, and whether it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey, StoredSession
from agentdouble.errors import SessionNotFoundError
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    EXISTS,
    READ,
    Json,
    Patching,
    each_of_history,
    has,
    is_reply,
    of_history,
    refuse,
    segments,
    stale,
    with_content,
    with_parts,
    with_texts,
)
from tests.mutants.wire import Request

HISTORY = "Get session returns the session including its history of events (2.3)"
HALF_AN_HOUR = 30 * 60


def _first_of_user(patch: pytest.MonkeyPatch) -> None:
    """Return the session that was read first to everybody who reads one of that user."""
    first: dict[str, str] = {}

    def first_path(request: Request) -> None:
        request.path = first.setdefault("/".join(segments(request)[:4]), request.path)

    wire.requested(READ, first_path)(patch)


def _read(change: Callable[[SessionService, StoredSession], None]) -> Patching:
    """Do something with each session that is read; it may raise SessionNotFoundError."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        found = SessionService.read

        async def read(self: SessionService, key: SessionKey) -> StoredSession:
            session = await found(self, key)
            change(self, session)
            return session

        patch.setattr(SessionService, "read", read)

    return patching


def _expire(service: SessionService, session: StoredSession) -> None:
    if service.now() - session.last_update > HALF_AN_HOUR:
        raise SessionNotFoundError("Session not found")


def _joined(events: list[Json]) -> list[Json]:
    """Return events in which those of one role that follow each other are one."""
    joined: list[Json] = []
    for event in events:
        role = (event.get("content") or {}).get("role")
        last = joined[-1]["content"] if joined else {}
        if last.get("role") == role:
            joined[-1] = {
                **joined[-1],
                "content": {**last, "parts": last["parts"] + event["content"]["parts"]},
            }
        else:
            joined.append(event)
    return joined


def _without_calls(event: Json) -> Any:
    return wire.DROP if has(event, "functionCall") else event


def _without_replies(event: Json) -> Any:
    return wire.DROP if is_reply(event) else event


MUTANTS: tuple[Mutant, ...] = (
    Mutant("lose_the_first_event", "API-05", HISTORY, of_history(lambda events: events[1:])),
    Mutant("lose_the_last_event", "API-05", HISTORY, of_history(lambda events: events[:-1])),
    Mutant("keep_the_last_two_events", "API-05", HISTORY, of_history(lambda events: events[-2:])),
    Mutant("keep_the_last_ten_events", "API-05", HISTORY, of_history(lambda events: events[-10:])),
    Mutant("keep_the_first_six_events", "API-05", HISTORY, of_history(lambda events: events[:6])),
    Mutant("lose_the_replies", "API-05", HISTORY, each_of_history(_without_replies)),
    Mutant("lose_the_tool_calls", "API-05", HISTORY, each_of_history(_without_calls)),
    Mutant("reverse_the_history", "API-05", HISTORY, of_history(lambda events: events[::-1])),
    Mutant(
        "tell_every_event_twice",
        "API-05",
        HISTORY,
        of_history(lambda events: [one for one in events for _ in range(2)]),
    ),
    Mutant("join_events_of_one_role", "API-05", HISTORY, of_history(_joined)),
    Mutant(
        "tell_events_without_content",
        "API-05",
        "An event has `content` (2.4); history of events (2.3)",
        each_of_history(lambda event: {**event, "content": None}),
    ),
    Mutant(
        "tell_only_the_first_part",
        "API-05",
        HISTORY,
        each_of_history(with_parts(lambda parts: parts[:1])),
    ),
    Mutant(
        "tell_users_messages_as_the_models",
        "API-05",
        "role: `user` for user messages, `model` in replies (2.2)",
        each_of_history(with_content(lambda content: {**content, "role": "model"})),
    ),
    Mutant(
        "strip_texts_of_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(str.strip)),
    ),
    Mutant(
        "cut_texts_of_the_history_at_256",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.cut(256))),
    ),
    Mutant(
        "join_the_lines_of_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.to_one_line)),
    ),
    Mutant(
        "lose_what_is_beyond_ascii_in_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.to_ascii)),
    ),
    Mutant("read_the_users_first_session", "API-05", HISTORY, _first_of_user),
    Mutant("read_what_was_there_first", "API-05", HISTORY, stale(READ, filled=True)),
    Mutant(
        "find_no_session_without_events",
        "API-05",
        EXISTS,
        wire.answered(
            READ,
            lambda answer, _one: refuse(answer, 404) if b'"events":[]' in answer.body else None,
        ),
    ),
    Mutant("forget_sessions_after_half_an_hour", "API-05", EXISTS, _read(_expire)),
    Mutant(
        "read_another_id",
        "API-05",
        HISTORY,
        wire.answers(READ, lambda found: {**found, "id": "session"} if "id" in found else found),
    ),
)
