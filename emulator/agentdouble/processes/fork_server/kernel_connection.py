"""How a fork treats the sockets, threads and event loop of its parent process.

In a fork, the threads are gone, but the sockets of ZMQ and their memory are there. To close or to
terminate them would wait for these threads, or write to the descriptors of the other process. So
they are kept forever, and new ones are created.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import stat
from collections.abc import Container
from typing import Any

import zmq
from tornado.ioloop import IOLoop

_abandoned: list[object] = []  # pyzmq closes what the garbage collector finds


def abandon(*objects: object) -> None:
    """Keep objects of the parent process alive, so that nothing closes them."""
    for item in objects:
        sockets = list(item._sockets) if isinstance(item, zmq.Context) else ()
        _abandoned.append((item, sockets))


def deaden_descriptors(exempt: Container[int] = ()) -> None:
    """Replace descriptors by a dead socket, except files, directories and devices.

    The numbers stay in use, because objects that this process has inherited will close them.
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


def renew_loop(loop: Any) -> None:
    """Give an inherited event loop its own selector; its tasks and timers continue.

    Its pending work for the parent's clients is dropped. A fork's handler leaves the loop by an
    exception, so the loop may look as if it still runs.
    """
    asyncio._set_running_loop(None)
    asyncio.set_event_loop(loop)  # from Python 3.12 on, a fork forgets it
    abandon(loop._selector, loop._ssock, loop._csock)
    loop._thread_id = None
    loop._stopping = False
    loop._selector = selectors.DefaultSelector()
    loop._internal_fds = 0
    loop._make_self_pipe()
    loop._default_executor = None  # its threads are gone
    if loop._signal_handlers:
        signal.set_wakeup_fd(loop._csock.fileno())
    wrapper: Any = IOLoop._ioloop_for_asyncio[loop]
    for watched in (wrapper.handlers, wrapper.readers, wrapper.writers):
        watched.clear()
    _drop_requests(loop)


def _drop_requests(loop: Any) -> None:
    requests = {task for task in asyncio.all_tasks(loop) if _name(task.get_coro()) in _REQUESTS}
    for task in requests:
        asyncio.tasks._unregister_task(task)
    dropped = [handle for handle in (*loop._ready, *loop._scheduled) if _is_of(handle, requests)]
    abandon(requests, dropped)
    for handle in dropped:
        handle._callback, handle._args = _nothing, ()


_REQUESTS = (
    *("_async_in_context.<locals>.run_in_context", "Kernel.shell_main", "Kernel.dispatch_shell"),
)


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
