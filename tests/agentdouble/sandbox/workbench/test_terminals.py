from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, data_plane, has_gone

pytestmark = pytest.mark.once


class Screen:
    """A client of a terminal."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, kind: str, data: Any = None) -> None:
        self.connection.send(json.dumps({"type": kind, "data": data}))

    def frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=20))
        return frame

    def until(self, text: str, kind: str = "output") -> str:
        """Return the output up to a text."""
        output = ""
        while text not in output:
            frame = self.frame()
            output += frame["data"] if frame["type"] == kind else ""
        return output

    def opened(self) -> str:
        """Return the terminal's name once it is ready."""
        first = self.frame()
        assert "session_id" == first["type"]
        while self.frame()["type"] != "ready":
            pass
        name: str = first["data"]
        return name


def address(plane: DataPlane, **query: str) -> str:
    url = plane.url.replace("http", "ws", 1)
    return f"{url}/v1/shell/ws?{urlencode({**plane.query, **query})}"


@contextmanager
def screen(plane: DataPlane, **query: str) -> Iterator[Screen]:
    with connect(address(plane, **query), proxy=None) as connection:
        yield Screen(connection)


def test_a_terminal_runs_an_interactive_bash(double: Emulator) -> None:
    """It starts in the session's home, with the files of its code."""
    plane = data_plane(double)
    plane.bash("echo kept > file")
    with screen(plane) as terminal:
        assert terminal.opened()
        terminal.send("input", "pwd -P | wc -l; cat file; tty | cut -c1-5; echo $((6 * 7))x\n")
        output = terminal.until("42x\r\n")

    assert "gem@agentdouble:" in output
    assert "1\r\nkept\r\n/dev/\r\n42x\r\n" in output


def test_a_terminal_is_named_by_its_address(double: Emulator) -> None:
    """The address is of this double and keeps the token."""
    plane = data_plane(double)
    addresses = [plane.get("/v1/shell/terminal-url").json()["data"] for _ in range(2)]
    url, other = (httpx.URL(address) for address in addresses)
    with screen(plane, session_id=url.params["session_id"]) as terminal:
        name = terminal.opened()

    assert url.params["session_id"] == name != other.params["session_id"]
    assert plane.url == str(url.copy_with(path="/", query=None)).rstrip("/")
    assert {**plane.query, "session_id": name} == dict(url.params)


def test_ctrl_c_and_resizing_work(double: Emulator) -> None:
    """Ctrl-C interrupts, and jobs learn the new size."""
    with screen(data_plane(double)) as terminal:
        terminal.opened()
        terminal.send("resize", {"cols": 100, "rows": 30})
        terminal.send("input", "stty size; sh -c 'echo asl''eep; exec sleep 600'\n")
        assert "30 100" in terminal.until("asleep\r\n")
        terminal.send("input", "\x03")
        terminal.send("pong", {"timestamp": 1})
        terminal.send("input", "echo st''ill\n")

        assert "^C" in terminal.until("still\r\n")


def test_a_terminal_outlives_its_client(double: Emulator) -> None:
    """It is found again by name with its screen; two clients may share it."""
    plane = data_plane(double)
    with screen(plane) as terminal:
        name = terminal.opened()
        terminal.send("input", "x=4''2; echo do''ne\n")
        terminal.until("done\r\n")
    with screen(plane, session_id=name) as terminal, screen(plane, session_id=name) as other:
        restored = terminal.until("done\r\n", "restore_output")
        other.opened()
        terminal.send("input", "echo $x.\n")

        assert "gem@agentdouble:" in restored
        assert ("42.\r\n" in terminal.until("42.\r\n"), "42.\r\n" in other.until("42.\r\n")) == (
            True,
            True,
        )


def test_a_terminal_ends_with_its_bash(double: Emulator) -> None:
    """The connection is closed, and its name is free again."""
    plane = data_plane(double)
    with screen(plane, session_id="t") as terminal:
        terminal.opened()
        terminal.send("input", "x=1; exit\n")
        with pytest.raises(ConnectionClosed) as closed:
            terminal.until("never")
    with screen(plane, session_id="t") as terminal:
        terminal.opened()
        terminal.send("input", "echo [$x]\n")
        terminal.until("[]\r\n")

    assert closed.value.rcvd is not None
    assert 1000 == closed.value.rcvd.code


def test_a_terminal_ends_with_its_session(double: Emulator) -> None:
    """So do its jobs; the client gets the reason."""
    plane = data_plane(double)
    with screen(plane) as terminal:
        terminal.opened()
        terminal.send("input", "sleep 600 & echo p''id:$!:e''nd\n")
        output = terminal.until(":end\r\n")
        pid = plane.pid_outside(int(output.rpartition("pid:")[2].partition(":")[0]))
        double.reset()
        with pytest.raises(ConnectionClosed) as closed:
            terminal.until("never")

    assert has_gone(pid, timeout_s=30)
    assert closed.value.rcvd is not None
    assert (1001, True) == (closed.value.rcvd.code, "reset" in closed.value.rcvd.reason)


@pytest.mark.parametrize(
    "frame",
    [
        "no json",
        b"bytes",
        '{"type": "shout"}',
        '{"type": "input", "data": 1}',
        '{"type": "resize", "data": {"cols": 80}}',
    ],
    ids=str,
)
def test_an_invalid_frame_is_an_error(shared: Emulator, frame: str | bytes) -> None:
    """The terminal stays open."""
    with screen(data_plane(shared, "door"), session_id="frames") as terminal:
        terminal.opened()
        terminal.connection.send(frame)
        while (answer := terminal.frame())["type"] != "error":
            pass
        terminal.send("input", "echo st''ays\n")
        terminal.until("stays")

    assert answer["data"]
