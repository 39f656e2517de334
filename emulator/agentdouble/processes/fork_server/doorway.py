"""A port that only the double reaches: its sockets are in a separate network.

An instance shares the machine's network, except for its port. In a separate network it could reach
neither the double nor a model, unless we wrote a network stack. A program listens on its port and
connects to it as usual. Linux notifies a helper before each of these calls continues (seccomp's
user notification). The helper replaces the socket with one in an otherwise empty network, and the
program does not notice. All other sockets of the program stay in the shared network.

The helper listens at ``door`` in the run directory and gives each client a socket of that network,
so no bytes pass through the helper. Only the double and the program itself reach that directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import ipaddress
import os
import platform
import re
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from agentdouble.processes.fork_server import linux, namespaces, processes, seccomp
from agentdouble.processes.fork_server.seccomp import (
    ALLOW,
    ARCHITECTURE,
    ASK,
    EQUAL,
    LOAD,
    NUMBER,
    RETURN,
)

NAME = "door"

_SYS_PIDFD_GETFD = 438
_SET_MODE_FILTER, _NEW_LISTENER = 1, 1 << 3
_RECEIVE, _ANSWER, _PUT = 0xC0502100, 0xC0182101, 0x40182103
_GO_ON, _IN_ITS_PLACE = 1, 1
_ASKED = struct.Struct("=QIIiIQ6Q")
_ANSWERED = struct.Struct("=QqiI")
_PLACED = struct.Struct("=QIIII")
_SO_NETNS_COOKIE = 71
_ADDRESS_SIZE = 28
_LOOPBACK = ("127.0.0.1", "::1")
_COPIED = (
    (socket.SOL_SOCKET, socket.SO_REUSEADDR),
    (socket.SOL_SOCKET, socket.SO_REUSEPORT),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
)


@dataclass(frozen=True)
class _Calls:
    """The numbers of an architecture and of some of its system calls in Linux."""

    architecture: int
    bind: int
    connect: int
    seccomp: int


_CALLS = {
    "x86_64": _Calls(0xC000003E, 49, 42, 317),
    "aarch64": _Calls(0xC00000B7, 200, 203, 277),
}


def keep_to_double(run: str, port: int) -> None:
    """Make this process, and all that it starts, use ``port`` in a separate network.

    Needs permission to create a network namespace; raises OSError. ``run`` is the directory of the
    door.
    """
    calls = _CALLS.get(platform.machine())
    if calls is None:
        raise OSError(f"it is not built for {platform.machine()}")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    if os.fork() == 0:
        _help(theirs, ours, parent, run, port, calls)
    theirs.close()
    with ours:
        asking = _install_filter(calls)
        socket.send_fds(ours, [b"."], [asking])
        os.close(asking)
        answer = ours.recv(1000)
    if answer != b".":
        raise OSError(answer.decode(errors="replace") or "its helper has ended")


def _install_filter(calls: _Calls) -> int:
    """Make Linux notify a helper before each bind and connect; return the descriptor for that."""
    lines = (
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, 4, calls.architecture),
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 1, 0, calls.bind),
        (EQUAL, 0, 1, calls.connect),
        (RETURN, 0, 0, ASK),
        (RETURN, 0, 0, ALLOW),
    )
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    wanted = ctypes.byref(seccomp.program(lines))
    return linux.syscall(calls.seccomp, _SET_MODE_FILTER, _NEW_LISTENER, wanted)


def _help(
    channel: socket.socket, other: socket.socket, parent: int, run: str, port: int, calls: _Calls
) -> NoReturn:
    try:
        other.close()
        processes.die_with_parent()
        if os.getppid() == parent:
            _Helper(channel, run, port, calls).serve()
    except BaseException as error:
        with contextlib.suppress(OSError):
            channel.send((str(error) or type(error).__name__).encode()[:1000])
    finally:
        os._exit(1)


class _Helper:
    """Replaces sockets by sockets of its network, and gives such a socket to each client."""

    def __init__(self, channel: socket.socket, run: str, port: int, calls: _Calls) -> None:
        self._port = port
        self._calls = calls
        _, received, _, _ = socket.recv_fds(channel, 1, 1)
        self._asking = received[0]
        self._forget_all_but(channel.fileno(), self._asking)
        linux.unshare(linux.CLONE_NEWNET)
        namespaces.raise_loopback()
        self._door = _listen(run)
        with socket.socket() as one:
            self._network = _network(one)
        channel.send(b".")
        channel.close()

    def serve(self) -> None:
        """Serve until the last process with the filter has ended."""
        poll = select.poll()
        for descriptor in (self._asking, self._door.fileno()):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, event in poll.poll():
                if event & ~select.POLLIN:
                    return
                with contextlib.suppress(OSError):  # the calling process has ended
                    self._answer() if descriptor == self._asking else self._give()

    def _give(self) -> None:
        connection, _ = self._door.accept()
        with connection, socket.socket() as given:
            socket.send_fds(connection, [b"."], [given.fileno()])

    def _answer(self) -> None:
        """Let a system call continue; replace its socket first if the call is about the port."""
        asked = bytearray(_ASKED.size)
        fcntl.ioctl(self._asking, _RECEIVE, asked)
        id_, pid, _, call, _, _, descriptor, address, length, *_ = _ASKED.unpack(asked)
        try:
            if self._is_meant(pid, call, address, length):
                self._replace(id_, pid, descriptor)
        finally:
            fcntl.ioctl(self._asking, _ANSWER, bytearray(_ANSWERED.pack(id_, 0, 0, _GO_ON)))

    def _is_meant(self, pid: int, call: int, address: int, length: int) -> bool:
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:  # noqa: PTH123
            found = os.pread(memory.fileno(), min(length, _ADDRESS_SIZE), address)
        (family,) = struct.unpack_from("=H", found)
        if family not in (socket.AF_INET, socket.AF_INET6):
            return False
        (port,) = struct.unpack_from("!H", found, 2)
        return port == self._port and _is_meant(family, found, binds=call == self._calls.bind)

    def _replace(self, id_: int, pid: int, descriptor: int) -> None:
        with _copy(pid, descriptor) as old:
            if old.type != socket.SOCK_STREAM or _network(old) == self._network:
                return
            with socket.socket(old.family, socket.SOCK_STREAM, old.proto) as new:
                _take_after(new, old)
                flags = os.O_CLOEXEC & _flags(pid, descriptor)
                wanted = _PLACED.pack(id_, _IN_ITS_PLACE, new.fileno(), descriptor, flags)
                fcntl.ioctl(self._asking, _PUT, bytearray(wanted))

    def _forget_all_but(self, *kept: int) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
            if int(name) > 2 and int(name) not in kept:
                with contextlib.suppress(OSError):
                    os.close(int(name))


def _listen(run: str) -> socket.socket:
    """Return the socket of the door."""
    # The path goes through a descriptor, because a socket's path has at most 108 bytes.
    directory = os.open(run, os.O_PATH)
    try:
        door = socket.socket(socket.AF_UNIX)
        door.bind(f"/proc/self/fd/{directory}/{NAME}")
        os.chmod(NAME, 0o600, dir_fd=directory)
        door.listen(1024)
        return door
    finally:
        os.close(directory)


def _copy(pid: int, descriptor: int) -> socket.socket:
    """Return a copy of a socket of another process."""
    status = Path(f"/proc/{pid}/status").read_text()
    group = re.search(r"^Tgid:\s*(\d+)", status, re.MULTILINE)
    process = os.pidfd_open(int(group[1]) if group else pid)
    try:
        return socket.socket(fileno=linux.syscall(_SYS_PIDFD_GETFD, process, descriptor, 0))
    finally:
        os.close(process)


def _flags(pid: int, descriptor: int) -> int:
    found = re.search(r"flags:\s*([0-7]+)", Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text())
    return int(found[1], 8) if found else 0


def _take_after(new: socket.socket, old: socket.socket) -> None:
    for level, option in _COPIED:
        new.setsockopt(level, option, old.getsockopt(level, option))
    if old.family == socket.AF_INET6:
        only = old.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        new.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    fcntl.fcntl(new, fcntl.F_SETFL, fcntl.fcntl(old, fcntl.F_GETFL))


def _network(one: socket.socket) -> bytes:
    return one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)


def _is_meant(family: int, address: bytes, *, binds: bool) -> bool:
    """Return whether the double, or the program itself, would use an address to reach the port."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address
    if family == socket.AF_INET:
        found = ipaddress.IPv4Address(address[4:8])
    else:
        found = ipaddress.IPv6Address(address[8:24])
    plain = getattr(found, "ipv4_mapped", None) or found
    if plain.is_unspecified or str(plain) in _LOOPBACK:
        return True
    return plain.is_loopback and not binds
