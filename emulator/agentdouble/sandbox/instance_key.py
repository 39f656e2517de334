"""The key by which requests find a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InstanceKey:
    """The key of a session's instance: the tool id and the tool-user session id."""

    tool_id: str
    user_session_id: str
