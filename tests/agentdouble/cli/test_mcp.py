from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.core import running_doubles
from agentdouble.errors import AgentDoubleError
from agentdouble.mcp_services import CommandBackend, McpBackend, OpenApiBackend
from agentdouble.mcp_services.openapi import ApiKey, Basic, Bearer
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.backend import API, CREDENTIALS, TOOLS, Backend
from tests.agentdouble.mcp_services.stdio.conftest import HERE


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend().serving() as serving:
        yield serving


@pytest.fixture
def local(double: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A running double that the commands find."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with running_doubles.announced(double.connection):
        yield double


def run(*words: str, warnings: str = "") -> str:
    """Run a command that succeeds and return its output."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        from agentdouble.cli.app import app

        app(["mcp", *words], standalone_mode=False)
    assert warnings == errors.getvalue()
    return printed.getvalue()


def refused(*words: str) -> str:
    """Run a command that is refused and return the reason."""
    with pytest.raises(AgentDoubleError) as caught:
        run(*words)
    return str(caught.value)


def tools(record: str) -> list[str]:
    """Return the tools that a client finds with a pasted access record."""
    ((_, access),) = json.loads(record)["mcpServers"].items()
    key = access["headers"]["Authorization"].removeprefix("Bearer ")
    session = mcp_wire.open_session(access["httpUrl"], key)
    answer = mcp_wire.post(access["httpUrl"], mcp_wire.message("tools/list"), key, session)
    return [tool["name"] for tool in mcp_wire.result(answer)["tools"]]


def test_service_is_created_listed_and_deleted(local: Emulator, backend: Backend) -> None:
    """Each step uses the output of the one before; the record opens the service."""
    record = run("create", "weather", f"{backend.url}/mcp")

    service = local.mcp.get("weather")
    assert local.mcp.record("weather") == json.loads(record)
    assert list(TOOLS) == tools(record)
    table = run("list")
    assert [True, True] == [name in table for name in ("weather", service.id)]
    assert record == run("show", "weather") == run("show", service.id)
    assert {"MCPServiceId": service.id, **json.loads(record)} == json.loads(
        run("show", "weather", "--json")
    )
    listed = json.loads(run("list", "--json"))
    assert [service.id] == [entry["MCPServiceId"] for entry in listed["MCPServices"]]
    assert f"{service.id} is deleted.\n" == run("delete", "weather")
    assert () == local.mcp.list()
    for command in ("delete", "show"):
        assert "No MCP service 'weather'. See: agentdouble mcp list" == refused(command, "weather")


def test_keys_come_from_the_environment_or_a_file(
    local: Emulator, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a bearer or in a header."""
    monkeypatch.setenv("TOKEN", CREDENTIALS.removeprefix("Bearer "))
    (tmp_path / "key.txt").write_text("from-a-file\n")
    (tmp_path / "login.txt").write_text("me:pass\n")
    url = f"{backend.url}/needy"

    record = run("create", "one", url, "--bearer", "env:TOKEN")
    refused = (
        "Warning: The backend of the MCP service {!r} refuses the credentials that the service has "
        "for it (401).\n"
    )
    run("create", "two", url, "--api-key", "file:key.txt", warnings=refused.format("two"))
    run("create", "three", url, "--api-key", "X-Mine=env:TOKEN", warnings=refused.format("three"))
    run("create", "four", url, "--basic", "file:login.txt", warnings=refused.format("four"))

    assert list(TOOLS) == tools(record)
    assert [
        {"X-API-Key": "from-a-file"},
        {"X-Mine": CREDENTIALS.removeprefix("Bearer ")},
        {"Authorization": "Basic bWU6cGFzcw=="},
    ] == [dict(_headers(local, name)) for name in ("two", "three", "four")]


def test_server_that_cannot_be_reached_is_a_warning(local: Emulator) -> None:
    """The service is created, because the server may start later."""
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        warning = "Warning: The backend of the MCP service 'dead' cannot be reached.\n"
        record = run("create", "dead", url, warnings=warning)

    assert local.mcp.record("dead") == json.loads(record)


def _headers(double: Emulator, name: str) -> Any:
    behind = double.mcp.get(name).backend
    assert isinstance(behind, McpBackend)
    return behind.headers


@pytest.mark.slow
def test_definition_becomes_a_service(
    local: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API's address is in the file, or in --base-url; what will fail is said at once."""
    monkeypatch.setenv("TOKEN", "t")
    monkeypatch.setenv("LOGIN", "me:pass")
    dead = "Warning: The API at http://pets.example cannot be reached now.\n"
    unsent = (
        "Warning: 1 of 1 operations need a credential, and the service has none: key (an API key "
        "in the query: k). See --api-key, --bearer and --basic.\n"
    )
    for name in ("pets.json", "pets"):
        (tmp_path / name).write_text(json.dumps(API))

    record = run("create", "one", "pets.json", "--api-key", "env:TOKEN", warnings=dead)
    run("create", "two", "pets.json", "--bearer", "env:TOKEN", warnings=dead)
    words = ("--base-url", "http://[::1]:81/v1", "--api-key", "X-K=env:TOKEN")
    run("create", "three", "pets", *words, warnings=dead.replace("pets.example", "[::1]:81"))
    run("create", "four", "pets.json", "--basic", "env:LOGIN", warnings=dead)
    run("create", "five", "pets.json", warnings=unsent + dead)

    assert ["pets"] == tools(record)
    assert [
        (None, ApiKey("t")),
        (None, Bearer("t")),
        ("http://[::1]:81/v1", ApiKey("t", name="X-K")),
        (None, Basic("me", "pass")),
        (None, None),
    ] == [_api(local, name) for name in ("one", "two", "three", "four", "five")]


def _api(double: Emulator, name: str) -> tuple[Any, Any]:
    behind = double.mcp.get(name).backend
    assert isinstance(behind, OpenApiBackend)
    return behind.base_url, behind.auth


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "'nothing' is not a backend. Give the URL of an MCP server"),
        (("http://a:b@h/",), "BACKEND is an address such as http://HOST:PORT/mcp, without user"),
        (("none.json",), "none.json cannot be read: No such file or directory."),
        (("a.json", "--base-url", "h"), "--base-url is an address such as http://HOST:PORT/v1,"),
        (
            ("http://h/", "--bearer", "s3cret"),
            "--bearer must be env:NAME or file:PATH, not the key",
        ),
        (("http://h/", "--api-key", "s3cret"), "--api-key must be env:NAME or file:PATH"),
        (("http://h/", "--bearer", "env:NO_SUCH"), "--bearer: the environment has no NO_SUCH."),
        (("http://h/", "--bearer", "env:A", "--api-key", "env:A"), "Use one of --bearer"),
        (("http://h/", "--basic", "file:a.txt"), "--basic: a.txt cannot be read"),
    ],
)
def test_invalid_services_are_refused(
    local: Emulator, words: tuple[str, ...], message: str
) -> None:
    """Nothing is created, and no secret is shown."""
    error = refused("create", "one", *words)

    assert message in error
    assert "s3cret" not in error
    assert () == local.mcp.list()


def test_command_becomes_a_service(local: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """After --; it runs in the working directory."""
    monkeypatch.setenv("TOKEN", "t")
    monkeypatch.chdir(HERE)

    def created(name: str) -> CommandBackend:
        backend = local.mcp.get(name).backend
        assert isinstance(backend, CommandBackend)
        assert backend.sources  # a client's command sees no others
        return replace(backend, sources=None)

    words = (sys.executable, "program.py", "command")

    record = run("create", "command", "--env", "TOKEN", "--env", "A=b", "--", *words)

    assert ["echo"] == tools(record)
    env = {"TOKEN": "t", "A": "b"}
    assert CommandBackend(words, HERE, env) == created("command")


@pytest.mark.needs("files")
def test_a_command_that_cannot_read_its_program_is_not_created(
    local: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has what it printed, and the cure."""
    program, elsewhere = str(HERE / "program.py"), HERE.parent / "openapi"
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # what it names can be read

    message = refused("create", "hidden", "--", sys.executable, program, "command")
    left = local.mcp.list()
    record = run("create", "shown", "--directory", str(HERE), "--", sys.executable, program, "x")

    assert message.startswith("The MCP service 'hidden' was not created: ")
    assert f"can't open file '{program}'" in message
    assert message.endswith(
        f"{program} exists, but is outside of {elsewhere}, the only directory that the command can "
        f"read: use --directory {HERE}"
    )
    assert () == left
    assert ["echo"] == tools(record)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("print('no server', flush=True)", "no server"),
        ("import sys; sys.exit('wrong')", "wrong"),
    ],
)
def test_a_command_that_is_no_server_is_not_created(
    local: Emulator, monkeypatch: pytest.MonkeyPatch, command: str, reason: str
) -> None:
    monkeypatch.chdir(HERE)

    message = refused("create", "none", "--", sys.executable, "-c", command)

    assert reason in message
    assert "--directory" not in message
    assert () == local.mcp.list()
