from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S, eventually
from tests.agentdouble.runtimes.programs import table

pytestmark = pytest.mark.libraries


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("conversing")
    with Emulator(runtimes=[table("ws", "conversing.py", directory)]) as double:
        yield double


def opened(double: Emulator, path: str, **options: Any) -> ClientConnection:
    url = f"ws{double.url.removeprefix('http')}/runtimes/ws{path}"
    return connect(url, proxy=None, open_timeout=TIMEOUT_S, **options)


def told(double: Emulator) -> Any:
    """Return what the application says of a conversation that is over, when it is."""
    with opened(double, "/told") as caller:
        return json.loads(caller.recv(TIMEOUT_S))


def test_text_and_bytes_go_both_ways(double: Emulator) -> None:
    """Of any size that the double itself takes."""
    messages = ["héllo", b"\x00\xff", "x" * 3_000_000]
    with opened(double, "/echo", max_size=None) as caller:
        heard = []
        for message in messages:
            caller.send(message)
            heard.append(caller.recv(TIMEOUT_S))

    assert messages == heard


def test_a_conversation_is_one_entry_of_the_journal(double: Emulator) -> None:
    """With how long it took, and how many bytes came and went."""
    with opened(double, "/echo?in=the-journal") as caller:
        caller.send("héllo")
        caller.recv(TIMEOUT_S)

    (entry,) = (one for one in double.journal.entries() if "the-journal" in one.url)
    eventually(lambda: entry.duration_ms, lambda took: took is not None)
    assert ("GET", 101, 6, 6) == (
        *(entry.method, entry.status),
        *(entry.received_bytes, entry.sent_bytes),
    )


def test_the_first_protocol_that_both_know_is_agreed_on(double: Emulator) -> None:
    """By the application, for the caller."""
    wanted = [Subprotocol("unknown"), Subprotocol("first")]
    with opened(double, "/echo", subprotocols=wanted) as caller:
        assert "first" == caller.subprotocol


def test_the_application_sees_the_request_as_it_was_written(double: Emulator) -> None:
    """With the headers of a proxy, and one handshake's headers only."""
    headers = {"X-Own": "1", "X-Forwarded-Prefix": "/evil"}
    with opened(double, "/seen;a=b?x=%2F", additional_headers=headers) as caller:
        asked = json.loads(caller.recv(TIMEOUT_S))

    names = [name for name, _ in asked["headers"]]
    seen = dict(asked["headers"])
    host = double.url.partition("://")[2]
    assert "/seen;a=b?x=%2F" == asked["path"]
    assert (host, "1", "/runtimes/ws", "http") == (
        *(seen["host"], seen["x-own"]),
        *(seen["x-forwarded-prefix"], seen["x-forwarded-proto"]),
    )
    assert len(set(names)) == len(names)


def test_the_application_says_why_it_ends(double: Emulator) -> None:
    """After what it said before."""
    with opened(double, "/ends") as caller:
        assert "bye" == caller.recv(TIMEOUT_S)
        with pytest.raises(ConnectionClosed) as ended:
            caller.recv(TIMEOUT_S)

    assert ended.value.rcvd is not None
    assert (4001, "enough") == (ended.value.rcvd.code, ended.value.rcvd.reason)


def test_the_caller_says_why_it_ends(double: Emulator) -> None:
    """One that says nothing is done."""
    with opened(double, "/telling") as caller:
        caller.close(4002, "done")
    first = told(double)
    with opened(double, "/telling") as caller:
        caller.socket.shutdown(socket.SHUT_RDWR)
    second = told(double)

    assert ([4002, "done"], [1000, ""]) == (first, second)


def test_a_refused_handshake_is_refused_to_the_caller(double: Emulator) -> None:
    """With the application's status, headers and words; a redirect is the caller's to follow."""
    with pytest.raises(InvalidStatus) as refused:
        opened(double, "/refused")
    url = f"ws{double.url.removeprefix('http')}/runtimes/nobody/x"
    with pytest.raises(InvalidStatus) as unknown:
        connect(url, proxy=None, open_timeout=TIMEOUT_S)

    response = refused.value.response
    assert (401, "Bearer") == (response.status_code, response.headers["www-authenticate"])
    assert b"who are you?" == response.body
    assert 404 == unknown.value.response.status_code


def test_who_does_not_listen_keeps_the_application_waiting(double: Emulator) -> None:
    """The gateway keeps little of what is not taken."""
    with opened(double, "/floods", max_queue=1, close_timeout=0.1):
        sent = told(double)

    assert sent < 50_000_000


def test_an_application_that_dies_ends_the_conversation(double: Emulator) -> None:
    """As a gateway says it."""
    with opened(double, "/dies") as caller, pytest.raises(ConnectionClosed) as ended:
        caller.recv(TIMEOUT_S)

    assert ended.value.rcvd is not None
    assert (1014, "The runtime ws is gone.") == (ended.value.rcvd.code, ended.value.rcvd.reason)
