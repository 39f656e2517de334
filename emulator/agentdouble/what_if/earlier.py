"""Which earlier requests of the journal made what a request relies on.

A request relies on those that used its session, and on those that named one of its ids: the
answer that created a tool, the conversation that a message continues. This is a guess by names, and
the answer to the question says which requests were asked first.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from agentdouble.journal import Entry, Start

MOST = 20
_READING = ("GET", "HEAD", "OPTIONS")
_READING_ACTIONS = ("Get", "List")
_ID = re.compile(r"(?:id|Id|ID)$")
_NO_ID = re.compile(r"(?:user|app|message|request|invocation|caller)_?id$|^id$", re.IGNORECASE)
_SESSION_HEADERS = (b"mcp-session-id", b"session_id")


def relied_on(entry: Entry, entries: Sequence[Entry], known: Collection[str]) -> list[Entry]:
    """Return the requests that came before an entry and made what it relies on, oldest first.

    ``known`` are the ids that every double has. At most the last ``MOST`` are returned.
    """
    by_id = {one.id: one for one in entries}
    sessions = {entry.session} | {one.session for one in entries if one.caused_by == entry.id}
    sessions.discard(None)
    wanted = _uses(entry) - set(known)
    found: dict[int, Entry] = {}
    for one in reversed([one for one in entries if one.id < entry.id]):
        if not _changes(one) or one.id == entry.caused_by:
            continue
        uses = _uses(one) - set(known)
        if one.session in sessions or (uses | _makes(one)) & wanted:
            first = _first_cause(one, by_id, entry)
            found[first.id] = first
            wanted |= uses
    kept = sorted(found)
    inner = {id_ for id_ in kept if found[id_].caused_by in found}
    return [found[id_] for id_ in kept if id_ not in inner][-MOST:]


def _first_cause(one: Entry, by_id: Mapping[int, Entry], entry: Entry) -> Entry:
    """Return the request of a client whose code sent this one.

    What code sent relies on what code sent before it, and not on the agent that ran it.
    """
    return one if entry.caused_by else by_id.get(one.caused_by or 0, one)


def _changes(one: Entry) -> bool:
    """Return whether a request was accepted and may have changed something."""
    action = _action(one)
    reads = action.startswith(_READING_ACTIONS) if action else one.method in _READING
    return not reads and one.status is not None and one.status < 400


def _action(one: Entry) -> str:
    return parse_qs(urlsplit(one.url).query).get("Action", [""])[0]


def _uses(one: Entry) -> set[str]:
    """Return the ids that a request names."""
    segments = [unquote(part) for part in urlsplit(one.url).path.split("/")]
    after = {"sessions", "tasks", "mcp"}
    named = {two for first, two in itertools.pairwise(segments) if first in after}
    sent = {value.decode("latin-1") for name, value in one.request_head if name in _SESSION_HEADERS}
    return {id_ for id_ in (*named, *sent, *_ids(_json(one.request_start))) if id_}


def _makes(one: Entry) -> set[str]:
    """Return the ids in an answer, and the name of what an action created."""
    heads = {
        value.decode("latin-1") for name, value in one.response_head if name == b"mcp-session-id"
    }
    answer, asked = _json(one.response_start), _json(one.request_start)
    named = [asked.get("Name")] if _action(one) and isinstance(asked, dict) else []
    own = [answer.get("id")] if isinstance(answer, dict) else []
    return {*heads, *_ids(answer), *(text for text in (*named, *own) if isinstance(text, str))}


def _json(start: Start | None) -> Any:
    body = start.whole() if start is not None else None
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _ids(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, str) and _ID.search(name) and not _NO_ID.search(name):
                yield one
            else:
                yield from _ids(one)
