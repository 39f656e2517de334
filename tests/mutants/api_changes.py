"""Changes that several tables of API-server mode use: of events, texts, ids and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.mutants import wire
from tests.mutants.wire import Answer, Change, Request

SESSIONS = "/apps/{app}/users/{user}/sessions"
LIST, CREATE = f"GET {SESSIONS}", f"POST {SESSIONS}"
SESSION = f"{SESSIONS}/{{session}}"
READ, CREATE_WITH_ID, DELETE = f"GET {SESSION}", f"POST {SESSION}", f"DELETE {SESSION}"
ARTIFACTS = f"GET {SESSION}/artifacts"
RUN, RUN_SSE = "POST /run", "POST /run_sse"

Json = dict[str, Any]
OfEvent = Callable[[Json], Any]
OfText = Callable[[str], str]
OfEvents = Callable[[list[Json]], Any]
Patching = Callable[[pytest.MonkeyPatch], None]


def all_of(*changes: Change) -> Patching:
    """Return several changes as one."""
    return lambda patch: wire.install(patch, *changes)


# ---- events and their texts


def with_texts(change: OfText) -> OfEvent:
    """Return a change of an event that changes the text of each part."""

    def part(one: Json) -> Json:
        return {**one, "text": change(one["text"])} if "text" in one else one

    return with_parts(lambda parts: [part(one) for one in parts])


def with_parts(change: Callable[[list[Json]], Any]) -> OfEvent:
    """Return a change of an event that changes the parts of its content."""
    return with_content(lambda content: {**content, "parts": change(content.get("parts", []))})


def with_content(change: Callable[[Json], Any]) -> OfEvent:
    """Return a change of an event that changes its content, if it has one."""
    return lambda event: (
        {**event, "content": change(event["content"])} if event.get("content") else event
    )


def of_run(change: OfEvents) -> Change:
    """Change the list of events that /run answers."""
    return wire.answers(RUN, lambda found: change(found) if isinstance(found, list) else found)


def each_of_run(change: OfEvent) -> Change:
    """Change each event that /run answers; DROP leaves it out."""
    return of_run(lambda found: _each(change, found))


def of_history(change: OfEvents) -> Change:
    """Change the events of the session that is read."""
    return wire.answers(
        READ,
        lambda found: {**found, "events": change(found["events"])} if "events" in found else found,
    )


def each_of_history(change: OfEvent) -> Change:
    """Change each event of the session that is read; DROP leaves it out."""
    return of_history(lambda found: _each(change, found))


def each_of_runs(change: OfEvent) -> Patching:
    """Change each event of both ways of running."""
    return all_of(each_of_run(change), wire.events(RUN_SSE, change))


def _each(change: OfEvent, events: list[Json]) -> list[Json]:
    changed = [change(event) for event in events]
    return [event for event in changed if event is not wire.DROP]


# ---- what an event is


def text_of(event: Mapping[str, Any]) -> str:
    """Return the text of an event's parts."""
    parts = (event.get("content") or {}).get("parts") or ()
    return "".join(part.get("text", "") for part in parts)


def has(event: Mapping[str, Any], key: str) -> bool:
    """Return whether a part of an event has a key, such as functionCall."""
    parts = (event.get("content") or {}).get("parts") or ()
    return any(key in part for part in parts)


def is_increment(event: Mapping[str, Any]) -> bool:
    """Return whether an event is an increment of a text."""
    return bool(event.get("partial"))


def is_reply(event: Mapping[str, Any]) -> bool:
    """Return whether an event has the whole text of a reply."""
    from_model = (event.get("content") or {}).get("role") == "model"
    return from_model and has(event, "text") and not is_increment(event)


# ---- paths, bodies and refusals


def segments(request: Request) -> list[str]:
    """Return the segments of a request's path: apps, app, users, user, sessions, session."""
    return request.path.strip("/").split("/")


def user_of(request: Request) -> str:
    """Return the user in a request's path."""
    return segments(request)[3]


def refused(route: str, when: Callable[[Request], bool], status: int = 400) -> Change:
    """Answer some requests of a route with an error."""

    def answer(answer: Answer, request: Request) -> None:
        if when(request):
            refuse(answer, status)

    return wire.answered(route, answer)


def refuse(answer: Answer, status: int, detail: str = "refused") -> None:
    """Make an answer a refusal."""
    answer.status, answer.body = status, json.dumps({"detail": detail}).encode()
    answer.headers["content-type"] = "application/json"


def in_path(route: str, index: int, change: OfText) -> Change:
    """Change a segment of the path of requests, by its index."""

    def in_place(request: Request) -> None:
        parts = segments(request)
        parts[index] = change(parts[index])
        request.path = "/" + "/".join(parts)

    return wire.requested(route, in_place)
