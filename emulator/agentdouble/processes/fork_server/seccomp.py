"""Programs of seccomp, which Linux runs before each system call of a process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

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
