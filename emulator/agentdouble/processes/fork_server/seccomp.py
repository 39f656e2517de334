"""Filters of system calls, which Linux runs before each call of a process (seccomp)."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

from agentdouble.processes.fork_server import linux

LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they stand in what a program looks at
ALLOW, ASK, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000

Line = tuple[int, int, int, int]  # a code, how many lines to skip if true and if false, a value


class Instruction(ctypes.Structure):
    """A line of a program."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    """A program as Linux takes it, by its address."""

    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction)))


def program(lines: Sequence[Line]) -> Program:
    """Return a program of these lines; it keeps them in memory as long as it is there."""
    instructions = (Instruction * len(lines))(*(Instruction(*line) for line in lines))
    return Program(len(lines), instructions)


# A limit of processor time ends a process, and Landlock has no say in it. If a session has no process
# namespace of its own, a filter can only look at whom the call is about: nobody but the caller.
_ARCHITECTURES = {  # of a machine: its own and its older one, and the number of prlimit64 in each
    "x86_64": ((0xC000003E, 302), (0x40000003, 340)),
    "aarch64": ((0xC00000B7, 261), (0x40000028, 369)),
}
_WHOSE, _NEW_LIMIT = ARGUMENTS, ARGUMENTS + 16  # the first argument of prlimit64, and the third
_WITHOUT_X32 = 0xBFFFFFFF  # x86_64 has each call twice


def refuse_limits_of_others() -> None:
    """Refuse from now on (EPERM) to set the limits of other processes; raise OSError.

    Needs no_new_privs. Limits of the caller itself can be set, and those of others be read.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the numbers of system calls are not known for {machine}")
    compiled = program(_filter(*_ARCHITECTURES[machine]))
    linux.filter_system_calls(ctypes.addressof(compiled))


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
