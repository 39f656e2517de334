"""What a client created and ends again, at the latest after the test."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Created:
    """The copies of sessions, by SessionId, and the ids of session snapshots."""

    copies: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)

    def forget_copy(self, instance_id: str) -> None:
        """Forget a copy that is about to end."""
        if instance_id in self.copies:
            self.copies.remove(instance_id)
