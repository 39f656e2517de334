"""The messages between the double and its fork server: one JSON object a datagram.

The double asks for a fork under a number. The server answers under the same number, with the child's
pidfd as ancillary data, and later reports, unasked, how each child ended.
"""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# what a kernel writes of one execution, in characters or bytes; the double keeps less of it
OUTPUT_LIMIT = 8 * 1024 * 1024

MAX_DATAGRAM = 256 * 1024
MAX_DESCRIPTORS = 4


@dataclass(frozen=True)
class ForkRequest:
    """A kernel to be forked; the descriptors that come with it become the kernel's own.

    ``kernel`` names the module that is it (see ``child.KERNELS``), ``config`` holds its
    traitlets settings, a table a class; ``limits`` are resource limits (bytes, counts);
    ``confinement`` holds the fields of ``confinement.Confinement``, None confines nothing.
    With ``outputs`` two descriptors come, its standard output and its standard error; without,
    what it prints to the latter is kept in the file ``stderr_file``, if there is to be one.
    ``number`` is what the answer is known by; the client gives it.
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
    """The answer to a request; its pidfd comes with it."""

    pid: int
    number: int


@dataclass(frozen=True)
class Refused:
    """The answer to a request that could not be met; ``error`` is the number of an OSError."""

    reason: str
    number: int
    error: int | None = None


@dataclass(frozen=True)
class Unwanted:
    """A child without an owner: its pidfd could not be received. The server kills it."""

    pid: int


@dataclass(frozen=True)
class Exited:
    """A child has ended, and so has everything that it left behind.

    ``code`` is its exit code, negative for the signal that killed it.
    """

    pid: int
    code: int


Message = ForkRequest | Forked | Refused | Unwanted | Exited

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (ForkRequest, Forked, Refused, Unwanted, Exited)
}


def encode(message: Message) -> bytes:
    """Return a message as a datagram."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}).encode()


def decode(datagram: bytes) -> Message:
    """Return the message in a datagram."""
    fields = json.loads(datagram)
    message: Message = _KINDS[fields.pop("kind")](**fields)
    return message


def ancillary(descriptors: Sequence[int]) -> list[tuple[int, int, Any]]:
    """Return what makes ``sendmsg`` send descriptors along."""
    if not descriptors:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
