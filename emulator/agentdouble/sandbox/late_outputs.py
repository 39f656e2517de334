"""Output of code that has ended: a thread or a timer still prints, and no result contains it.

A kernel marks such output with the request of the code that began it. It goes to the log of the
session, and as the event ``late`` to those who listen to the session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentdouble.sandbox.output_feed import ExecutionPublisher

_REMEMBERED = 100  # executions of a kernel
_LOGGED = 20  # lines for each of them, so that a thread in a loop leaves room for other events
_SIZE = 100  # bytes that an output is counted as, apart from its text


def _to_nobody(_line: str) -> None:
    pass


class LateOutputs:
    """The executions of one kernel that have ended, and what they still put out.

    ``note`` is called with a line for the session's log.
    """

    def __init__(self) -> None:
        self.note: Callable[[str], None] = _to_nobody
        self._ended: OrderedDict[str, tuple[int, ExecutionPublisher | None]] = OrderedDict()
        self._lines: dict[str, int] = {}

    def remember(self, msg_id: str, count: int, publisher: ExecutionPublisher | None) -> None:
        """Remember an execution that has ended, by the id of its request."""
        self._ended[msg_id] = (count, publisher)
        if len(self._ended) > _REMEMBERED:
            oldest, _ = self._ended.popitem(last=False)
            self._lines.pop(oldest, None)

    def take(self, msg_id: str, msg_type: str, content: Mapping[str, Any]) -> None:
        """Pass an output on if it is one of an execution that has ended."""
        if msg_id not in self._ended:
            return
        count, publisher = self._ended[msg_id]
        text = _text(msg_type, content)
        if publisher is not None:
            publisher.late(msg_type, content, len(text) + _SIZE)
        lines = self._lines[msg_id] = self._lines.get(msg_id, 0) + 1
        if lines <= _LOGGED:
            self.note(f"output of execution {count} after its end, in no result: {text}")
        elif lines == _LOGGED + 1:
            self.note(f"further output of execution {count} after its end is not logged")


def _text(msg_type: str, content: Mapping[str, Any]) -> str:
    if msg_type == "stream":
        return f"{content['name']}: {content['text']}"
    if msg_type == "error":
        return f"{content['ename']}: {content['evalue']}"
    return str(content.get("data", {}).get("text/plain", msg_type))
