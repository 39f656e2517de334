"""The output of our kernels: streams and messages with a limit, and the thread that sends them.

A kernel itself limits its output. The double also limits what it keeps, but it would have to
receive, verify and parse the output that it drops. 100 MB block its event loop, and with it every
other session, for half a second or more. So a stream or an error stops at 8 MiB, and a display at
the setting ``output_limit``, which is smaller.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import zmq
from ipykernel.iostream import BackgroundSocket, IOPubThread, OutStream
from jupyter_client.session import Session, new_id
from traitlets import Integer
from zmq.eventloop.zmqstream import ZMQStream

from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT


class OutputThread(IOPubThread):
    """Sends output while it is connected, and drops it otherwise.

    It can be connected again in a fork; its holders then send to the clients of the fork.
    """

    _connected = False
    _pipe_port = 0
    _of_process: ClassVar[OutputThread | None] = None

    def __init__(self) -> None:
        # The base class would make a loop and a thread at once; ``connect`` calls it.
        self.socket: Any = None
        self.io_loop: Any = None
        self.thread = threading.Thread(name="IOPub")
        self.background_socket = BackgroundSocket(self)  # type: ignore[no-untyped-call]

    def connect(self, socket: zmq.Socket[bytes], session: Session) -> None:
        """Start to send output to the clients of a socket."""
        background = self.background_socket
        super().__init__(socket, pipe=True, session=session)  # type: ignore[no-untyped-call]
        self.background_socket = background  # displays hold it
        self._connected, self._welcomes = True, False
        self._early = list[bytes]()
        self.start()  # type: ignore[no-untyped-call]
        OutputThread._of_process = self

    def _setup_pipe_in(self) -> None:
        """Make the key of the socket for the output of forks; the first fork makes the socket."""
        self._pipe_uuid, self._pipe_port = os.urandom(16), 0

    @staticmethod
    def listen_to_forks() -> None:
        """Listen to forks of this process, which send their output through it."""
        thread = OutputThread._of_process
        if thread is None or not thread._connected or thread._pipe_port:
            return
        if thread._is_master_process():  # type: ignore[no-untyped-call]
            with suppress(zmq.ZMQError):
                pipe = thread.socket.context.socket(zmq.PULL)
                thread._pipe_port = pipe.bind_to_random_port("tcp://127.0.0.1")
                thread.io_loop.add_callback(thread._listen_to, pipe)

    def _listen_to(self, pipe: zmq.Socket[bytes]) -> None:
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def sever(self) -> Mapping[str, object]:
        """Drop all output from now on, because the parent process sends it.

        Returns the parent's sockets and loop, which the caller must keep alive.
        """
        self._connected = False
        parents = dict(vars(self))
        self.socket, self.thread = None, threading.Thread(name="IOPub")
        return parents

    def _handle_subscription(self, frames: list[bytes]) -> None:
        """Welcome a client, but not before the kernel is ready to run code."""
        if self._welcomes:
            super()._handle_subscription(frames)  # type: ignore[no-untyped-call]
        else:
            self._early += frames

    def welcome(self) -> None:
        """Welcome clients from now on, and those that came before."""
        self._welcomes = True
        self._handle_subscription(self._early)

    # The base class's timer woke each idle kernel every ten seconds. The double's watch then saw
    # processor time, and measured the whole session.
    async def _run_event_pipe_gc(self) -> None:
        """Do nothing; ``schedule`` closes the sockets of ended threads instead."""

    def schedule(self, f: Callable[[], object]) -> None:
        """Schedule a function in the thread, if there is one.

        The socket of a new thread replaces those of ended threads.
        """
        if self._connected:
            if not hasattr(self._local, "event_pipe"):
                with self._event_pipe_gc_lock:
                    for stale in [thread for thread in self._event_pipes if not thread.is_alive()]:
                        self._event_pipes.pop(stale).close()
            super().schedule(f)  # type: ignore[no-untyped-call]


os.register_at_fork(before=OutputThread.listen_to_forks)


class CappedStream(OutStream):
    """Passes on at most ``OUTPUT_LIMIT`` characters of each execution and drops the rest.

    The count restarts at ``clear_output()``, as the double's does. Otherwise a long loop that
    shows its progress would show nothing at the end.
    """

    _about: Any = None
    _remaining = OUTPUT_LIMIT
    _sends = False  # whether a thread is sending what was buffered
    _original_stdstream_copy: int | None = None  # type: ignore[assignment]
    _fid: int

    def __init__(self, session: CappedSession, thread: OutputThread, name: str) -> None:
        super().__init__(session, thread, name, watchfd=False)  # type: ignore[no-untyped-call]

    def connect(self, *, capture: bool) -> None:
        """Send what is written; with ``capture``, also what is written to the descriptor."""
        self._master_pid = os.getpid()
        self._io_loop = self.pub_thread.io_loop
        self._drop_unsent()
        if capture:
            self._capture(_DESCRIPTORS[self.name])

    def sever(self) -> None:
        """Drop the parent's unsent output, and leave its file alone."""
        self._should_watch = False
        self._drop_unsent()
        # A write of the copy would reach the file or terminal of the parent.
        if self._original_stdstream_copy is not None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, self._original_stdstream_copy, inheritable=False)
            os.close(null)

    def _drop_unsent(self) -> None:
        self._buffer_lock = threading.RLock()
        self._buffers = defaultdict(io.StringIO)
        self._flush_pending = self._subprocess_flush_pending = self._sends = False

    def _capture(self, descriptor: int) -> None:
        """Read what is written to a descriptor; its file is kept at another number.

        In a fork that number stays the same, because handlers of logging hold it.
        """
        self._fid, writer = os.pipe()
        if self._original_stdstream_copy is None:
            self._original_stdstream_copy = os.dup(descriptor)
        else:
            os.dup2(descriptor, self._original_stdstream_copy, inheritable=False)
        self._original_stdstream_fd = os.dup2(writer, descriptor)
        os.set_blocking(self._fid, False)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._reading = threading.Lock()
        self._exc = None
        self._should_watch = True
        self.watch_fd_thread = threading.Thread(target=self._watch_pipe_fd, daemon=True)
        self.watch_fd_thread.start()

    def _watch_pipe_fd(self) -> None:
        poll = select.poll()
        poll.register(self._fid, select.POLLIN)
        try:
            while poll.poll() and self._should_watch:
                self._read()
        except Exception:
            self._exc = sys.exc_info()

    def _read(self) -> None:
        """Write what the pipe holds to the stream and to the original file."""
        with self._reading:
            try:
                content = os.read(self._fid, _PIPE_SIZE)
            except BlockingIOError:  # another thread has read it
                return
            self.write(self._decoder.decode(content))
            os.write(self._original_stdstream_copy, content)  # type: ignore[arg-type]

    def flush(self) -> None:
        """Send what was written until now, to the stream or to the descriptor.

        A kernel does so before it replies. Otherwise a child process's last output would belong to
        no cell if the reading thread came too late.
        """
        if self._should_watch and threading.current_thread() is not self.pub_thread.thread:
            self._read()
        # A cell flushes six times. Without the check, it would wait six times for the other thread.
        # In this order: what that thread sends has left the buffers, and is queued when it is done.
        if self._buffers or self._sends or self.echo is not None:
            super().flush()  # type: ignore[no-untyped-call]

    def _flush(self) -> None:
        self._sends = True
        try:
            super()._flush()  # type: ignore[no-untyped-call]
        finally:
            self._sends = False

    def write(self, string: str) -> int:
        """Write to the stream, up to the limit."""
        written, string = len(string), _encodable(string)
        about = (self.parent_header.get("msg_id"), self.session.cleared)
        if about != self._about:
            self._about, self._remaining = about, OUTPUT_LIMIT
        if len(string) <= self._remaining:
            self._remaining -= len(string)
            super().write(string)
        else:
            super().write(string[: self._remaining])
            self._remaining = 0
        return written


_DESCRIPTORS = {"stdout": 1, "stderr": 2}
_PIPE_SIZE = 65536


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

    An error over ``OUTPUT_LIMIT`` stays an error, with the start of its text. A display or other
    message over ``limit`` becomes a message of the type ``DROPPED``. Streams have their own limit.
    """

    limit = Integer(OUTPUT_LIMIT, config=True)
    cleared = 0  # how often the output has been cleared

    def renew(self) -> None:
        """Become another session with new ids; the key is set later."""
        self.pid = os.getpid()
        self.session = new_id()
        self.message_count = 0
        self.digest_history = set()

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
    """Return an error with the beginning of each of its texts."""
    content = {name: message["content"].get(name) for name in _SAYS_HOW_IT_WENT}
    if content["traceback"] is not None:
        limit = _ROOM // (2 + len(content["traceback"]))
        content["ename"], content["evalue"] = content["ename"][:limit], content["evalue"][:limit]
        content["traceback"] = [line[:limit] for line in content["traceback"]]
    return {"metadata": {}, "content": {**content, "bytes": size - _ROOM}}


_CUT = {"stream": _unchanged, "error": _start_of_error, "execute_reply": _start_of_error}
