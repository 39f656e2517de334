"""The sandbox sessions that a conversation makes on a platform, which are removed after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from doublecheck.api.platform import Platform
from doublecheck.client import transport
from doublecheck.compare.ids import parsed
from doublecheck.errors import DoubleCheckError
from doublecheck.wire import sandbox
from doublecheck.wire.exchanges import Exchange

_SHORTEST_NAME = 6  # a shorter name is part of other people's names, too
_CONTEXT = re.compile(r'"contextId": ?"([^"]+)"')
_MOST_PAGES = 100
_WRONG_ANSWERS = (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError)


class Leftovers:
    """The sandbox sessions of a conversation on one platform.

    ``names`` are those that the conversation uses, and nobody else. A session is removed if it is
    new and was named by the conversation, or by an agent after one of its sessions.
    """

    def __init__(self, platform: Platform, names: Sequence[str] = ()) -> None:
        self._platform = platform
        self._names = {name for name in names if len(name) >= _SHORTEST_NAME}
        self._used: set[str] = set()
        self._before = self._sessions()

    @property
    def url(self) -> str:
        """The address of the platform."""
        return self._platform.url

    def note(self, exchanges: Sequence[Exchange]) -> None:
        """Note the names that a part of the conversation has used."""
        for exchange in exchanges:
            if "Action=InvokeTool" in exchange.request.url:
                body = parsed(exchange.request.content.decode("utf-8", "replace"))
                if isinstance(body, dict):
                    self._used.add(str(body.get("UserSessionId")))
            self._names.update(_CONTEXT.findall(exchange.body.decode("utf-8", "replace")))

    def remove(self) -> tuple[str, ...]:
        """Remove the sessions; return the names of those that could not be removed."""
        return tuple(
            name
            for id_, name in self._sessions().items()
            if id_ not in self._before and self._is_own(name) and not self._removed(id_)
        )

    def _is_own(self, name: str) -> bool:
        return name in self._used or any(part in name for part in self._names)

    def _removed(self, session_id: str) -> bool:
        call = sandbox.delete_session(self._platform.target, session_id, transport.signing_time())
        try:
            response = self._platform.send(call.request)
            call.read(response)
        except _WRONG_ANSWERS:
            return False
        return response.is_success

    def _sessions(self) -> Mapping[str, str]:
        """Return the names of the living sandbox sessions by their ids; {} if there is no answer."""
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
            request = sandbox.signed(self._platform.target, body, when, action="ListSessions")
            result = json.loads(self._platform.send(request).content)["Result"]
            for session in result.get("SessionInfos") or ():
                yield str(session["SessionId"]), str(session["UserSessionId"])
            if not result.get("NextToken"):
                return
            body = {**body, "NextToken": result["NextToken"]}
