"""Landlock: restrictions of this process and all its descendants.

See https://docs.kernel.org/userspace-api/landlock.html. Each version (ABI) adds more rights.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

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
_SCOPE_ABI, _ABSTRACT_SOCKETS, _SIGNALS = 6, 0b01, 0b10


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("directory", ctypes.c_int32))


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
        rule = _PathBeneath(rights, descriptor)
        linux.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)
