"""The output of our kernels: streams and messages with a limit, and pipes that are closed.

A kernel itself limits its output. The double also limits what it keeps, but it would have to
receive, verify and parse the output that it drops. 100 MB block its event loop, and with it every
other session, for half a second or more. So a stream or an error stops at 8 MiB, and a display at
the setting ``output_limit``, which is smaller.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ipykernel.iostream import IOPubThread, OutStream
from jupyter_client.session import Session
from traitlets import Integer

from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT


class CappedStream(OutStream):
    """Passes on at most ``OUTPUT_LIMIT`` characters of each execution and drops the rest.

    The count restarts at ``clear_output()``, as the double's own does. Otherwise a long loop that
    shows its progress would show nothing at the end.
    """

    _about: Any = None
    _left = OUTPUT_LIMIT

    def write(self, string: str) -> int:
        """Write to the stream, up to the limit."""
        written, string = len(string), _encodable(string)
        about = (self.parent_header.get("msg_id"), self.session.cleared)
        if about != self._about:
            self._about, self._left = about, OUTPUT_LIMIT
        if len(string) <= self._left:
            self._left -= len(string)
            super().write(string)
        else:
            super().write(string[: self._left])
            self._left = 0
        return written


def _encodable(text: str) -> str:
    """Return a text with escaped lone surrogates; one surrogate would lose the whole message."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


DROPPED = "agentdouble_dropped"  # known to ``sandbox/outputs.py``, which is not imported here

_ROOM = OUTPUT_LIMIT // 16  # characters of an error's text; one may take up to six bytes
_SAYS_HOW_IT_WENT = ("status", "execution_count", "ename", "evalue", "traceback", "context_lost")


class CappedSession(Session):
    """Replaces each large message by a small one that says how much was dropped.

    An error over ``OUTPUT_LIMIT`` stays an error, with the start of its text. A display, or any
    other message, over ``limit`` becomes a message of the type ``DROPPED``. Streams have their own
    limit.
    """

    limit = Integer(OUTPUT_LIMIT, config=True)
    cleared = 0  # how often the output has been cleared

    def serialize(
        self, msg: dict[str, Any], ident: list[bytes] | bytes | None = None
    ) -> list[bytes]:
        """Serialize a message, or the small message that replaces it."""
        parts = super().serialize(msg, ident)
        self.cleared += msg["header"]["msg_type"] == "clear_output"
        size = sum(map(len, parts))
        cut = _CUT.get(msg["header"]["msg_type"], _dropped)
        if size <= self.limit or (cut is not _dropped and size <= OUTPUT_LIMIT):
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
    """Return the beginning of an error's texts."""
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


_KERNELS_OWN = 2  # pipes of threads that do not end: the main one, the one of the control channel


class _Pipes(dict[threading.Thread, Any]):
    """The pipes, by thread; calls ``on_more`` if there are more than the kernel's own."""

    def __init__(self, pipes: dict[threading.Thread, Any], on_more: Callable[[], object]) -> None:
        super().__init__(pipes)
        self._on_more = on_more

    def __setitem__(self, thread: threading.Thread, pipe: Any) -> None:
        super().__setitem__(thread, pipe)
        if len(self) > _KERNELS_OWN:
            self._on_more()


async def close_when_threads_end(iopub: IOPubThread) -> None:
    """Close the pipes of threads that have printed and ended, as ipykernel does.

    ipykernel looks for such pipes every ten seconds, also in an idle kernel. The double measures a
    session's usage whenever one of its processes has done something, so this search would cost more
    than everything else in hundreds of idle sessions. This function searches only while threads
    have pipes.
    """
    more, loop = asyncio.Event(), asyncio.get_running_loop()
    pipes = _Pipes(iopub._event_pipes, lambda: loop.call_soon_threadsafe(more.set))
    iopub._event_pipes = pipes
    while True:
        more.clear()
        if len(pipes) <= _KERNELS_OWN:
            await more.wait()
        await asyncio.sleep(iopub._event_pipe_gc_seconds)
        await iopub._event_pipe_gc()  # type: ignore[no-untyped-call]
