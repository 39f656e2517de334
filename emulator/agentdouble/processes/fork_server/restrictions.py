"""What Linux refuses a process and its descendants: files (Landlock) and system calls (seccomp).

See https://docs.kernel.org/userspace-api/landlock.html. Each version (ABI) of Landlock adds more
rights.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable, Sequence

from agentdouble.processes.fork_server import linux

_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_IN_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_PATH_BENEATH = struct.Struct("=Qi")  # allowed rights, descriptor
_SCOPE_ABI, _ABSTRACT_SOCKETS, _SIGNALS = 6, 0b01, 0b10


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def abi() -> int:
    """Return the version of Landlock that the kernel offers; raise OSError if it offers none."""
    return linux.syscall(_SYS_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)


def restrict(
    *,
    readable: Iterable[str],
    writable: Iterable[str],
    signals: bool,
) -> None:
    """Restrict this process to these paths, with everything below them.

    With ``signals``, no signal reaches a process outside the restricted ones. If the kernel's
    version does not support that, signals are not refused; see ``abi``. Sets no_new_privs.
    Raises OSError.
    """
    version = abi()
    files = max(rights for since, rights in _RIGHTS_IN_ABI.items() if since <= version)
    scoped = _ABSTRACT_SOCKETS | (_SIGNALS if signals else 0)
    ruleset = _create(version, files, scoped)
    try:
        for path in readable:
            _allow(ruleset, path, files & _READ)
        for path in writable:
            _allow(ruleset, path, files)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        linux.syscall(_SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _create(version: int, files: int, scoped: int) -> int:
    size = 24 if version >= _SCOPE_ABI else 8
    ruleset = _Ruleset(files, 0, scoped)
    return linux.syscall(_SYS_CREATE_RULESET, ctypes.byref(ruleset), size, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # the path does not exist, or this user cannot reach it: nothing to allow
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FOR_FILES
        rule = _PATH_BENEATH.pack(rights, descriptor)
        linux.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


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
