"""An instance answers its gateway alone, whatever its program listens with."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.processes import isolation
from tests.agentdouble.calling import http, text
from tests.agentdouble.runtimes.asking import ask, asking

pytestmark = pytest.mark.libraries

ASK = """
import socket
def tried(host, port):
    try:
        with socket.create_connection((host, port), timeout=5) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\nx-agentdouble-identity-subject: eve\\r\\n\\r\\n")
            return "answered" if s.recv(10) else "closed"
    except OSError as error:
        return type(error).__name__
"""
HOSTS = ("127.0.0.1", "::1", "127.0.0.2", "0.0.0.0")


def doubles(directory: Path, **settings: Any) -> Iterator[Emulator]:
    served = directory / "served"
    served.mkdir()
    (served / "page.txt").write_text("served")
    command = ["python3", "-m", "http.server", "$PORT"]
    everywhere = {"name": "everywhere", "directory": str(served), "command": command}
    tables = [asking("asking", directory), everywhere]
    with Emulator(runtimes=tables, **settings) as double:
        assert http.get(f"{double.url}/runtimes/everywhere/page.txt").text == "served"
        yield double


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    why_not = isolation.find_out().measures["ports"].why_not
    if why_not is not None:
        pytest.skip(f"this machine lacks ports: {why_not}")
    yield from doubles(tmp_path_factory.mktemp("apart"))


def instances(double: Emulator) -> dict[str, dict[str, Any]]:
    """Return the first instance of each runtime, by the runtime's name."""
    shown = http.get(f"{double.url}/_emulator/runtimes").json()["runtimes"]
    return {one["name"]: one["instances"][0] for one in shown if one["instances"]}


def reached(double: Emulator) -> set[str]:
    """Return what code of a session and of another runtime meet at the port of one."""
    port = instances(double)["everywhere"]["port"]
    code = f"{ASK}\nprint(','.join(tried(host, {port}) for host in {HOSTS!r}))"
    found = {*text(double, code).strip().split(",")}
    lines = json.dumps(f"{ASK}\nfound = [tried(host, {port}) for host in {HOSTS!r}]")
    space = f"(lambda space: [exec({lines}, space), space['found']][1])({{}})"
    return found | {*ask(double, "asking", space)}


def test_neither_sessions_nor_other_instances_reach_it(double: Emulator) -> None:
    """Under no name of this machine."""
    assert reached(double) == {"ConnectionRefusedError"}
    assert instances(double)["everywhere"]["reached_by"] == "its double alone"


def test_without_a_port_of_its_own_they_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is that which keeps them away, and the status says that it is not there."""
    found = isolation.find_out()
    lacking = dataclasses.replace(found.measures["ports"], why_not="it is taken away")
    without = isolation.Isolation({**found.measures, "ports": lacking})
    monkeypatch.setattr(isolation, "find_out", lambda: without)
    for double in doubles(tmp_path):
        assert "answered" in reached(double)
        assert instances(double)["everywhere"]["reached_by"] == "this machine"


def test_it_reaches_itself_and_others(double: Emulator) -> None:
    """By its own port, as it would anywhere, and its double."""
    reach = "__import__('socket').create_connection(('127.0.0.1', {})).getpeername()[1]"
    own = ask(double, "asking", reach.format("int(os.environ['PORT'])"))
    others = int(double.url.rpartition(":")[2])

    assert own == instances(double)["asking"]["port"]
    assert ask(double, "asking", reach.format(others)) == others


def test_its_helper_is_none_of_its_processes(double: Emulator) -> None:
    """Neither its memory nor its number counts."""
    assert instances(double)["everywhere"]["processes"] == 1
