"""How a runtime is, in the platform's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Word = Literal["Creating", "Ready", "Updating", "Error", "Releasing", "Deleting", "UnReleased"]


@dataclass(frozen=True)
class Status:
    """A status of the platform; ``message`` says why, where there is something to say."""

    word: Word
    message: str = ""
