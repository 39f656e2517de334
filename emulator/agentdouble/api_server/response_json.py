"""The JSON of responses: sessions, events and the server (sections 2.3, 2.4, 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import NotRequired, TypedDict

from agentdouble.api_server.json_text import Fragment, dumps, loads
from agentdouble.api_server.models import EventBody, Json
from agentdouble.api_server.stores import StoredSession
from agentdouble.core import ledger


class Session(TypedDict):
    """A session; the ledger's alternatives leave out all but its id and its events."""

    id: str
    appName: NotRequired[str]
    userId: NotRequired[str]
    state: NotRequired[Json]
    events: list[EventBody]
    lastUpdateTime: NotRequired[float]


Sessions = list[Session] | list[str]


class Described(TypedDict):
    """The applications, each with its description."""

    apps: list[Json]


class AppsQuery(TypedDict, total=False):
    """Whether the applications are described."""

    detailed: bool


class Health(TypedDict):
    """The health of the server."""

    status: str


class Version(TypedDict):
    """The versions of the server and of its language."""

    version: str
    language: str
    language_version: str


class Detail(TypedDict):
    """The reason of a refusal: a text, or the invalid fields."""

    detail: Any


def session(stored: StoredSession) -> bytes:
    """Return a session as JSON."""
    return dumps(_session(stored, visible_events(stored.events)))


def sessions(stored: Sequence[StoredSession]) -> bytes:
    """Return a list of sessions as JSON (U-SESSION-LIST)."""
    if ledger.choose("U-SESSION-LIST") == "ids":
        return dumps([session.key.id for session in stored])
    return dumps([_session(session, []) for session in stored])


def visible_events(stored: Iterable[bytes]) -> list[Any]:
    """Return events in a form that can be put into other JSON."""
    if ledger.choose("U-EVENT-FIELDS") == "content-only":
        return [_content_only(event) for event in stored]
    return [Fragment(event) for event in stored]


def event(json: bytes) -> bytes:
    """Return the JSON of one event, with the fields that the ledger selects."""
    if ledger.choose("U-EVENT-FIELDS") == "content-only":
        return dumps(_content_only(json))
    return json


def _content_only(json: bytes) -> dict[str, Any]:
    return {key: value for key, value in loads(json).items() if key == "content"}


def _session(stored: StoredSession, events: list[Any]) -> dict[str, Any]:
    if ledger.choose("U-SESSION-FIELDS") == "id-only":
        return {"id": stored.key.id, "events": events}
    return {
        "id": stored.key.id,
        "appName": stored.key.app,
        "userId": stored.key.user,
        "state": Fragment(dumps(stored.state)),
        "events": events,
        "lastUpdateTime": stored.last_update,
    }
