"""The scopes of state: a session's own, its user's (``user:``), the application's (``app:``).

Keys that begin with ``temp:`` belong to one run and are never kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

APP = "app:"
USER = "user:"
TEMP = "temp:"


@dataclass
class Scoped:
    """State by scope, the keys without their prefixes."""

    app: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)


def split(state: Mapping[str, Any]) -> Scoped:
    """Return state by scope, without what is temporary."""
    scoped = Scoped()
    for key, value in state.items():
        if key.startswith(APP):
            scoped.app[key[len(APP) :]] = value
        elif key.startswith(USER):
            scoped.user[key[len(USER) :]] = value
        elif not key.startswith(TEMP):
            scoped.session[key] = value
    return scoped


def merge(scoped: Scoped) -> dict[str, Any]:
    """Return all of it under prefixed keys: the session's, then the application's, the user's."""
    merged = dict(scoped.session)
    merged.update({APP + key: value for key, value in scoped.app.items()})
    merged.update({USER + key: value for key, value in scoped.user.items()})
    return merged
