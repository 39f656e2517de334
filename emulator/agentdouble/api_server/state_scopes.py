"""The scopes of a session's state: of the session, the application and the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

APP = "app:"
USER = "user:"
TEMP = "temp:"


@dataclass
class ScopedState:
    """State by scope; the keys have no prefixes.

    A session has its own state, its user's (``user:``) and its application's (``app:``). Keys that
    begin with ``temp:`` belong to one run and are never stored.
    """

    app: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)


def split_scopes(state: Mapping[str, Any]) -> ScopedState:
    """Split a state into its scopes, without temporary keys."""
    scoped = ScopedState()
    for key, value in state.items():
        if key.startswith(APP):
            scoped.app[key[len(APP) :]] = value
        elif key.startswith(USER):
            scoped.user[key[len(USER) :]] = value
        elif not key.startswith(TEMP):
            scoped.session[key] = value
    return scoped


def merge_scopes(scoped: ScopedState) -> dict[str, Any]:
    """Return one mapping with prefixed keys: of the session, the application, the user."""
    merged = dict(scoped.session)
    merged.update({APP + key: value for key, value in scoped.app.items()})
    merged.update({USER + key: value for key, value in scoped.user.items()})
    return merged
