"""The record of a session's snapshot."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.state import Record


@dataclass(frozen=True)
class SessionSnapshot:
    """A snapshot of a session.

    ``type`` is Automatic for the snapshot that was taken when the session expired. ``reason`` says
    why it was taken, or why it cannot be resumed. ``omitted`` names parts of the session that it
    does not contain; ``variables`` are the session's environment variables, and ``metadata`` its
    texts by key.
    """

    id: str
    key: InstanceKey
    session_id: str
    session_created_at: dt.datetime
    created_at: dt.datetime
    type: Literal["Manual", "Automatic"] = "Manual"
    status: Literal["Creating", "Ready", "Failed"] = "Ready"
    reason: str = ""
    omitted: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def left_out(self) -> str:
        """A sentence about what it does not contain, or an empty text."""
        return f"Not in it: {', '.join(self.omitted)}" if self.omitted else ""

    def to_document(self) -> Record:
        """Return how the snapshot is shown at ``/_emulator/snapshots``."""
        return {
            "SnapshotId": self.id,
            "ToolId": self.key.tool_id,
            "UserSessionId": self.key.user_session_id,
            "SessionId": self.session_id,
            "type": self.type,
            "state": self.status,
            "reason": self.reason,
            "left_out": [*self.omitted],
            "created_at": self.created_at.isoformat(),
        }

    def to_record(self) -> Record:
        """Return the snapshot as JSON-ready data."""
        return {
            "tool_id": self.key.tool_id,
            "user_session_id": self.key.user_session_id,
            "session_id": self.session_id,
            "session_created_at": self.session_created_at.isoformat(),
            "created_at": self.created_at.isoformat(),
            "type": self.type,
            "reason": self.reason,
            "omitted": [*self.omitted],
            "variables": {**self.variables},
            "metadata": {**self.metadata},
        }

    @classmethod
    def of(cls, id_: str, record: Record) -> SessionSnapshot:
        """Return the snapshot of a record, which is ready."""
        return cls(
            id=id_,
            key=InstanceKey(record["tool_id"], record["user_session_id"]),
            session_id=record["session_id"],
            session_created_at=dt.datetime.fromisoformat(record["session_created_at"]),
            created_at=dt.datetime.fromisoformat(record["created_at"]),
            type=record["type"],
            reason=record["reason"],
            omitted=tuple(record["omitted"]),
            variables=record["variables"],
            metadata=record["metadata"],
        )
