"""The model of a double: its scripts, its requests and its recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import ModelError
from agentdouble.model.conversation import ConversationRequest, ModelAnswer
from agentdouble.model.scripts import Scripts
from agentdouble.model.stored_responses import StoredResponses

if TYPE_CHECKING:
    from agentdouble.model.recording import ModelRecording

CODE = """\
import platform
print(f"6 * 7 = {6 * 7}, says Python {platform.python_version()}")
"""
SHIPPED: tuple[Mapping[str, Any], ...] = (
    {
        "when": {"after": "run_code"},
        "steps": [{"text": "The code that ran in the sandbox printed: {{output}}", "times": "all"}],
    },
    {
        "when": {"tool": "run_code"},
        "steps": [
            {
                "calls": [{"name": "run_code", "arguments": {"code": CODE, "language": "python3"}}],
                "times": "all",
            }
        ],
    },
    {
        "steps": [
            {
                "text": "This model only follows a script. Give the agent the tool run_code, and "
                "the script calls it.",
                "times": "all",
            }
        ],
    },
)
_REQUESTS = 200
_REQUESTS_BYTES = 32 * 1024 * 1024  # all together, because prompts can contain files


class ModelService:
    """A model that answers by script; ``recording`` answers instead while it is set."""

    def __init__(self, initial: Iterable[Mapping[str, Any]] = ()) -> None:
        self.scripts = Scripts(initial)
        self.recording: ModelRecording | None = None
        self.responses = StoredResponses()
        self.names: tuple[str, ...] = ()  # empty: every name is a model
        self._requests: deque[tuple[dict[str, Any], int]] = deque(maxlen=_REQUESTS)

    def reset(self) -> None:
        """Restore the initial scripts, and forget requests, responses, names and the recording."""
        self.scripts.reset()
        self.recording, self.names = None, ()
        self.responses.clear()
        self._requests.clear()

    def answer(self, request: ConversationRequest) -> ModelAnswer:
        """Return the scripted answer of a request. Raise ModelError without one."""
        self.require(request.model)
        return self.scripts.answer(request)

    def require(self, name: str) -> None:
        """Raise ModelError if there is no model of that name."""
        if self.names and name not in self.names:
            hint = did_you_mean(name, self.names)
            raise ModelError(
                f"There is no model {name!r:.100}; there are {', '.join(self.names)}.{hint}",
                status=404,
                code="model_not_found",
            )

    def note(self, request: ConversationRequest, size: int) -> None:
        """Keep a request of ``size`` bytes for ``to_dict``; the oldest go first."""
        self._requests.append((request.to_dict(), size))
        while len(self._requests) > 1 and sum(n for _, n in self._requests) > _REQUESTS_BYTES:
            self._requests.popleft()

    def to_dict(self) -> dict[str, Any]:
        """Return the scripts, the requests (oldest first) and the names as JSON-ready data."""
        return {
            "scripts": [script.to_dict() for script in self.scripts],
            "requests": [document for document, _ in self._requests],
            "models": list(self.names),
        }
