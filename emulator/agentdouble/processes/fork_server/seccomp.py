"""Filters for system calls, which Linux runs before each call of a process (seccomp)."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

from agentdouble.processes.fork_server import linux

LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # their offsets in the data that a program reads
ALLOW, REFUSE = 0x7FFF0000, 0x00050000

Line = tuple[int, int, int, int]  # code, lines to skip if true, lines to skip if false, value


class Instruction(ctypes.Structure):
    """A line of a program."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    """A program in the format of Linux, which takes its address."""

    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction)))


def program(lines: Sequence[Line]) -> Program:
    """Return a program with these lines; the program object keeps them in memory."""
    instructions = (Instruction * len(lines))(*(Instruction(*line) for line in lines))
    return Program(len(lines), instructions)


# A limit of processor time ends a process, and Landlock does not restrict such limits. If a session
# has no process namespace, a filter allows the call only if it is about the caller itself.
_ARCHITECTURES = {  # for a machine: its own and its older one, and the number of prlimit64 in each
    "x86_64": ((0xC000003E, 302), (0x40000003, 340)),
    "aarch64": ((0xC00000B7, 261), (0x40000028, 369)),
}
_WHOSE, _NEW_LIMIT = ARGUMENTS, ARGUMENTS + 16  # the first argument of prlimit64, and the third
_WITHOUT_X32 = 0xBFFFFFFF  # x86_64 has each call twice


def refuse_limits_of_others() -> None:
    """Make each later call that sets another process's limits fail with EPERM; raise OSError.

    Needs no_new_privs. A process can still set its own limits and read the limits of others.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the numbers of system calls are not known for {machine}")
    compiled = program(_filter(*_ARCHITECTURES[machine]))
    linux.filter_system_calls(ctypes.addressof(compiled))


def _filter(native: tuple[int, int], older: tuple[int, int]) -> list[Line]:
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, 3, native[0]),
        (LOAD, 0, 0, NUMBER),
        (AND, 0, 0, _WITHOUT_X32),
        (EQUAL, 3, 9, native[1]),
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
