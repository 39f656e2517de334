"""Who calls: the bearer key of a request, where an application has keys."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.routes import DefaultServerCallContextBuilder
from starlette.requests import HTTPConnection, Request

from agentdouble.apps.a2a.request_checks import check_request
from agentdouble.mcp_hosting.keys import find, presented


class Caller(User):
    """A caller by name, which does not reveal the key; "" is anybody."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller has shown a key."""
        return bool(self._name)

    @property
    def user_name(self) -> str:
        """The caller's name; no other caller sees its tasks."""
        return self._name


class Callers(DefaultServerCallContextBuilder):
    """Tells the callers of an application apart by its keys; without keys all are one."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)

    def admits(self, request: HTTPConnection) -> bool:
        """Return whether a request has one of the keys, or there are none."""
        return not self._keys or find(presented(request.scope), self._keys) is not None

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of a call; raise an A2AError for one that cannot be answered."""
        check_request(request)
        context = super().build(request)
        context.user = self.caller(request)
        return context

    def caller(self, request: HTTPConnection) -> Caller:
        """Return who calls."""
        key = find(presented(request.scope), self._keys)
        return Caller("" if key is None else _name(key))


# The name is stored with the caller's tasks, where the key must not be.
def _name(key: str) -> str:
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
