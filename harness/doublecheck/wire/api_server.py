"""The format of API-server mode: paths, the body of a run, answers (sections 2.2 to 2.4, 4.2)."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from doublecheck.errors import AnswerError, ArgumentError
from doublecheck.values.agents import AgentEvent, AgentEvents, AgentSession, AgentSessions
from doublecheck.wire import calls

if TYPE_CHECKING:
    import httpx


def body(session: AgentSession, message: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a run (section 2.2) with further ``fields``."""
    return {
        "appName": session.app_name,
        "userId": session.user_id,
        "sessionId": session.id,
        "newMessage": {"role": "user", "parts": [{"text": message}]},
        **fields,
    }


def sessions_path(app: str, user_id: str) -> str:
    """Return the path of a user's sessions."""
    return f"/apps/{segment('app', app)}/users/{segment('user_id', user_id)}/sessions"


def session_path(app: str, user_id: str, session_id: str) -> str:
    """Return the path of a session."""
    return f"{sessions_path(app, user_id)}/{segment('session_id', session_id)}"


def segment(name: str, value: str) -> str:
    """Quote a segment of a path. Raise ArgumentError, with its ``name``, if it is empty."""
    if not value:
        raise ArgumentError(f"{name} is empty, but the request's path needs it.")
    return quote(value, safe="")


def read_apps(response: httpx.Response) -> tuple[str, ...]:
    """Return the names of applications, in any of the list's formats (U-LIST-APPS)."""
    return tuple(_name(app, "name", "appName", "app_name", "id") for app in read_list(response))


def read_list(response: httpx.Response) -> list[Any]:
    """Return a list, which may be in an object: the only one, or the only one that is not empty.

    Null, and an object without a value, are an empty list.

    Raise AnswerError if there is none.
    """
    document = calls.read_json(response)
    listed = list_in(document)
    if listed is None and not any(document.values() if isinstance(document, dict) else [document]):
        return []  # as some languages write an empty list
    if listed is None:
        raise calls.wrong_answer(
            response,
            f"{calls.route(response)} returned neither a list nor an object with one: "
            f"{response.text:.80}",
        )
    return listed


def list_in(document: Any) -> list[Any] | None:
    """Return the list in a document, or None if there is none, or several with items."""
    lists = [*_lists(document)]
    with_items = [some for some in lists if some]
    return (with_items or lists)[0] if lists and len(with_items) < 2 else None


def _lists(document: Any) -> Iterator[list[Any]]:
    """Yield the lists in a document, but not those inside of lists."""
    if isinstance(document, list):
        yield document
    elif isinstance(document, dict):
        for value in document.values():
            yield from _lists(value)


def _name(item: Any, *fields: str) -> str:
    """Return the name of an item of a list, which is the item itself or one of its fields."""
    if not isinstance(item, dict):
        return str(item)
    name = next((item[name] for name in fields if item.get(name) is not None), None)
    if name is None:
        raise KeyError(fields[0])
    return str(name)


def read_session(response: httpx.Response) -> AgentSession:
    """Read a session. Raise RefusedError, or AnswerError if it is not one."""
    return _session(calls.read_json(response), response)


def read_event(data: str) -> AgentEvent:
    """Read the event of one ``data:`` line. Raise AnswerError if it is not one."""
    try:
        return _event(json.loads(data))
    except (ValueError, AttributeError, TypeError) as error:
        raise AnswerError(
            f"This is not an event: {data!r} ({error})", status=200, body=data
        ) from None


def read_sessions(response: httpx.Response) -> AgentSessions:
    """Read a list of sessions or of session ids. Raise RefusedError or AnswerError."""
    listed = ({"id": item} if isinstance(item, str) else item for item in read_list(response))
    return AgentSessions(_session(item, response) for item in listed)


def read_names(response: httpx.Response) -> tuple[str, ...]:
    """Return the names of artifacts, in any of the list's formats (U-ARTIFACTS)."""
    names = ("name", "filename", "fileName", "file_name", "key", "id")
    return tuple(_name(item, *names) for item in read_list(response))


def read_content(response: httpx.Response) -> bytes:
    """Return the bytes of an artifact, which is a message part: text or inline data."""
    part = calls.read_json(response)
    content = part if isinstance(part, dict) else {}
    if isinstance(content.get("text"), str):
        return str(content["text"]).encode("utf-8", "surrogatepass")
    with contextlib.suppress(TypeError, ValueError, KeyError):
        return base64.urlsafe_b64decode(content["inlineData"]["data"])
    raise calls.wrong_answer(
        response,
        f"An artifact must have a text or inline data, but has {', '.join(content) or 'neither'}.",
    )


def read_events(response: httpx.Response) -> AgentEvents:
    """Return the events of a run. Raise RefusedError, or AnswerError if there is no list."""
    listed = read_list(response)
    try:
        return AgentEvents(map(_event, listed))
    except (AttributeError, TypeError) as error:
        raise calls.wrong_answer(
            response,
            f"{calls.route(response)} returned an invalid event ({error}): {response.text:.80}",
        ) from None


def _session(document: Any, response: httpx.Response) -> AgentSession:
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        raise calls.wrong_answer(response, "The session has no id.")
    return AgentSession(
        id=document["id"],
        app_name=document.get("appName", ""),
        user_id=document.get("userId", ""),
        state=document.get("state") or {},
        events=AgentEvents(map(_event, _history(document))),
        last_update_time=document.get("lastUpdateTime"),
    )


def _history(document: Mapping[str, Any]) -> list[Any]:
    """Return the events of a session, whose field may have any name (U-SESSION-FIELDS)."""
    lists = [value for value in document.values() if isinstance(value, list)]
    histories = (
        some for some in lists if any(isinstance(it, dict) and "content" in it for it in some)
    )
    return document.get("events") or next(histories, [])


def _event(document: Any) -> AgentEvent:
    if not isinstance(document, dict):
        raise TypeError("an event is an object")
    content = document.get("content") or {}
    return AgentEvent(
        role=content.get("role"),
        parts=tuple(map(_part, content.get("parts") or ())),
        author=document.get("author"),
        partial=bool(document.get("partial")),
        error=document.get("error") or document.get("errorMessage"),
        id=document.get("id"),
        invocation_id=document.get("invocationId"),
        timestamp=document.get("timestamp"),
        raw=document,
    )


def _part(part: Any) -> Mapping[str, Any]:
    if not isinstance(part, dict) or not isinstance(part.get("text"), (str, NoneType)):
        raise TypeError(f"{part!r:.80} is not a part of an event")
    return part
