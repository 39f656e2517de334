"""Linux system calls that Python lacks; each raises OSError if it fails.

The numbers of system calls above 424 are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from contextlib import suppress

CLONE_PARENT = 0x00008000
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 0x80000

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CAP_SYS_PTRACE = 19

_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}
_SYS_CLONE3 = 435
_SYS_CLOSE_RANGE = 436
_SYS_MOUNT_SETATTR = 442

_LAST_DESCRIPTOR = 0xFFFFFFFF
_KEYCTL_JOIN_SESSION_KEYRING = 1
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_MS_MOVE = 0x2000
_MAP_FIXED = 0x10
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 0x1
_MOVE_MOUNT_F_EMPTY_PATH = 0x4
_CAPABILITY_VERSION_3 = 0x20080522
_ALL = 0xFFFFFFFF  # capabilities that do not exist are ignored

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_ssize_t


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _CloneArguments(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("pidfd", ctypes.c_uint64),
        ("child_tid", ctypes.c_uint64),
        ("parent_tid", ctypes.c_uint64),
        ("exit_signal", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("stack_size", ctypes.c_uint64),
        ("tls", ctypes.c_uint64),
    )


def syscall(number: int, *arguments: object) -> int:
    """Make a system call; integers are passed as 64 bits, other arguments as ctypes does."""
    wide = (ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)
    return _checked(_libc.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, *values: int) -> None:
    """Set a property of this process."""
    arguments = [*values, 0, 0, 0, 0][:4]
    _checked(_libc.prctl(option, *map(ctypes.c_ulong, arguments)))


def filter_system_calls(program: int) -> None:
    """Apply the filter at this address to each system call from now on."""
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program)


def leave_keyring() -> None:
    """Give this process a new session keyring, if the number of the system call is known."""
    number = _SYS_KEYCTL.get(os.uname().machine)
    if number is not None:
        with suppress(OSError):  # a kernel without keys
            syscall(number, _KEYCTL_JOIN_SESSION_KEYRING, None)


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _checked(_libc.unshare(flags))


def join(process: int, flags: int) -> None:
    """Move this process into namespaces of another process, given by its pidfd."""
    _checked(_libc.setns(process, flags))


def fork_into(flags: int) -> int:
    """Fork into new namespaces, as ``os.fork`` does, but with the system call only.

    With ``CLONE_PARENT`` this process's parent becomes the child's parent, too. Neither Python nor
    libc notices this fork. So the child of this single-threaded process must not start a thread,
    and must not run more than a few lines.
    """
    # With CLONE_PARENT the child gets the exit signal of this process.
    exit_signal = 0 if flags & CLONE_PARENT else signal.SIGCHLD
    arguments = _CloneArguments(flags=flags, exit_signal=exit_signal)
    return syscall(_SYS_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))


def map_shared(descriptor: int, start: int, size: int, protection: int, offset: int) -> None:
    """Map a file shared, replacing the mapping at an address."""
    flags = mmap.MAP_SHARED | _MAP_FIXED
    numbers = ctypes.c_int(protection), ctypes.c_int(flags), ctypes.c_int(descriptor)
    target = ctypes.c_void_p(start), ctypes.c_size_t(size)
    if _libc.mmap(*target, *numbers, ctypes.c_long(offset)) == -1:
        _checked(-1)


def close_from(descriptor: int) -> None:
    """Close every descriptor from this one on."""
    syscall(_SYS_CLOSE_RANGE, descriptor, _LAST_DESCRIPTOR, 0)


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    texts = (text.encode() for text in (source, target, kind))
    _checked(_libc.mount(*texts, ctypes.c_ulong(flags), options.encode()))


def open_tree(path: str, *, read_only: bool) -> int:
    """Return a descriptor of a detached copy of the mounts at a path and below it."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    tree = syscall(_SYS_OPEN_TREE, _AT_FDCWD, path.encode(), flags)
    attributes = MOUNT_ATTR_NOSUID | (MOUNT_ATTR_RDONLY if read_only else 0)
    _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def attach_tree(tree: int, target: str) -> None:
    """Mount a detached tree at a path and close its descriptor."""
    try:
        syscall(_SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)


def make_read_only(path: str) -> None:
    """Make the mount at a path read-only, but not the mounts below it."""
    _set_attributes(_AT_FDCWD, path.encode(), 0, MOUNT_ATTR_RDONLY)


def _set_attributes(descriptor: int, path: bytes, flags: int, attributes_set: int) -> None:
    attributes = _MountAttributes(set=attributes_set)
    size = ctypes.sizeof(attributes)
    syscall(_SYS_MOUNT_SETATTR, descriptor, path, flags, ctypes.byref(attributes), size)


def become_root(mounted: str) -> None:
    """Move a mount over the root of this mount namespace and make it the root of this process.

    The old root stays below. A process that cannot unmount does not reach it, and in a user
    namespace made later, Linux locks the mount that covers it. ``pivot_root`` would need an
    unmount, which waits for every processor, 3 to 12 ms.
    """
    os.chdir(mounted)
    _checked(_libc.mount(b".", b"/", None, ctypes.c_ulong(_MS_MOVE), None))
    os.chroot(".")
    os.chdir("/")


def drop_capabilities() -> None:
    """Drop every capability."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def pass_on_capability(number: int) -> None:
    """Let the programs that this process executes keep a capability; it must have all."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # effective, permitted and inheritable: first the lower 32 of each, then the upper
    sets = (ctypes.c_uint32 * 6)(_ALL, _ALL, 1 << number, _ALL, _ALL, 0)
    _checked(_libc.capset(header, sets))
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
