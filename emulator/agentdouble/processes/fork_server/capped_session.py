"""A kernel's messages that stop at a limit, as ``capped_stream`` has it for its streams.

One display or error of 100 MB would hold the double's event loop for half a second or more,
while it verifies and parses what it then drops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_client.session import Session
from traitlets import Integer

LIMIT = 8 * 1024 * 1024  # bytes; the double keeps less of a whole execution
DROPPED = "agentdouble_dropped"  # known to ``sandbox/outputs.py``, which is not imported here

_ROOM = LIMIT // 16  # characters of an error's text; one may take up to six bytes
_SAYS_HOW_IT_WENT = ("status", "execution_count", "ename", "evalue", "traceback", "context_lost")


class CappedSession(Session):
    """Sends in place of a large message a small one that says how much was dropped.

    An error over ``LIMIT`` stays an error, with the start of its text; a display or whatever
    else is over ``limit`` becomes a message of the type ``DROPPED``. Streams have a limit of
    their own.
    """

    limit = Integer(LIMIT, config=True)
    cleared = 0  # how often what was put out has been cleared

    def serialize(
        self, msg: dict[str, Any], ident: list[bytes] | bytes | None = None
    ) -> list[bytes]:
        """Serialize a message, or the small one in its place."""
        parts = super().serialize(msg, ident)
        self.cleared += msg["header"]["msg_type"] == "clear_output"
        size = sum(map(len, parts))
        cut = _CUT.get(msg["header"]["msg_type"], _dropped)
        if size <= self.limit or (cut is not _dropped and size <= LIMIT):
            return parts
        return super().serialize({**msg, **cut(msg, size)}, ident)


def _dropped(message: Mapping[str, Any], size: int) -> dict[str, Any]:
    header = {**message["header"], "msg_type": DROPPED}
    return {"header": header, "metadata": {}, "content": {"bytes": size}}


def _unchanged(_message: Mapping[str, Any], _size: int) -> dict[str, Any]:
    return {}


def _start_of_error(message: Mapping[str, Any], size: int) -> dict[str, Any]:
    content = {name: message["content"].get(name) for name in _SAYS_HOW_IT_WENT}
    if content["traceback"] is not None:
        content |= _shortened(content)
    return {"metadata": {}, "content": {**content, "bytes": size - _ROOM}}


def _shortened(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the start of an error's texts."""
    left, texts = _ROOM, []
    for text in (error["ename"], error["evalue"], *error["traceback"]):
        texts.append(text[:left])
        left -= len(texts[-1])
    return {
        "ename": texts[0],
        "evalue": texts[1],
        "traceback": [text for text in texts[2:] if text],
    }


_CUT = {"stream": _unchanged, "error": _start_of_error, "execute_reply": _start_of_error}
