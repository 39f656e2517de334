"""Turns a kernel's messages into the outputs of a notebook cell: joined, in order, limited."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.sandbox.result import CellOutput

DROPPED = "agentdouble_dropped"  # our own kernels send it in place of a message that is too large
_NAME_LENGTH = 1000
_OF_A_DISPLAY = ("data", "metadata", "execution_count")
_SMALL = 64  # bytes

Publish = Callable[[str, Mapping[str, Any], int], None]


def _to_nobody(_msg_type: str, _content: Mapping[str, Any], _size: int) -> None:
    pass


@dataclass
class _Stream:
    """A stream that may go on; its chunks are joined only once, because there may be thousands."""

    name: str
    chunks: list[str] = field(default_factory=list)

    def closed(self) -> CellOutput:
        return CellOutput("stream", name=self.name, text="".join(self.chunks))


class OutputCollector:
    """Collects the outputs of one execution, at most ``limit`` bytes.

    It drops the rest, and a last output on stderr says how much. For each message that changes the
    outputs it calls ``publish`` with the message's type, the kept part of its content, and that
    part's rough size in bytes.
    """

    def __init__(self, limit: int, publish: Publish = _to_nobody) -> None:
        self._publish = publish
        self._outputs: list[CellOutput | _Stream] = []
        self._display_ids: dict[str, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._clear_before_next = False
        self._limit = limit
        self._left = limit
        self._dropped = 0
        self._error_kept = False  # whether an error has used the room reserved for the first
        self._error_missing = False

    def add(self, msg_type: str, content: Mapping[str, Any]) -> None:
        """Add one message of the kernel's IOPub channel; ignore types that are not outputs."""
        if msg_type == "clear_output":
            self._clear(wait=bool(content.get("wait")))
            self._publish("clear_output", {"wait": self._clear_before_next}, _SMALL)
        elif msg_type == "stream":
            # Jupyter has no other streams
            name = "stderr" if content["name"] == "stderr" else "stdout"
            self._stream(name, content["text"])
        elif msg_type == "update_display_data":
            self._update_display(content)
        elif msg_type in ("display_data", "execute_result"):
            self._display(msg_type, content)
        elif msg_type == "error":
            self._error(content)
        elif msg_type == DROPPED:
            self._dropped += content["bytes"]

    def add_missing_error(self, reply: Mapping[str, Any]) -> None:
        """Add the error of a kernel's reply if no message contained it (SBX-06)."""
        errors = [
            o for o in self._outputs if isinstance(o, CellOutput) and o.output_type == "error"
        ]
        if self._error_missing or not errors:
            self.add_last_error({"ename": "", "evalue": "", "traceback": (), **reply})

    def add_last_error(self, content: Mapping[str, Any]) -> None:
        """Add the error that ended the code, even if other outputs have used up the limit."""
        self._error_kept = self._error_missing = False
        self._error(content)

    def outputs(self) -> tuple[CellOutput, ...]:
        """Return the outputs, with a notice at the end if the limit cut them."""
        outputs = tuple(o.closed() if isinstance(o, _Stream) else o for o in self._outputs)
        if not self._dropped:
            return outputs
        mark = (
            f"[output cut: the limit is {self._limit} bytes, and at least {self._dropped} bytes "
            "more were dropped]\n"
        )
        self._publish("stream", {"name": "stderr", "text": mark}, len(mark))
        return (*outputs, CellOutput("stream", name="stderr", text=mark))

    def _clear_if_requested(self) -> None:
        if self._clear_before_next:
            self._clear(wait=False)

    def _clear(self, *, wait: bool) -> None:
        self._clear_before_next = wait
        if not wait:
            self._outputs.clear()
            self._display_ids.clear()
            self._sizes.clear()
            self._left = self._limit
            self._dropped = 0
            self._error_kept = self._error_missing = False

    def _stream(self, name: str, text: str) -> None:
        self._clear_if_requested()
        fitting = self._fit_text(text)
        if not fitting:
            return
        self._publish("stream", {"name": name, "text": fitting}, len(fitting))
        last = self._outputs[-1] if self._outputs else None
        if not isinstance(last, _Stream) or last.name != name:
            last = _Stream(name)
            self._outputs.append(last)
        last.chunks.append(fitting)

    def _display(self, msg_type: str, content: Mapping[str, Any]) -> None:
        self._clear_if_requested()
        size = _size(content, self._limit)
        if not self._fits(size):
            return
        self._publish(msg_type, _display_fields(content), size)
        self._sizes[len(self._outputs)] = size
        self._outputs.append(
            CellOutput(
                msg_type,
                data=content["data"],
                metadata=content.get("metadata", {}),
                execution_count=content.get("execution_count"),
            )
        )
        display_id = _display_id(content)
        if display_id is not None:
            self._display_ids.setdefault(display_id, []).append(len(self._outputs) - 1)

    def _update_display(self, content: Mapping[str, Any]) -> None:
        display_id = _display_id(content)
        indices = [] if display_id is None else self._display_ids.get(display_id, [])
        size = _size(content, self._limit)
        before = sum(self._sizes[index] for index in indices)
        if not indices or not self._fits(size * len(indices), in_place_of=before):
            return
        self._publish("update_display_data", _display_fields(content), size)
        for index in indices:
            self._sizes[index] = size
            display = self._outputs[index]
            assert isinstance(display, CellOutput)  # only displays have an id
            after = replace(display, data=content["data"], metadata=content.get("metadata", {}))
            self._outputs[index] = after

    def _error(self, content: Mapping[str, Any]) -> None:
        """Keep the first error even if the limit is used up; cut only its own text to the limit.

        Later errors use the room that is left, because code can show errors in a loop.
        """
        self._clear_if_requested()
        self._dropped += content.get("bytes", 0)
        if not self._error_kept:
            self._error_kept, self._left = True, self._limit
        elif not self._left:
            self._error_missing = True
            self._dropped += sum(map(len, (content["evalue"], *content["traceback"])))
            return
        self._keep_error(content)

    def _keep_error(self, content: Mapping[str, Any]) -> None:
        available = self._left
        error = CellOutput(
            "error",
            ename=content["ename"][:_NAME_LENGTH],
            evalue=self._fit_text(content["evalue"]),
            traceback=tuple(self._fit_text(line) for line in content["traceback"]),
        )
        self._outputs.append(error)
        details = {"ename": error.ename, "evalue": error.evalue, "traceback": error.traceback}
        self._publish("error", details, available - self._left)

    def _fit_text(self, text: str) -> str:
        encoded = text.encode("utf-8", "surrogatepass")
        head = encoded[: self._left]
        self._left -= len(head)
        self._dropped += len(encoded) - len(head)
        return text if len(head) == len(encoded) else head.decode("utf-8", "ignore")

    def _fits(self, size: int, *, in_place_of: int = 0) -> bool:
        if size > self._left + in_place_of:
            self._dropped += size
            return False
        self._left -= size - in_place_of
        return True


def _display_id(content: Mapping[str, Any]) -> str | None:
    display_id = content.get("transient", {}).get("display_id")
    return None if display_id is None else str(display_id)[:_NAME_LENGTH]


def _display_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a display that we keep, because code can add anything to it."""
    fields = {name: content[name] for name in _OF_A_DISPLAY if name in content}
    display_id = _display_id(content)
    return {**fields, "transient": {} if display_id is None else {"display_id": display_id}}


def _size(content: Mapping[str, Any], enough: int) -> int:
    """Return the bytes of a display in the answer, or a lower bound that exceeds ``enough``."""
    metadata = content.get("metadata")
    texts = (text for text in content["data"].values() if isinstance(text, str))
    at_least = sum(map(len, texts))
    if at_least > enough:  # no need to encode it
        return at_least
    return len(json.dumps(content["data"])) + (len(json.dumps(metadata)) if metadata else 0)
