"""The sessions that a conversation makes on a platform, which are removed after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from doublecheck.client import transport
from doublecheck.client._sync.platform import Platform
from doublecheck.comparing.references import parsed
from doublecheck.errors import DoubleCheckError
from doublecheck.wire import sandbox
from doublecheck.wire.exchanges import Exchange

_SHORTEST_NAME = 6  # a shorter name is part of other people's names, too
_SESSIONS = re.compile(r"/apps/[^/]+/users/[^/]+/sessions(/[^/]+)?")
_CONTEXT = re.compile(r'"contextId": ?"([^"]+)"')
_MOST_PAGES = 100
_WRONG_ANSWERS = (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError)


class Leftovers:
    """The sessions of a conversation on one platform.

    ``names`` are those that the conversation uses, and nobody else. A sandbox session is removed if
    it is new and was named by the conversation, or by an agent after one of its sessions. A session
    of the API server is removed if the platform generated its id, or if it has one of the names.
    """

    def __init__(self, platform: Platform, names: Sequence[str] = ()) -> None:
        self._platform = platform
        self._names = {one for one in names if len(one) >= _SHORTEST_NAME}
        self._before = self._instances()
        self._used: set[str] = set()
        self._made: dict[str, None] = {}

    def note(self, exchanges: Sequence[Exchange]) -> None:
        """Note what a part of the conversation has made."""
        for exchange in exchanges:
            self._note(exchange)

    def remove(self) -> tuple[str, ...]:
        """Remove the sessions; return those that could not be removed."""
        left = [path for path in self._made if not self._deleted(path)]
        for session_id, name in self._instances().items():
            if self._is_own(session_id, name) and not self._ended(session_id):
                left.append(name)
        return tuple(left)

    def _note(self, exchange: Exchange) -> None:
        request = exchange.request
        if "Action=InvokeTool" in request.url:
            asked = parsed(request.content.decode("utf-8", "replace"))
            self._used |= set(_texts(asked, "UserSessionId"))
        self._names |= set(_CONTEXT.findall(exchange.body.decode("utf-8", "replace")))
        path = urlsplit(request.url).path
        if exchange.status is None or exchange.status >= 300 or not _SESSIONS.fullmatch(path):
            return
        if request.method == "DELETE":
            self._made.pop(path, None)
        elif request.method == "POST":
            self._note_session(path, exchange)

    def _note_session(self, path: str, exchange: Exchange) -> None:
        answered = parsed(exchange.body.decode("utf-8", "replace"))
        for id_ in _texts(answered, "id"):
            asked_for = f"{path} {exchange.request.content.decode('utf-8', 'replace')}"
            if id_ not in asked_for or any(name in asked_for for name in self._names):
                self._made[path if path.endswith(f"/{id_}") else f"{path}/{id_}"] = None

    def _is_own(self, session_id: str, name: str) -> bool:
        if session_id in self._before:
            return False
        return name in self._used or any(one in name for one in self._names)

    def _deleted(self, path: str) -> bool:
        try:
            return self._platform.request("DELETE", path).status_code in (200, 202, 204, 404)
        except DoubleCheckError:
            return False

    def _ended(self, session_id: str) -> bool:
        when = transport.signing_time()
        call = sandbox.delete_session(self._platform.target, session_id, when)
        try:
            answer = self._platform.send(call.request)
            call.read(answer)
        except _WRONG_ANSWERS:
            return False
        return answer.is_success

    def _instances(self) -> Mapping[str, str]:
        """Return the names of the living sandbox sessions by their ids; {} if they are not told."""
        target = self._platform.target
        if target.credentials is None or target.tool_id is None:
            return {}
        with suppress(*_WRONG_ANSWERS):
            return dict(self._listed(target.tool_id))
        return {}

    def _listed(self, tool_id: str) -> Iterator[tuple[str, str]]:
        body: dict[str, Any] = {"ToolId": tool_id}
        for _ in range(_MOST_PAGES):
            when = transport.signing_time()
            asked = sandbox.signed(self._platform.target, body, when, action="ListSessions")
            result = json.loads(self._platform.send(asked).content)["Result"]
            for one in result.get("SessionInfos") or ():
                yield str(one["SessionId"]), str(one["UserSessionId"])
            if not result.get("NextToken"):
                return
            body = {**body, "NextToken": result["NextToken"]}


def _texts(document: Any, key: str) -> Iterator[str]:
    value = document.get(key) if isinstance(document, dict) else None
    if isinstance(value, str) and value:
        yield value
