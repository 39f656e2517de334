"""Leftovers: resources that a check creates on a platform, removed when it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError
from doublecheck.wire import api_server

_NOTHING_SENSIBLE = (
    *(DoubleCheckError, ValueError, KeyError, TypeError, AssertionError),
    pytest.fail.Exception,
)


class Leftovers:
    """The resources to remove from a platform.

    A failed removal is not reported: the resource expires anyway, and other checks test deletion.
    Sandbox sessions are found in the list by name, because an application may have named them.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._sandboxes: set[str] = set()
        self._users: set[tuple[Platform, str, str]] = set()
        self._removals: list[Callable[[], Any]] = []

    def sandbox(self, name: str) -> None:
        """Register sessions whose UserSessionId contains this text for removal."""
        self._sandboxes.add(name)

    def user(self, app: str, user: str, platform: Platform | None = None) -> None:
        """Register a user's sessions of an application for removal, by default on the platform."""
        self._users.add((platform or self._platform, app, user))

    def add(self, remove: Callable[[], Any]) -> None:
        """Register a function that removes something."""
        self._removals.append(remove)

    def remove(self) -> None:
        """Remove everything that is registered, newest first."""
        while self._removals:
            with contextlib.suppress(*_NOTHING_SENSIBLE):
                self._removals.pop()()
        while self._users:
            with contextlib.suppress(*_NOTHING_SENSIBLE):
                platform, app, user = self._users.pop()
                for session in platform.agents.list(app, user_id=user):
                    platform.request("DELETE", api_server.session_path(app, user, session.id))
        self.remove_sandboxes()

    def remove_sandboxes(self) -> None:
        """Remove the registered sandbox sessions."""
        if self._sandboxes:
            with contextlib.suppress(*_NOTHING_SENSIBLE):
                for id_, name in self._platform._sandbox_names().items():
                    if any(part in name for part in self._sandboxes):
                        self._platform.sandbox(instance_id=id_).destroy()
