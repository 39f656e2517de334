from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.calling import http as client
from tests.agentdouble.runtimes.programs import table


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("answering")
    with Emulator(
        runtimes=[table("raw", "answering.py", directory)], body_limit=1_000_000
    ) as double:
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
    """Send the bytes of a request without a body, and return what the runtime got."""
    host = urlsplit(double.url).netloc
    head = "\r\n".join([request, f"Host: {host}", *lines, "Connection: close", "", ""])
    with connected(double) as connection:
        connection.sendall(head.encode("latin-1"))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer_body: dict[str, Any] = json.loads(answer.read())
        return answer_body


@pytest.mark.parametrize("target", ["/a%2Fb//c/../d;e=f?x=%20&y=a+b&&z", "//two"])
def test_path_and_query_are_passed_on_as_they_were_written(double: Emulator, target: str) -> None:
    """Nothing is decoded, joined or sorted; but a ? before nothing goes."""
    echo = send(double, f"GET /runtimes/raw{target} HTTP/1.1")

    assert f"GET {target.removesuffix('?')} HTTP/1.1" == echo["line"]


def test_an_application_can_know_its_public_address(double: Emulator) -> None:
    """Host stays, the headers of proxies say the rest, and a caller cannot forge them."""
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


def test_headers_of_one_hop_are_not_passed_on(double: Emulator) -> None:
    """Nor those that Connection names; what a caller says twice arrives twice."""
    lines = ("Connection: X-Hop, keep-alive", "X-Hop: 1", "TE: trailers", "Upgrade: h2c")
    echo = send(double, "GET /runtimes/raw/x HTTP/1.1", *lines, "X-Two: 1", "X-Two: 2")

    anew = ("x-forwarded", "x-agentdouble-caused-by")
    own = [(name, value) for name, value in echo["headers"] if not name.startswith(anew)]
    said_anew = [("via", "1.1 agentdouble")]
    assert [("x-two", "1"), ("x-two", "2"), *said_anew] == own[1:]


def test_a_length_that_is_said_to_be_of_one_hop_is_kept(url: str) -> None:
    """Else a body would be the next request."""
    headers = {"Connection": "close, Content-Length, Host"}
    answer = client.post(f"{url}/x", headers=headers, content="GET /smuggled")

    assert "GET /smuggled" == answer.json()["body"]


def test_headers_of_an_answer_are_kept_but_for_those_of_one_hop(url: str) -> None:
    """Duplicates and the length too; who serves and when is said once, by the double."""
    answer = client.get(f"{url}/headers")

    headers = [(name, value) for name, value in answer.headers.multi_items()]
    assert [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-own", "kept")] == headers[2:5]
    assert [("content-length", "2")] == headers[5:]
    assert ["date", "server"] == [name for name, _ in headers[:2]]


def test_answers_without_a_body_end_with_their_head(url: str) -> None:
    """HEAD, 204 and 304, each followed by another request over the same connection."""
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
def test_a_redirect_leads_to_the_runtime(url: str, location: str, expected: str) -> None:
    """Though the application knows nothing of its prefix."""
    host = urlsplit(url).netloc
    target = location.replace("HOST", host)
    answer = client.get(f"{url}/redirect", headers={"X-To": target})

    assert (307, expected.replace("HOST", host)) == (
        answer.status_code,
        answer.headers["location"],
    )


def test_bodies_go_both_ways_at_once(double: Emulator) -> None:
    """A piece of unknown length is answered before the next is sent."""
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


def test_an_event_is_there_while_the_stream_goes_on(url: str) -> None:
    """And a caller who leaves ends the request to the application."""
    with client.stream("GET", f"{url}/event") as answer:
        pieces = answer.iter_raw()
        assert b"data: 1\n\n" == next(pieces)

    assert "gone" == client.get(f"{url}/told").text


def test_a_caller_who_leaves_before_the_answer_ends_the_request(double: Emulator, url: str) -> None:
    """So that the application need not go on."""
    with connected(double) as connection:
        host = urlsplit(double.url).netloc
        connection.sendall(f"GET /runtimes/raw/silent HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert "begun" == client.get(f"{url}/told").text

    assert "gone" == client.get(f"{url}/told").text


def test_a_body_beyond_the_limit_is_refused_while_it_comes(url: str) -> None:
    """Its length need not be known."""
    answer = client.post(f"{url}/count", content=(bytes(100_000) for _ in range(11)))
    within = client.post(f"{url}/count", content=(bytes(100_000) for _ in range(9)))

    assert (413, "BodyTooLarge") == (answer.status_code, answer.json()["error"]["type"])
    assert "900000" == within.text


@pytest.mark.parametrize("path", ["drop", "nonsense", "large-head", "strange-status"])
def test_what_is_no_answer_is_a_bad_gateway(url: str, path: str) -> None:
    """It names the runtime, the instance, and where its log is."""
    answer = client.get(f"{url}/{path}")

    error = answer.json()["error"]
    assert (502, "InstanceLostError") == (answer.status_code, error["type"])
    assert "The instance 'raw-1' of the runtime 'raw' did not answer: " in error["message"]
    assert "may have reached it" in error["message"]
    assert "/_emulator/runtimes/raw/logs" in error["message"]


@pytest.mark.parametrize("path", ["half", "half-chunked"])
def test_half_an_answer_is_not_taken_for_a_whole_one(url: str, path: str) -> None:
    """The caller's connection breaks as the application's did."""
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"{url}/{path}")


def test_an_instance_that_dies_takes_only_its_own_requests_along(tmp_path: Path) -> None:
    """They get a clear answer, or a broken one; the next request starts another instance."""
    with Emulator(runtimes=[table("mortal", "answering.py", tmp_path)]) as double:
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
    """Return the process that answers, once it is another one than ``but``."""
    for _ in range(100):  # one that is dying may be connected to until its end
        answer = client.get(f"{url}/x")
        if answer.status_code == 200 and answer.json()["process"] != but:
            return int(answer.json()["process"])
        assert answer.status_code in (200, 502)
    raise AssertionError(f"Nobody but {but} answers.")
