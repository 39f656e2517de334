"""A filter of system calls that keeps a process from setting the limits of others.

A limit of processor time ends a process, and Landlock has no say in it. Where a session has no
process namespace of its own, only whom the call is about can be looked at: nobody but the caller.
"""

from __future__ import annotations

import ctypes
import errno
import os

from agentdouble.processes.fork_server import linux, seccomp
from agentdouble.processes.fork_server.seccomp import (
    ALLOW,
    AND,
    ARCHITECTURE,
    ARGUMENTS,
    EQUAL,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    Line,
)

_ARCHITECTURES = {  # of a machine: its own and its older one, and the number of prlimit64 in each
    "x86_64": ((0xC000003E, 302), (0x40000003, 340)),
    "aarch64": ((0xC00000B7, 261), (0x40000028, 369)),
}
_WHOSE, _NEW_LIMIT = ARGUMENTS, ARGUMENTS + 16  # the first argument of prlimit64, and the third
_WITHOUT_X32 = 0xBFFFFFFF  # x86_64 has each call twice


def apply() -> None:
    """Refuse from now on, EPERM, to set limits of a process that is named; raise OSError.

    Needs no_new_privs. Limits of the caller itself can be set, and those of others be read.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the numbers of system calls are not known for {machine}")
    program = seccomp.program(_filter(*_ARCHITECTURES[machine]))
    linux.filter_system_calls(ctypes.addressof(program))


def _filter(own: tuple[int, int], older: tuple[int, int]) -> list[Line]:
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, 3, own[0]),
        (LOAD, 0, 0, NUMBER),
        (AND, 0, 0, _WITHOUT_X32),
        (EQUAL, 3, 9, own[1]),
        (EQUAL, 0, 8, older[0]),
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 6, older[1]),
        (LOAD, 0, 0, _WHOSE),
        (EQUAL, 4, 0, 0),
        (LOAD, 0, 0, _NEW_LIMIT),
        (EQUAL, 0, 3, 0),
        (LOAD, 0, 0, _NEW_LIMIT + 4),
        (EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
    ]
