"""Snapshots of sandbox sessions, as a platform describes them."""

from __future__ import annotations

from dataclasses import dataclass

_LEFT_OUT = "Not in it: "


@dataclass(frozen=True, repr=False)
class SessionSnapshot:
    """A sandbox session as it was; ``platform.sandbox(from_snapshot=...)`` makes a copy of it.

    ``session_id`` is the SessionId (``s-...``) of the session that it was taken of. ``created_at``
    and ``reason`` are the platform's own words; a double's reason says what of the session is not
    in the snapshot, or why it cannot be resumed any more.
    """

    id: str
    status: str
    session_id: str
    user_session_id: str
    created_at: str
    reason: str = ""

    @property
    def left_out(self) -> str:
        """What of the session is not in it, for example "2 threads, 1 child process"."""
        return self.reason[len(_LEFT_OUT) :] if self.reason.startswith(_LEFT_OUT) else ""

    def __repr__(self) -> str:
        reason = f", {self.reason}" if self.reason else ""
        return f"<SessionSnapshot {self.id} {self.status} of {self.session_id}{reason}>"
