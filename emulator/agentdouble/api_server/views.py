"""Sessions and events in responses, with the ledger's answers (sections 2.3, 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentdouble import ledger
from agentdouble.api_server.stores import StoredSession
from agentdouble.api_server.wire import Fragment, dumps, loads


def session(stored: StoredSession) -> bytes:
    """Return a session as JSON."""
    return dumps(_session(stored, events(stored.events)))


def sessions(stored: Sequence[StoredSession]) -> bytes:
    """Return a list of sessions as JSON (U-SESSION-LIST)."""
    if ledger.choose("U-SESSION-LIST") == "ids":
        return dumps([one.key.id for one in stored])
    return dumps([_session(one, []) for one in stored])


def events(stored: Iterable[bytes]) -> list[Any]:
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


def _session(stored: StoredSession, shown: list[Any]) -> dict[str, Any]:
    if ledger.choose("U-SESSION-FIELDS") == "id-only":
        return {"id": stored.key.id, "events": shown}
    return {
        "id": stored.key.id,
        "appName": stored.key.app,
        "userId": stored.key.user,
        "state": Fragment(dumps(stored.state)),
        "events": shown,
        "lastUpdateTime": stored.last_update,
    }
