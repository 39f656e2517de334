"""The messages between the double and its fork server: one JSON object in each datagram.

The double requests a fork with a number. The server answers with the same number, with the child's
pidfd as ancillary data. Later the server reports how each child ended.
"""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The most output that a kernel sends for one execution, in characters or bytes; the double keeps
# less of it.
OUTPUT_LIMIT = 8 * 1024 * 1024

KERNELS = {  # the modules of what is forked, by name; each has ``run(connection_file, config, *fds)``
    "browser": "agentdouble.sandbox.browser.process",
    "command": "agentdouble.processes.fork_server.command",
    "javascript": "agentdouble.sandbox.javascript.kernel",
    "python": "agentdouble.processes.fork_server.python_kernel",
    "workbench": "agentdouble.sandbox.workbench.process",
}
COPY = "copy"  # the kernel of a request to a template
BEGUN = "begun"  # the file beside a kernel's connection file with the last request that began
BEGUN_LENGTH = 128  # bytes of that file: an id, and spaces
TEMPLATE_REQUEST = "agentdouble_template_request"  # on a kernel's shell channel
READY, GO = b"r", b"g"  # READY: the copy waits for its files. GO: they are mounted

MAX_DATAGRAM = 256 * 1024
MAX_DESCRIPTORS = 4


@dataclass(frozen=True)
class ForkRequest:
    """A request to fork a kernel; the kernel gets the descriptors that come with it.

    ``kernel`` names its module (see ``KERNELS``). ``config`` holds its traitlets settings,
    one table for each class. ``limits`` are resource limits (bytes, counts). ``confinement`` holds
    the fields of ``confinement.Confinement``; None confines nothing. With ``outputs``, two
    descriptors are sent, standard output and standard error, and perhaps a third: standard input.
    Without ``outputs``, the file ``stderr_file`` keeps the standard error, unless it is None.
    ``number`` identifies the answer; the client sets it.
    """

    connection_file: str
    cwd: str
    env: Mapping[str, str]
    kernel: str = "python"
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    confinement: Mapping[str, Any] | None = None
    outputs: bool = False
    stderr_file: str | None = None
    number: int = 0


@dataclass(frozen=True)
class Forked:
    """The answer to a request; the child's pidfd is sent with it."""

    pid: int
    number: int


@dataclass(frozen=True)
class ForkRefused:
    """The answer to a failed request; ``error`` is the number of an OSError, if it was one."""

    reason: str
    number: int
    error: int | None = None


@dataclass(frozen=True)
class Discard:
    """A child whose pidfd the double could not receive; the server kills it."""

    pid: int


@dataclass(frozen=True)
class Exited:
    """A report that a child, and all processes that it left, have ended.

    ``code`` is its exit code; a negative code is the number of the signal that killed it.
    """

    pid: int
    code: int


@dataclass(frozen=True)
class Retain:
    """A template that outlives its kernel; its pidfd is sent with it.

    ``home`` identifies the process namespace of the session that it was forked from, if it has one.
    """

    home: str


@dataclass(frozen=True)
class Mount:
    """A request to mount a copy's own files; the copy's pidfd is sent with it.

    ``home``, ``tmp`` and ``run`` are the copy's directories; ``root`` contains the directories of
    all sessions. ``home_of_first`` identifies the process namespace of the first session in a chain
    of copies.
    """

    home: str
    tmp: str
    run: str
    root: str
    home_of_first: str
    number: int = 0


@dataclass(frozen=True)
class Mounted:
    """The answer to ``Mount``."""

    number: int


Message = ForkRequest | Forked | ForkRefused | Discard | Exited | Retain | Mount | Mounted

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (ForkRequest, Forked, ForkRefused, Discard, Exited, Retain, Mount, Mounted)
}


def encode(message: Message) -> bytes:
    """Return a message as a datagram."""
    return json.dumps({"kind": type(message).__name__, **vars(message)}).encode()


def decode(datagram: bytes) -> Message:
    """Return the message in a datagram."""
    fields = json.loads(datagram)
    message: Message = _KINDS[fields.pop("kind")](**fields)
    return message


def ancillary(descriptors: Sequence[int]) -> list[tuple[int, int, Any]]:
    """Return the ancillary data that makes ``sendmsg`` send descriptors."""
    if not descriptors:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]


# the settings of traitlets that every Python kernel of a session has
PYTHON_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "HistoryManager": {"enabled": False},  # no sqlite file and no thread for it
    "IPCompleter": {"use_jedi": False},  # it would read all of Python's stubs first: 5 s
    "IPKernelApp": {"log_level": 40},
}
