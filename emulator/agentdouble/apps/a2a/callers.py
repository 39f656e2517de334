"""The callers of an application, identified by the bearer keys of their requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.routes import DefaultServerCallContextBuilder
from starlette.requests import HTTPConnection, Request

from agentdouble.mcp_hosting.keys import find, presented


class Caller(User):
    """A caller by name, which does not reveal the key; the empty name is any caller."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller has sent a key."""
        return bool(self._name)

    @property
    def user_name(self) -> str:
        """The caller's name; other callers do not see this caller's tasks."""
        return self._name


class Callers(DefaultServerCallContextBuilder):
    """Identifies callers by the application's keys; without keys all callers are the same."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)

    def admits(self, request: HTTPConnection) -> bool:
        """Return whether a request has one of the keys, or no keys are set."""
        return not self._keys or find(presented(request.scope), self._keys) is not None

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of a call."""
        context = super().build(request)
        context.user = self.caller(request)
        return context

    def caller(self, request: HTTPConnection) -> Caller:
        """Return the caller of a request."""
        key = find(presented(request.scope), self._keys)
        return Caller("" if key is None else _name(key))


# The name is stored with the caller's tasks; the key must not be stored there.
def _name(key: str) -> str:
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
