"""Answers of a running double match its OpenAPI documents, for every operation."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from agentdouble import Emulator
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.core.invoke_tool import RunCode
from agentdouble.sandbox.browser import chromium
from tests.agentdouble.calling import DataPlane, data_plane, http, refusal, send, signed
from tests.agentdouble.mcp_services.backend import API
from tests.agentdouble.openapi.driver import Driver, document_of, operations_of
from tests.agentdouble.runtimes.asking import APPLICATIONS

MISSING = "call these in this test, so that their answers are compared with the OpenAPI document"
SESSIONS = "/apps/echo/users/u/sessions"
MEMORY = "/apps/echo/users/u/memory"
# to listen takes for ever; the task has ended; the application has one card
REFUSED = (
    "get_mcp get_extendedAgentCard "
    "post_tasks_id_cancel get_tasks_id_subscribe post_tasks_id_subscribe"
)
FOR_ADK = "get_apps_app_app_info patch_apps_app_users_user_memory"  # refused for other agents
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


ARTIFACT = f"file://{APPLICATIONS}?" + urlencode({"command": f"{sys.executable} -S saying.py"})


@pytest.fixture(scope="package")
def described() -> Iterator[Emulator]:
    """Start a double to read documents from; no test resets it while it is driven."""
    with Emulator(runtime_sources=(APPLICATIONS,)) as double:
        yield double


@pytest.fixture(scope="package")
def document(described: Emulator) -> dict[str, Any]:
    return document_of(described)


@pytest.fixture
def driver(described: Emulator, document: dict[str, Any]) -> Driver:
    return Driver(described, document)


@contextmanager
def covers(driver: Driver, document: dict[str, Any], *tags: str, but: str = "") -> Iterator[None]:
    """Assert that the context drives every operation with these tags, except those in ``but``."""
    yield
    request = {
        operation["operationId"]
        for _, _, operation in operations_of(document)
        if set(tags) & set(operation["tags"])
    }
    assert set(but.split()) == request - driver.driven, MISSING


def actions_of(document: dict[str, Any], *words: str) -> set[str]:
    names = {operation["operationId"] for _, _, operation in operations_of(document)}
    return {name for name in names if name[0].isupper() and any(word in name for word in words)}


@pytest.mark.needs("files", "pid_namespace")
def test_tool_and_session_actions_match(driver: Driver, document: dict[str, Any]) -> None:
    """This includes InvokeTool with both operations."""
    tool = driver.act("CreateTool", Name="driven", ToolType="CodeEnv", EnableSnapshot=True)[
        "ToolId"
    ]
    driver.act("UpdateTool", ToolId=tool, Description="changed")
    driver.act("GetTool", ToolId=tool)
    driver.act("ListTools", Filters=[{"Name": "Name", "Values": ["driven"]}])
    session = driver.act("CreateSession", ToolId=tool, UserSessionId="driven", Ttl=60)
    ids = {"ToolId": tool, "SessionId": session["SessionId"]}
    driver.act("InvokeTool", **RunCode(tool, "driven", "print(1); 1/0").body())
    command = {"OperationType": "ExecBash", "OperationPayload": json.dumps({"command": "echo hi"})}
    driver.act("InvokeTool", ToolId=tool, UserSessionId="driven", **command)
    task = driver.act("AsyncExecCommand", **ids, Command="true")["TaskId"]
    driver.act("ViewAsyncCommand", **ids, TaskId=task)
    driver.act("GetSession", **ids)
    driver.act("ListSessions", ToolId=tool)
    driver.act("SetSessionTtl", **ids, Ttl=2, TtlUnit="minute")
    created = driver.act("CreateSessionSnapshot", **ids, RetentionCount=1)
    snapshot = {"ToolId": tool, "SnapshotId": created["SnapshotId"]}
    driver.act("GetSessionSnapshot", **snapshot)
    driver.act("ListSessionSnapshots", ToolId=tool, MaxResults=1)
    driver.act("ResumeSessionFromSnapshot", **snapshot, CreateNewInstance=False, Ttl=60)
    driver.act("DeleteSessionSnapshot", **snapshot)
    driver.act("PauseSession", **ids)
    driver.act("InvokeTool", **RunCode(tool, "driven", "1").body())
    driver.act("ResumeSession", **ids)
    driver.act("GetSessionLogs", **ids)
    driver.act("DeleteSession", SessionId=session["SessionId"])
    driver.act("GetSession", **ids)
    driver.act("DeleteTool", ToolId=tool)

    actions = actions_of(document, "Tool", "Session") - actions_of(document, "MCP")
    assert set() == actions - driver.driven, MISSING


def test_mcp_service_actions_match(driver: Driver, document: dict[str, Any]) -> None:
    """The service's backend is an HTTP API that is never called."""
    service = driver.act(
        "CreateMCPService",
        Name="driven",
        Path="/",
        ProtocolType="HTTP",
        BackendType="Custom",
        ProtocolConfiguration={"HttpApiConfiguration": {"Configuration": json.dumps(API)}},
        BackendConfiguration={
            "CustomConfiguration": {"Domain": "127.0.0.1", "Port": 9, "ProtocolType": "http"}
        },
    )["MCPServiceId"]
    described = driver.act("GetMCPService", MCPServiceId=service)["MCPService"]
    driver.act("ListMCPServices")
    driver.act("UpdateMCPService", MCPServiceId=service)
    (key,) = described["InboundAuthorizerConfiguration"]["Authorizer"]["KeyAuth"]["ApiKeys"]
    with covers(driver, document, "MCP services", but="get_mcp_name"):
        speak_mcp(driver, "/mcp/driven", {"Authorization": f"Bearer {key['Key']}"})
    driver.act("DeleteMCPService", MCPServiceId=service)
    driver.act("GetMCPService", MCPServiceId=service)

    assert set() == actions_of(document, "MCP") - driver.driven, MISSING


def speak_mcp(driver: Driver, path: str, headers: dict[str, str]) -> None:
    """Open and end a session; listening would never return."""
    takes = {"Accept": "application/json, text/event-stream", **headers}
    opened = driver.ask("POST", path, json=INITIALIZE, headers=takes)
    in_session = {**takes, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    driver.ask("POST", path, json=notice, headers=in_session)
    driver.ask("GET", path, headers={**in_session, "Accept": "text/html"})
    driver.ask("DELETE", path, headers=in_session)
    driver.ask("POST", path, json=INITIALIZE)


def test_runtime_actions_match(driver: Driver, document: dict[str, Any]) -> None:
    """This includes a running instance."""
    fields = {"Name": "driven", "RoleName": "r", "ArtifactType": "file", "ArtifactUrl": ARTIFACT}
    runtime = driver.act("CreateRuntime", **fields, MinInstance=0)["RuntimeId"]
    described = driver.act("GetRuntime", RuntimeId=runtime)
    key = described["AuthorizerConfiguration"]["KeyAuth"]["ApiKey"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert 200 == driver.ask("GET", "/runtimes/driven/", headers=bearer).status_code
    driver.act("ListRuntimes")
    (instance,) = driver.act("ListRuntimeInstances", RuntimeId=runtime)["InstanceItems"]
    driver.act("GetRuntimeInstanceLogs", RuntimeId=runtime, InstanceName=instance["InstanceName"])
    driver.act("UpdateRuntime", RuntimeId=runtime, Description="another")
    driver.act("ReleaseRuntime", RuntimeId=runtime)
    driver.act("GetRuntimeVersion", RuntimeId=runtime)
    driver.act("ListRuntimeVersions", RuntimeId=runtime)
    driver.act("DeleteRuntime", RuntimeId=runtime)

    assert set() == actions_of(document, "Runtime") - driver.driven, MISSING


def test_shipped_applications_match(driver: Driver, document: dict[str, Any]) -> None:
    """These are simple, MCP and A2A applications."""
    kinds = ("Applications", "A2A applications", "Landing page", "OpenAPI")
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "6 * 7"}]}
    modern = {"A2A-Version": "1.0"}
    with covers(driver, document, *kinds, but=REFUSED):
        driver.ask("POST", "/invoke", json={"prompt": "6 * 7"})
        driver.ask("POST", "/invoke", content=b"no JSON")
        for path in ("/ping", "/health", "/readiness", "/liveness", "/", "/openapi.json"):
            driver.ask("GET", path)
        driver.ask("GET", "/", headers={"Accept": "text/html"})
        speak_mcp(driver, "/mcp", {})
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        answer = driver.ask("POST", "/", json=call, headers=modern)
        task = answer.json()["result"]["task"]["id"]
        driver.ask("POST", "/message:send", json={"message": message}, headers=modern)
        driver.ask("POST", "/message:stream", json={"message": message}, headers=modern)
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            driver.ask("GET", path)
        driver.ask("GET", "/extendedAgentCard", headers=modern)
        driver.ask("GET", "/tasks", headers=modern)
        pushed = {"url": "http://127.0.0.1:9/", "id": "c1"}
        driver.ask("GET", f"/tasks/{task}", headers=modern)
        driver.ask("POST", f"/tasks/{task}:cancel", json={}, headers=modern)
        driver.ask("GET", f"/tasks/{task}:subscribe", headers=modern)
        driver.ask("POST", f"/tasks/{task}:subscribe", json={}, headers=modern)
        configs = f"/tasks/{task}/pushNotificationConfigs"
        driver.ask("POST", configs, json=pushed, headers=modern)
        driver.ask("GET", configs, headers=modern)
        driver.ask("GET", f"{configs}/c1", headers=modern)
        driver.ask("DELETE", f"{configs}/c1", headers=modern)


def test_api_server_matches(driver: Driver, document: dict[str, Any]) -> None:
    """This covers sessions, runs and artifacts."""
    message = {"role": "user", "parts": [{"text": "hello"}]}
    with covers(driver, document, "API server", but=FOR_ADK):
        session_id = driver.ask("POST", SESSIONS, json={}).json()["id"]
        url = f"{SESSIONS}/{session_id}"
        driver.ask("POST", f"{SESSIONS}/named", json={"a": 1})
        driver.ask("POST", f"{SESSIONS}/named", json={"a": 1})
        body = {"appName": "echo", "userId": "u", "sessionId": session_id, "newMessage": message}
        driver.ask("POST", "/run", json=body)
        driver.ask("POST", "/run", json={**body, "sessionId": "none"})
        driver.ask("POST", "/run", json={})
        driver.ask("POST", "/run_sse", json={**body, "streaming": True})
        driver.ask("GET", url)
        driver.ask("GET", SESSIONS)
        driver.ask("GET", "/apps/echo/app-info")
        driver.ask("PATCH", MEMORY, json={"sessionId": session_id})
        driver.ask("PATCH", MEMORY, json={"sessionId": "none"})
        driver.ask("PATCH", url, json={"stateDelta": {"b": 2}})
        driver.ask("GET", "/list-apps")
        driver.ask("GET", "/list-apps", params={"detailed": "true"})
        driver.ask("GET", "/version")
        artifacts = f"{url}/artifacts"
        driver.ask("POST", artifacts, json={"filename": "a.txt", "artifact": {"text": "text"}})
        driver.ask("GET", artifacts)
        for path in ("", "/versions", "/versions/0", "/versions/metadata", "/versions/0/metadata"):
            driver.ask("GET", f"{artifacts}/a.txt{path}")
        driver.ask("GET", f"{artifacts}/none")
        driver.ask("DELETE", f"{artifacts}/a.txt")
        driver.ask("DELETE", url)


@pytest.fixture
def plane(described: Emulator) -> DataPlane:
    return data_plane(described, "plane")


def test_data_plane_matches(driver: Driver, document: dict[str, Any], plane: DataPlane) -> None:
    """One session gets code, commands and files."""

    def post(path: str, /, **body: Any) -> Any:
        return driver.plane(plane, "POST", path, json=body).json().get("data")

    def get(path: str, /, **query: str) -> None:
        driver.plane(plane, "GET", path, params=query)

    def delete(path: str) -> None:
        driver.plane(plane, "DELETE", path)

    browser = {
        operation["operationId"]
        for _, path, operation in operations_of(document)
        if path.startswith("/v1/browser")
    }
    if chromium.find(None) is not None:
        for path in ("info", "screenshot"):
            get(f"/v1/browser/{path}")
    elif browser:
        pytest.skip(f"needs Chromium: {chromium.INSTALL}")
    with covers(driver, document, "Sessions of the sandbox"):
        get("/v1/sandbox")
        post("/v1/jupyter/execute", code="print(1)")
        post("/v1/jupyter/execute", code="")
        post("/v1/jupyter/sessions/create", session_id="j")
        get("/v1/jupyter/info")
        get("/v1/jupyter/sessions")
        delete("/v1/jupyter/sessions/j")
        delete("/v1/jupyter/sessions/j")
        delete("/v1/jupyter/sessions")
        post("/v1/code/execute", language="python", code="1/0")
        get("/v1/code/info")
        post("/v1/bash/sessions/create", session_id="b")
        post("/v1/bash/exec", session_id="b", command="echo hi")
        post("/v1/bash/output", session_id="b")
        post("/v1/bash/exec", session_id="b", command="cat", async_mode=True)
        post("/v1/bash/write", session_id="b", input="x")
        post("/v1/bash/kill", session_id="b")
        get("/v1/bash/sessions")
        post("/v1/bash/sessions/b/close")
        post("/v1/shell/exec", id="s", command="true")
        post("/v1/shell/wait", id="s")
        get("/v1/shell/terminal-url")
        post("/v1/file/write", file="a.txt", content="one\ntwo\n")
        post("/v1/file/read", file="a.txt")
        post("/v1/file/read", file="none")
        post("/v1/file/replace", file="a.txt", old_str="one", new_str="1")
        post("/v1/file/search", file="a.txt", regex="tw")
        post("/v1/file/find", path=".", glob="*.txt")
        post("/v1/file/list", path=".")
        driver.plane(plane, "POST", "/v1/file/upload", files={"file": ("b.txt", b"b")})
        get("/v1/file/download", path="a.txt")
        get("/v1/file/download", path="none")
        driver.ask("GET", "/v1/sandbox")


@pytest.mark.slow
@pytest.mark.once  # five seconds: the validator looks at each reference of each operation
def test_document_is_valid_openapi(document: dict[str, Any]) -> None:
    """The specification's schema for version 3.1 accepts it."""
    assert [] == [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]


def test_operations_have_unique_names_and_summaries(document: dict[str, Any]) -> None:
    """Generated clients call operations by these names."""
    operations = [operation for _, _, operation in operations_of(document)]
    names = [operation["operationId"] for operation in operations]

    assert len(set(names)) == len(names)
    assert [] == [operation["operationId"] for operation in operations if not operation["summary"]]
    assert [] == [name for name in names if not re.fullmatch(r"[A-Za-z]\w*", name)]


def test_operations_are_served(described: Emulator, document: dict[str, Any]) -> None:
    """None answers like an unknown path, action or method."""
    unserved = []
    for method, path, operation in operations_of(document):
        if "Action=" in path:
            continue
        at = re.sub(r"\{\w+\}", "x", path)
        with http.stream(method, described.url + at) as answer:
            unknown = answer.status_code == 404 and answer.read() in (
                b"Not Found",
                b'{"detail":"Not Found"}',
            )
        if unknown or answer.status_code == 405:
            unserved.append(f"{operation['operationId']} {answer.status_code}")

    assert [] == unserved


def test_implemented_actions_are_described(described: Emulator, document: dict[str, Any]) -> None:
    """The others are refused by name."""
    actions = {path[len("/?Action=") :].partition("&")[0] for path in document["paths"]}

    built = {name for name in OF_THE_PLATFORM if name in actions}
    others = OF_THE_PLATFORM - built
    assert {501} == {refusal(described, name)[0] for name in others}
    answers = [send(signed(described, {}, action=name)) for name in built]
    assert 501 not in {answer.status_code for answer in answers}


def test_document_is_refused_to_web_pages(described: Emulator) -> None:
    answer = http.get(f"{described.url}/openapi.json", headers={"Origin": "https://evil.example"})

    assert 403 == answer.status_code
