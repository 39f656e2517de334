from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.calling import http as client
from tests.agentdouble.runtimes.asking import APPLICATIONS


def table(name: str) -> dict[str, Any]:
    command = [sys.executable, str(APPLICATIONS / "answering.py")]
    return {"name": name, "command": command, "max_instances": 1}


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator(runtimes=[table("raw")], body_limit=1_000_000) as double:
        yield double


@pytest.fixture
def url(double: Emulator) -> str:
    """The address of the runtime."""
    return f"{double.url}/runtimes/raw"


@contextlib.contextmanager
def connected(double: Emulator) -> Iterator[socket.socket]:
    parts = urlsplit(double.url)
    with socket.create_connection((parts.hostname, parts.port), TIMEOUT_S) as connection:
        yield connection


def send(double: Emulator, request: str, *lines: str) -> dict[str, Any]:
    """Send the bytes of a request without a body, and return what the runtime received."""
    host = urlsplit(double.url).netloc
    head = "\r\n".join([request, f"Host: {host}", *lines, "Connection: close", "", ""])
    with connected(double) as connection:
        connection.sendall(head.encode("latin-1"))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer_body: dict[str, Any] = json.loads(answer.read())
        return answer_body


@pytest.mark.parametrize("target", ["/a%2Fb//c/../d;e=f?x=%20&y=a+b&&z", "//two"])
def test_path_and_query_are_passed_on_verbatim(double: Emulator, target: str) -> None:
    """Nothing is decoded, joined or sorted; only an empty query's ? is dropped."""
    echo = send(double, f"GET /runtimes/raw{target} HTTP/1.1")

    assert f"GET {target.removesuffix('?')} HTTP/1.1" == echo["line"]


def test_application_can_know_its_public_address(double: Emulator) -> None:
    """Host and the forwarding headers say it, and callers cannot forge them."""
    forged = [f"X-Forwarded-{suffix}: evil" for suffix in ("Host", "Prefix", "Port")]
    echo = send(double, "GET /runtimes/raw/x HTTP/1.1", *forged, "Forwarded: host=evil", "X-A: 1")

    host = urlsplit(double.url).netloc
    (entry,) = double.journal.entries()[-1:]
    assert {
        "host": host,
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "http",
        "x-forwarded-host": host,
        "x-forwarded-prefix": "/runtimes/raw",
        "via": "1.1 agentdouble",
        "x-agentdouble-caused-by": f"{double.journal.name}-{entry.id}",
        "x-a": "1",
    } == dict(echo["headers"])


def test_hop_by_hop_headers_are_not_passed_on(double: Emulator) -> None:
    """Nor those that Connection names; repeated headers stay repeated."""
    lines = ("Connection: X-Hop, keep-alive", "X-Hop: 1", "TE: trailers", "Upgrade: h2c")
    echo = send(double, "GET /runtimes/raw/x HTTP/1.1", *lines, "X-Two: 1", "X-Two: 2")

    anew = ("x-forwarded", "x-agentdouble-caused-by")
    own = [(name, value) for name, value in echo["headers"] if not name.startswith(anew)]
    said_anew = [("via", "1.1 agentdouble")]
    assert [("x-two", "1"), ("x-two", "2"), *said_anew] == own[1:]


def test_content_length_named_by_connection_is_kept(url: str) -> None:
    """Otherwise the body would be parsed as the next request."""
    headers = {"Connection": "close, Content-Length, Host"}
    answer = client.post(f"{url}/x", headers=headers, content="GET /smuggled")

    assert "GET /smuggled" == answer.json()["body"]


def test_response_headers_except_hop_by_hop_are_kept(url: str) -> None:
    """Including duplicates and the length; the double alone sends Server and Date."""
    answer = client.get(f"{url}/headers")

    headers = [(name, value) for name, value in answer.headers.multi_items()]
    assert [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-own", "kept")] == headers[2:5]
    assert [("content-length", "2")] == headers[5:]
    assert ["date", "server"] == [name for name, _ in headers[:2]]


def test_responses_without_a_body_end_with_their_head(url: str) -> None:
    """HEAD, 204 and 304, each followed by another request on the same connection."""
    with httpx.Client(trust_env=False, timeout=TIMEOUT_S) as client:
        head = client.head(f"{url}/anything")
        answers = [client.get(f"{url}/{path}") for path in ("empty", "unchanged", "headers")]

    assert 0 < int(head.headers["content-length"])
    assert [(204, b""), (304, b""), (200, b"hi")] == [(a.status_code, a.content) for a in answers]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/x?y", "/runtimes/raw/x?y"),
        ("http://HOST/x", "http://HOST/runtimes/raw/x"),
        ("/runtimes/other/x", "/runtimes/other/x"),
        ("https://elsewhere/x", "https://elsewhere/x"),
    ],
)
def test_redirect_leads_to_the_runtime(url: str, location: str, expected: str) -> None:
    """Although the application does not know its prefix."""
    host = urlsplit(url).netloc
    target = location.replace("HOST", host)
    answer = client.get(f"{url}/redirect", headers={"X-To": target})

    assert (307, expected.replace("HOST", host)) == (
        answer.status_code,
        answer.headers["location"],
    )


def test_bodies_stream_both_ways_at_once(double: Emulator) -> None:
    """A chunk is answered before the next is sent."""
    host = urlsplit(double.url).netloc
    with connected(double) as connection:
        head = "POST /runtimes/raw/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        connection.sendall(f"{head}Host: {host}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        received = []
        for piece in (b"one", b"two", b"three"):
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            received.append(answer.read(len(piece)))
        connection.sendall(b"0\r\n\r\n")
        rest = answer.read()

    assert ([b"one", b"two", b"three"], b"") == (received, rest)


def test_events_arrive_while_the_stream_is_open(url: str) -> None:
    """A disconnecting caller ends the request to the application."""
    with client.stream("GET", f"{url}/event") as answer:
        pieces = answer.iter_raw()
        assert b"data: 1\n\n" == next(pieces)

    assert "gone" == client.get(f"{url}/told").text


def test_caller_disconnecting_before_the_answer_ends_the_request(
    double: Emulator, url: str
) -> None:
    """So the application can stop working."""
    with connected(double) as connection:
        host = urlsplit(double.url).netloc
        connection.sendall(f"GET /runtimes/raw/silent HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert "begun" == client.get(f"{url}/told").text

    assert "gone" == client.get(f"{url}/told").text


def test_body_over_the_limit_is_refused_while_streaming(url: str) -> None:
    """Its length need not be known."""
    answer = client.post(f"{url}/count", content=(bytes(100_000) for _ in range(11)))
    within = client.post(f"{url}/count", content=(bytes(100_000) for _ in range(9)))

    assert (413, "BodyTooLarge") == (answer.status_code, answer.json()["error"]["type"])
    assert "900000" == within.text


@pytest.mark.parametrize("path", ["drop", "nonsense", "large-head", "strange-status"])
def test_invalid_response_is_a_bad_gateway(url: str, path: str) -> None:
    """The error names the runtime, the instance and its log."""
    answer = client.get(f"{url}/{path}")

    error = answer.json()["error"]
    assert (502, "InstanceLostError") == (answer.status_code, error["type"])
    assert "The instance 'raw-1' of the runtime 'raw' did not answer: " in error["message"]
    assert "may have reached it" in error["message"]
    assert "/_emulator/runtimes/raw/logs" in error["message"]


@pytest.mark.parametrize("path", ["half", "half-chunked"])
def test_truncated_response_is_not_taken_as_complete(url: str, path: str) -> None:
    """The caller's connection breaks like the application's."""
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"{url}/{path}")


def test_crashing_instance_fails_only_its_own_requests() -> None:
    """They get a clear error or a broken response; the next request starts another instance."""
    with Emulator(runtimes=[table("mortal")]) as double:
        url = f"{double.url}/runtimes/mortal"
        before = served_by(url)
        died = client.get(f"{url}/die")
        after = served_by(url, but=before)
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(f"{url}/die-amid")
        served_by(url, but=after)
        with ThreadPoolExecutor(4) as pool:
            last = set(pool.map(lambda _: client.get(f"{url}/x").status_code, range(8)))

    assert (502, {200}) == (died.status_code, last)


def served_by(url: str, but: int | None = None) -> int:
    """Return the process that answers, once it differs from ``but``."""
    for _ in range(100):  # one that is dying may be connected to until its end
        answer = client.get(f"{url}/x")
        if answer.status_code == 200 and answer.json()["process"] != but:
            return int(answer.json()["process"])
        assert answer.status_code in (200, 502)
    raise AssertionError(f"Nobody but {but} answers.")
