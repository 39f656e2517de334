from __future__ import annotations

import ipaddress
import os
import socket
import sys
from contextlib import closing

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux tells whose a socket is", allow_module_level=True)

from agentdouble.socket_lookup import NOBODY, look_up

HERE = ipaddress.ip_address("127.0.0.1")


def test_a_socket_is_found_by_its_two_ends() -> None:
    """User and inode are those of that end, and the listening socket is neither."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = (HERE, listener.getsockname()[1])
        with closing(socket.create_connection(listener.getsockname())) as near:
            client = (HERE, near.getsockname()[1])
            with listener.accept()[0] as far:
                found = look_up(client, server), look_up(server, client)
                inodes = os.fstat(near.fileno()).st_ino, os.fstat(far.fileno()).st_ino

            assert tuple((os.geteuid(), inode) for inode in inodes) == found
        assert None is look_up(server, server)


def test_a_socket_that_is_no_more_is_nobody_s() -> None:
    """So the tables, which take a hundred times as long, need not be looked at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = (HERE, listener.getsockname()[1])
        gone = socket.create_connection(listener.getsockname())
        client = (HERE, gone.getsockname()[1])
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0] + [0] * 4))
        gone.close()

        assert NOBODY == look_up(client, server)


def test_where_linux_does_not_answer_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may keep that from its programs."""

    def refuse(*_: object) -> socket.socket:
        raise PermissionError

    monkeypatch.setattr("agentdouble.socket_lookup._netlink", refuse)

    assert None is look_up((HERE, 1), (HERE, 2))
