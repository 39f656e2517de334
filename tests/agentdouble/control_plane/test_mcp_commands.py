from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import act, refusal
from tests.agentdouble.mcp_services.stdio.conftest import HERE

SERVER = {"command": sys.executable, "args": ["program.py", "made"]}


@pytest.fixture
def double() -> Any:
    with Emulator(pool_size=0, runtime_sources=(HERE,)) as double:
        yield double


def body(raw: Any, **package: Any) -> dict[str, Any]:
    """Return a request for a service in front of a command."""
    text = raw if isinstance(raw, str) else json.dumps(raw)
    packed = {"PublicPackage": {"McpType": "stdio", "RawConfig": text, **package}}
    return {
        "Name": "files",
        "Path": "/",
        "ProtocolType": "MCP",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": packed},
    }


def service_of(double: Emulator) -> dict[str, Any]:
    (listed,) = act(double, "ListMCPServices")["MCPServices"]
    service = act(double, "GetMCPService", MCPServiceId=listed["MCPServiceId"])["MCPService"]
    return {"MCPServiceId": listed["MCPServiceId"], **service}


@pytest.mark.parametrize("raw", [SERVER, {"mcpServers": {"any": {**SERVER, "env": {"A": "b"}}}}])
def test_created_service_works(double: Emulator, raw: Any) -> None:
    """A client's configuration is its backend; without cwd it runs in the sources."""
    act(double, "CreateMCPService", **body(raw))
    (access,) = double.mcp.record("files")["mcpServers"].values()
    key = access["headers"]["Authorization"].removeprefix("Bearer ")

    session = mcp_wire.open_session(access["httpUrl"], key)

    answer = mcp_wire.call(access["httpUrl"], key, session, "echo", word="hé")
    assert [{"type": "text", "text": "hé"}] == answer["content"]
    assert body(raw)["BackendConfiguration"] == service_of(double)["BackendConfiguration"]


def test_update_changes_the_command(double: Emulator) -> None:
    """The returned configuration is valid input."""
    double.mcp.create("files", CommandBackend(("cat",), HERE, {"A": "b"}))
    before = service_of(double)
    assert {"command": "cat", "args": [], "env": {"A": "b"}, "cwd": str(HERE)} == json.loads(
        before["BackendConfiguration"]["CustomMcpConfiguration"]["PublicPackage"]["RawConfig"]
    )

    change = body({**SERVER, "cwd": str(HERE)})["BackendConfiguration"]
    act(
        double,
        "UpdateMCPService",
        MCPServiceId=before["MCPServiceId"],
        BackendConfiguration=change,
    )

    assert CommandBackend((sys.executable, "program.py", "made"), HERE, sources=(HERE,)) == (
        double.mcp.get("files").backend
    )


@pytest.mark.needs("files")
@pytest.mark.parametrize("variable", ["PATH", "PYTHONPATH", "SSL_CERT_FILE", "HOME"])
def test_command_sees_nothing_outside_the_sources(
    double: Emulator, tmp_path: Path, variable: str
) -> None:
    """Whatever a client's variables name; paths named by the operator in Python are visible."""
    (tmp_path / "secret").write_text("of the operator")
    act(double, "CreateMCPService", **body({**SERVER, "env": {variable: str(tmp_path)}}))
    (access,) = double.mcp.record("files")["mcpServers"].values()
    key = access["headers"]["Authorization"].removeprefix("Bearer ")
    session = mcp_wire.open_session(access["httpUrl"], key)

    answer = mcp_wire.call(access["httpUrl"], key, session, "exists", path=str(tmp_path / "secret"))

    assert [{"type": "text", "text": "False"}] == answer["content"]


def test_client_s_interpreter_never_runs_unconfined(tmp_path: Path) -> None:
    """Its requirements are found without running it."""
    python, ran = tmp_path / "sources" / "python3", tmp_path / "ran"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ntouch {ran}\n")
    python.chmod(0o755)
    with Emulator(pool_size=0, runtime_sources=(python.parent,)) as double:
        act(double, "CreateMCPService", **body({"command": str(python), "args": ["-c", "0"]}))
        (access,) = double.mcp.record("files")["mcpServers"].values()

        key = access["headers"]["Authorization"].removeprefix("Bearer ")
        answer = mcp_wire.post(access["httpUrl"], mcp_wire.INITIALIZE, key)

        assert "error" in answer.text
    assert not ran.exists()


def test_commands_survive_a_restart(tmp_path: Path) -> None:
    """With --state, like servers with an address."""
    state = f"sqlite:///{tmp_path / 'double.db'}"
    backend = CommandBackend(("cat",), HERE, {"A": "b"}, 3.0)
    with Emulator(pool_size=0, state=state) as double:
        double.mcp.create("files", backend)
    with Emulator(pool_size=0, state=state) as double:
        assert backend == double.mcp.get("files").backend


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("no", "it is not JSON"),
        ({"mcpServers": {"a": SERVER, "b": SERVER}}, "with one server"),
        ({"url": "http://127.0.0.1/mcp"}, "use CustomConfiguration for a server with an address"),
        ({"args": ["x"]}, "its command is invalid"),
        (
            {"command": "x", "env": {"a b": ""}},
            "'a b' is not a valid name of an environment variable",
        ),
        ({"command": "x", "shell": True}, "its shell is invalid"),
        ({"command": "x", "cwd": "/etc"}, "the setting runtime_sources names"),
        ({"command": "x", "cwd": str(HERE / "none")}, "is not the absolute path of a directory"),
    ],
)
def test_invalid_commands_are_refused_by_field(double: Emulator, raw: Any, reason: str) -> None:
    """Nothing is created; clients cannot name paths outside the sources."""
    status, code, message = refusal(double, "CreateMCPService", **body(raw))

    assert (400, "InvalidParameter", True) == (status, code, reason in message), message
    assert () == double.mcp.list()


def test_other_packages_and_credentials_are_refused(double: Emulator) -> None:
    """Other package types are not implemented; a command has no headers for a key."""
    key = {"KeyAuth": {"ApiKeys": [{"Name": "a", "Key": "k"}]}}
    outbound = {"AuthorizerType": "ApiKey", "Authorizer": key}

    _, code, message = refusal(double, "CreateMCPService", **body(SERVER, McpType="sse"))
    assert ("NotImplemented", True) == (code, "PublicPackage.McpType" in message)
    _, code, message = refusal(
        double, "CreateMCPService", OutboundAuthorizerConfiguration=outbound, **body(SERVER)
    )
    assert ("InvalidParameter", True) == (code, "gets its credentials from env" in message)
