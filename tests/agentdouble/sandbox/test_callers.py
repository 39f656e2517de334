from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux tells whose a socket is", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.sandbox.callers import Callers
from tests.agentdouble.calling import http, text

pytestmark = pytest.mark.smoke

CONNECT = """
import socket, sys
held = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(*held.getsockname()[:2], flush=True)
sys.stdin.read()
"""
HIDE = """
import array, socket, sys
held = socket.create_connection((sys.argv[1], int(sys.argv[2])))
near, far = socket.socketpair()
near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held.fileno()]))])
said = held.getsockname()
held.close()
print(*said[:2], flush=True)
sys.stdin.read()
"""
BELOW = """
import subprocess, sys
sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))
"""


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest, _way: None) -> Iterator[socket.socket]:
    """A listening socket on loopback."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        made = socket.create_server((request.param, 0), family=family)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with made:
        yield made


@contextmanager
def process(listener: socket.socket, *code: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """Run code in a process that connects; yield its pid and the address it connects from."""
    host, port = listener.getsockname()[:2]
    first, *rest = code
    started = subprocess.Popen(
        [sys.executable, "-c", first, *(word for c in rest for word in ("-c", c)), host, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    host, port = started.stdout.readline().split()
    try:
        yield started.pid, (host, int(port))
    finally:
        started.communicate("")


@pytest.fixture(params=["asked for", "looked for in the tables"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to find a socket come to the same."""
    if request.param != "asked for":
        monkeypatch.setattr("agentdouble.socket_lookup.look_up", lambda *_: None)


def judge(listener: socket.socket, client: tuple[str, int], *roots: int) -> bool:
    """Return whether a caller is taken for a session's where sessions run below ``roots``."""
    callers = Callers(lambda: roots)
    return "session" == asyncio.run(callers.caller(client, listener.getsockname()[:2]))


@pytest.mark.parametrize("code", [(CONNECT,), (BELOW, CONNECT)], ids=["itself", "a child"])
def test_a_socket_of_a_session_s_process_is_found(
    listener: socket.socket, code: tuple[str, ...]
) -> None:
    """It may belong to what the kernel has started; where nothing is a session's, nobody is."""
    with process(listener, *code) as (pid, client):
        judged = judge(listener, client, pid), judge(listener, client)

    assert (True, False) == judged


def test_a_socket_of_another_program_is_not_a_session_s(listener: socket.socket) -> None:
    """Neither one of this process nor one of a process beside the sessions."""
    with process(listener, CONNECT) as (_, beside), process(listener, CONNECT) as (session, _):
        of_neighbour = judge(listener, beside, session)
        with closing(socket.create_connection(listener.getsockname()[:2])) as own:
            of_this = judge(listener, own.getsockname()[:2], session)

    assert (False, False) == (of_neighbour, of_this)


def test_a_socket_that_is_hidden_is_taken_for_a_session_s(listener: socket.socket) -> None:
    """Under way to another process it is open in none."""
    with process(listener, HIDE) as (pid, client):
        assert judge(listener, client, pid)


@pytest.mark.parametrize("reset", [False, True])
def test_a_caller_that_has_gone_is_taken_for_a_session_s(
    listener: socket.socket, reset: bool
) -> None:
    """Whether its socket lingers without an owner or is there no more."""
    caller = socket.create_connection(listener.getsockname()[:2])
    client = caller.getsockname()[:2]
    with listener.accept()[0]:
        if reset:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0] + [0] * 4))
        caller.close()

        assert judge(listener, client, os.getpid())


ASK = """
import json, urllib.error, urllib.request
def ask(headers, data=None):
    request = urllib.request.Request({url!r} + "/_emulator/clock", data, headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["type"]
print(json.dumps([ask({{}}, b'{{"advance_s": 60}}'), ask({{"X-Forwarded-For": "127.0.0.1"}})]))
"""


@pytest.mark.parametrize("settings", [{}, {"isolation": "none"}], ids=str)
def test_code_of_a_session_cannot_steer_the_double(settings: dict[str, str]) -> None:
    """Whatever user it is and whatever it says for whom it asks; others still can."""
    with Emulator(**settings) as double:
        said = json.loads(text(double, ASK.format(url=double.url)))
        here = http.get(f"{double.url}/_emulator/clock")
        by_proxy = http.get(
            f"{double.url}/_emulator/clock", headers={"X-Forwarded-For": "127.0.0.1"}
        )

    assert [[403, "ForbiddenClient"]] * 2 == said
    assert (200, 200, 0.0) == (here.status_code, by_proxy.status_code, here.json()["offset_s"])


def test_code_with_the_api_key_is_let_in() -> None:
    """Who holds the key may ask from anywhere."""
    with Emulator(api_key="key") as double:
        code = ASK.format(url=double.url).replace("{}, b", "{'X-Api-Key': 'key'}, b")

        assert [200, [401, "Unauthorized"]] == json.loads(text(double, code))
