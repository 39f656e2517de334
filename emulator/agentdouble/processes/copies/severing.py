"""Makes a fork of a running kernel harmless to its source: sockets, threads and the event loop.

In a fork, the threads are gone, but the sockets of ZMQ and their memory are there. Closing or
terminating them would wait for these threads, or write to the other process's descriptors. So they
are kept forever, and new ones are created.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import stat
from collections.abc import Container
from typing import TYPE_CHECKING, Any

import zmq
from tornado.ioloop import IOLoop

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.kernel_app import KernelApp

_OF_APP = (
    *("context", "heartbeat", "control_thread", "shell_channel_thread", "shell_socket"),
    *("control_socket", "stdin_socket", "late_channels"),
)
_OF_KERNEL = (
    *("shell_stream", "control_stream", "stdin_socket", "control_thread"),
    "shell_channel_thread",
)
# The coroutines in which ipykernel waits for requests and handles them.
_REQUESTS = (
    *("_async_in_context.<locals>.run_in_context", "Kernel.shell_main", "Kernel.dispatch_shell"),
)

# pyzmq closes what the garbage collector finds: zmq.Socket.__del__ and zmq.Context.__del__.
_abandoned: list[object] = []


def sever(app: KernelApp, exempt: Container[int] = ()) -> None:
    """Make this new fork of a running kernel harmless to the process that it comes from.

    Its objects no longer reach any socket. ``exempt`` are descriptors that stay unchanged; of
    the others, those of files, directories and devices stay open.
    """
    _abandon(app.iopub_thread.sever())
    _abandon(app.context, app.shell_channel_thread.manager)
    for holder, names in ((app, _OF_APP), (app.kernel, _OF_KERNEL)):
        for name in names:
            _abandon(getattr(holder, name))
            setattr(holder, name, None)
    # The request to fork holds this lock, and in the fork it never ends: no later request of a
    # copy would get the lock.
    app.kernel._main_asyncio_lock = asyncio.Lock()
    _deaden_descriptors(exempt)
    for stream in app.outputs:
        stream.sever()


def _abandon(*objects: object) -> None:
    """Keep objects of the parent process alive, so that nothing closes them."""
    for item in objects:
        # A context has only weak references to its sockets.
        sockets = list(item._sockets) if isinstance(item, zmq.Context) else ()
        _abandoned.append((item, sockets))


def _deaden_descriptors(exempt: Container[int]) -> None:
    """Replace descriptors by a dead socket, except files, directories and devices.

    The numbers stay in use, because objects that this process has inherited will close them. If
    the numbers were free, such a close would hit a new file or socket of the copy.
    """
    dead, peer = socket.socketpair()
    peer.close()
    null = os.open(os.devnull, os.O_RDWR)
    with dead:
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (all names before any changes)
            number = int(name)
            if number not in exempt and number != dead.fileno() and _is_shared(number):
                os.dup2(null if number < 3 else dead.fileno(), number, inheritable=number < 3)
    os.close(null)


def _is_shared(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # the descriptor of the listing is closed by now
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode))


def renew_loop(wrapper: Any) -> None:
    """Give an inherited event loop its own selector; its tasks and timers continue.

    ``wrapper`` is tornado's loop. Pending work for the parent's clients is dropped.
    """
    loop = wrapper.asyncio_loop
    # A fork's handler leaves the loop by an exception, so the loop may look as if it still runs.
    asyncio._set_running_loop(None)
    loop._thread_id = None
    loop._stopping = False
    asyncio.set_event_loop(loop)  # from Python 3.12 on, a fork forgets its event loop
    # The selector's epoll instance is shared with the parent: unregistering a descriptor here would
    # unregister it there.
    _abandon(loop._selector, loop._ssock, loop._csock)
    loop._selector = selectors.DefaultSelector()
    loop._internal_fds = 0
    loop._make_self_pipe()
    loop._default_executor = None  # the executor's threads are gone
    if loop._signal_handlers:
        signal.set_wakeup_fd(loop._csock.fileno())
    for watched in (wrapper.handlers, wrapper.readers, wrapper.writers):
        watched.clear()
    _drop_requests(loop)


def _drop_requests(loop: Any) -> None:
    """Drop the tasks and callbacks that handle requests of the parent's clients.

    The parent continues to handle them. A copy must not cancel them, because that would run their
    ``finally`` clauses in the copy, too. It must not free them either, because asyncio logs a
    pending task that is destroyed.
    """
    requests = {task for task in asyncio.all_tasks(loop) if _name(task.get_coro()) in _REQUESTS}
    for task in requests:
        asyncio.tasks._unregister_task(task)
    dropped = [handle for handle in (*loop._ready, *loop._scheduled) if _is_of(handle, requests)]
    _abandon(requests, dropped)
    for handle in dropped:
        handle._callback, handle._args = _nothing, ()


def _is_of(handle: Any, requests: Container[object]) -> bool:
    """Return whether a callback belongs to a request, or to a stream of ZMQ."""
    owner = getattr(handle._callback, "__self__", None)
    if isinstance(owner, IOLoop):
        wrapped = getattr(handle._args[0], "func", None) if handle._args else None
        return handle._callback.__name__ == "_handle_events" or _name(wrapped).startswith(
            "ZMQStream"
        )
    return isinstance(owner, asyncio.Future) and owner in requests


def _name(function: object) -> str:
    return getattr(function, "__qualname__", "")


def _nothing() -> None:
    """Do nothing, in place of a callback that must not run."""
