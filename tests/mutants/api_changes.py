"""Changes that several tables of API-server mode use: of events, streams, lists and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.stores import StoredSession
from tests.mutants import wire
from tests.mutants.wire import DROP, Answer, Change, Request

SESSIONS = "/apps/{app}/users/{user}/sessions"
LIST, CREATE = f"GET {SESSIONS}", f"POST {SESSIONS}"
SESSION = f"{SESSIONS}/{{session}}"
READ, CREATE_WITH_ID, DELETE = f"GET {SESSION}", f"POST {SESSION}", f"DELETE {SESSION}"
ARTIFACTS = f"GET {SESSION}/artifacts"
RUN, RUN_SSE = "POST /run", "POST /run_sse"

IS_STRING = "Has an `id` field (string) (2.3)"
EXISTS = "A session exists after creation and stops existing after DELETE (3)"

Json = dict[str, Any]
Owner = tuple[str, str]
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
    return [event for event in changed if event is not DROP]


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


# ---- events of a stream, by what came before


class Turn:
    """What has come of a stream so far."""

    def __init__(self) -> None:
        self.held: list[Json] = []
        self.text = ""
        self.seen: list[Json] = []


def by_turn(change: Callable[[Turn, Json], Any], route: str = RUN_SSE) -> Patching:
    """Change the events of a stream with what has come of it so far."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        turns: dict[int, tuple[Request, Turn]] = {}

        def event(one: Json, request: Request) -> Any:
            _request, turn = turns.setdefault(id(request), (request, Turn()))
            changed = change(turn, one)
            turn.seen.append(one)
            return changed

        wire.events(route, event)(patch)

    return patching


def held_back(turn: Turn, event: Json) -> Any:
    """Hold increments back until something else comes."""
    if is_increment(event):
        turn.held.append(event)
        return DROP
    held, turn.held = turn.held, []
    return [*held, event]


def increments(change: Callable[[Json], Any]) -> Patching:
    """Change increments alone."""
    return wire.events(RUN_SSE, lambda event: change(event) if is_increment(event) else event)


def dropped(which: Callable[[Json], bool]) -> OfEvent:
    """Return a change of events that leaves some out."""
    return lambda event: DROP if which(event) else event


# ---- lists of sessions, and answers that do not change


def listed_too(shown: Callable[[Owner, Owner], bool]) -> Patching:
    """List the sessions of all owners that are shown to an owner: application and user."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        of_one = MemorySessions.of_user

        async def of_user(self: MemorySessions, app: str, user: str) -> Sequence[StoredSession]:
            owners = [
                one for one in self._sessions if one == (app, user) or shown((app, user), one)
            ]
            return [session for owner in owners for session in await of_one(self, *owner)]

        patch.setattr(MemorySessions, "of_user", of_user)

    return patching


def other_user_of_app(asked: Owner, owner: Owner) -> bool:
    """Return whether an owner is of the application that is asked for."""
    return asked[0] == owner[0]


def stale(route: str, *, filled: bool = False) -> Patching:
    """Answer again what was answered first for a path; ``filled`` is: once it has an id."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        seen: dict[str, Any] = {}

        def answer(found: Any, request: Request) -> Any:
            right = "id" in found if filled else isinstance(found, list)
            return seen.setdefault(request.path, found) if right else found

        wire.answers(route, answer)(patch)

    return patching


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
