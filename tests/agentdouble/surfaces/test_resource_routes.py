"""Tools and MCP services by the double's own routes, and what forms are made of."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator, MCPApp
from tests.agentdouble.calling import TIMEOUT_S, act, http

DEFINITION = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/ping": {"get": {"operationId": "ping", "responses": {"200": {"description": "d"}}}}
    },
}
sums = MCPApp("sums")


@sums.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(scope="module")
def made() -> Iterator[Emulator]:
    with Emulator(sums, runtime_sources=(Path(__file__).parent,)) as double:
        yield double


@pytest.fixture
def own(made: Emulator) -> Iterator[httpx.Client]:
    """Ask the double's own routes; nothing is left afterwards."""
    headers = {"Authorization": f"Bearer {made.token}"}
    with httpx.Client(
        base_url=f"{made.url}/_emulator", timeout=TIMEOUT_S, headers=headers
    ) as client:
        yield client
    made.reset()


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["message"]


def created(own: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = own.post(path, json=body)
    assert 201 == answer.status_code, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_tool_is_what_the_action_makes(made: Emulator, own: httpx.Client) -> None:
    """The same fields by either way, from its creation to its end."""
    shown = created(own, "/tools", Name="mine", Description="first")

    assert act(made, "GetTool", ToolId=shown["ToolId"]) == shown
    assert shown == own.get("/tools/mine").json() == own.get(f"/tools/{shown['ToolId']}").json()
    changed = own.patch("/tools/mine", json={"Description": "second"}).json()
    assert {**shown, "Description": "second", "UpdatedAt": changed["UpdatedAt"]} == changed
    assert act(made, "ListTools")["Tools"] == own.get("/tools").json()["Tools"]
    assert {"ToolId": shown["ToolId"]} == own.delete("/tools/mine").json()
    assert (404, "InvalidResource.NotFound") == refusal(own.get("/tools/mine"))[:2]


def test_a_wrong_tool_is_refused_as_the_action_refuses_it(own: httpx.Client) -> None:
    """With its code and its status, and the field."""
    for body, status, kind, says in (
        ({}, 400, "MissingParameter", "Name"),
        ({"Name": "x", "ToolType": "Private"}, 501, "NotImplemented", "Private"),
        ({"Name": "sandbox"}, 409, "InvalidResource.AlreadyExists", "sandbox"),
        ({"Name": "x", "Port": "many"}, 400, "InvalidParameter", "Port"),
    ):
        told = refusal(own.post("/tools", json=body))
        assert (status, kind, True) == (*told[:2], says in told[2])
    assert (400, "BadRequest") == refusal(own.post("/tools", content=b"{"))[:2]
    told = refusal(own.post("/tools", json={"Nmae": "x"}))
    assert (400, True) == (told[0], "'Nmae'. Did you mean 'Name'?" in told[2])
    told = refusal(own.patch("/tools/t-sandbox", json={"ToolId": "t-other"}))
    assert (400, True) == (told[0], "There is no field 'ToolId'" in told[2])
    assert 409 == own.delete("/tools/t-sandbox").status_code


def test_secrets_are_shown_by_no_answer(own: httpx.Client) -> None:
    """But by the route of the access record, which is what it is for."""
    created(own, "/tools", Name="mine", Envs=[{"Key": "MY_TOKEN", "Value": "s3cret"}])
    keys = {
        "AuthorizerType": "ApiKey",
        "Authorizer": {"KeyAuth": {"ApiKeys": [{"Name": "k", "Key": "s3cret"}]}},
    }
    both = {"InboundAuthorizerConfiguration": keys, "OutboundAuthorizerConfiguration": keys}
    created(own, "/mcp-services", Name="held", Url="http://127.0.0.1:9/mcp", **both)
    command = {"Command": [sys.executable, "x.py"], "Env": {"PLAIN": "s3cret"}}
    created(own, "/mcp-services", Name="program", **command)

    for path in ("/tools", "/mcp-services"):
        listed = own.get(path).json()
        names = [one["Name"] for one in next(iter(listed.values()))]
        shown = [own.get(f"{path}/{name}").text for name in names]
        assert "s3cret" not in json.dumps(listed) + "".join(shown)
    record = own.get("/mcp-services/held/access")
    assert "Bearer s3cret" == record.json()["mcpServers"]["held"]["headers"]["Authorization"]
    assert "no-store" == record.headers["cache-control"]


def test_an_address_becomes_a_service(made: Emulator, own: httpx.Client) -> None:
    """Its tools are listed and called through it; its record is that of the program's."""
    created(own, "/mcp-services", Name="sums", Url=f"{made.url}/mcp")

    (tool,) = own.get("/mcp-services/sums/tools").json()["tools"]
    call = {"tool": "add", "arguments": {"a": 1, "b": 2}}
    result = own.post("/mcp-services/sums/call", json=call).json()["result"]
    wrong = own.post("/mcp-services/sums/call", json={"tool": "add"}).json()["result"]

    assert ("add", {"a", "b"}) == (tool["name"], {*tool["inputSchema"]["properties"]})
    assert ({"result": 3}, False) == (result["structuredContent"], result["isError"])
    assert wrong["isError"]
    assert made.mcp.record("sums") == own.get("/mcp-services/sums/access").json()
    told = refusal(own.post("/mcp-services/sums/call", json={"tool": "none"}))
    assert (400, "McpError", True) == (*told[:2], "none" in told[2])


def test_a_definition_becomes_a_service(own: httpx.Client) -> None:
    """Written as JSON or YAML; a call goes to the address that is given."""
    text = json.dumps(DEFINITION)
    created(own, "/mcp-services", Name="a", Definition=text)
    yaml = text.replace('"paths"', "paths")
    created(own, "/mcp-services", Name="b", Definition=yaml, Url="http://127.0.0.1:9/v2")

    for name in ("a", "b"):
        tools = own.get(f"/mcp-services/{name}/tools").json()["tools"]
        assert ["ping"] == [one["name"] for one in tools]
        called = own.post(f"/mcp-services/{name}/call", json={"tool": "ping"})
        assert called.json()["result"]["isError"]
    told = refusal(own.post("/mcp-services", json={"Name": "c", "Definition": "paths: ["}))
    assert (400, "InvalidParameter") == told[:2]


def test_a_command_becomes_a_service(own: httpx.Client) -> None:
    """In a directory of the sources; one elsewhere is refused as by the action."""
    outside = {"Name": "x", "Command": ["cat"], "Directory": "/usr"}

    told = refusal(own.post("/mcp-services", json=outside))

    assert (400, "InvalidParameter", True) == (*told[:2], "/usr" in told[2])
    shown = created(own, "/mcp-services", Name="ended", Command=["true"])
    package = shown["BackendConfiguration"]["CustomMcpConfiguration"]["PublicPackage"]
    assert "true" == json.loads(package["RawConfig"])["command"]
    assert 502 == own.get("/mcp-services/ended/tools").status_code


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"Url": "ftp://127.0.0.1/mcp"}, "http://HOST:PORT/mcp"),
        ({"Url": "http://u:p@127.0.0.1/mcp"}, "without user and password"),
        ({"Url": "http://127.0.0.1:x/mcp"}, "http://HOST:PORT/mcp"),
        ({"Url": 3}, "http://HOST:PORT/mcp"),
        ({"Command": []}, "a list of words"),
        ({"Command": "cat"}, "a list of words"),
        ({"Command": [3]}, "command is text"),
        ({"Command": ["cat"], "Env": [1]}, "env is an object"),
        ({"Definition": 3}, "Configuration"),
        ({}, "Path"),
    ],
)
def test_a_wrong_service_is_refused(own: httpx.Client, body: dict[str, Any], says: str) -> None:
    """With what to write in its place."""
    status, _, message = refusal(own.post("/mcp-services", json={"Name": "wrong", **body}))

    assert (400, True) == (status, says in message), message


def test_a_service_that_does_not_answer_is_said_so(own: httpx.Client) -> None:
    """Its backend, with 502; a service that is not there, with 404."""
    created(own, "/mcp-services", Name="dead", Url="http://127.0.0.1:9/mcp")

    told = refusal(own.get("/mcp-services/dead/tools"))

    assert (502, "ServiceUnanswered", True) == (*told[:2], "'dead'" in told[2])
    call = {"tool": "x"}
    assert 502 == own.post("/mcp-services/dead/call", json=call).status_code
    assert 404 == own.post("/mcp-services/none/call", json=call).status_code
    assert 404 == own.get("/mcp-services/none/access").status_code


@pytest.mark.parametrize("path", ["/tools", "/mcp-services", "/sessions"])
def test_a_web_page_is_refused(own: httpx.Client, path: str) -> None:
    """As by every route of the double's own."""
    page = {"Origin": "https://evil.example"}

    assert 403 == own.get(path, headers=page).status_code
    assert 403 == own.post(path, headers=page, json={}).status_code


def test_a_service_does_not_reach_the_double_s_own_routes(
    made: Emulator, own: httpx.Client
) -> None:
    """What a double asks for somebody is refused there, also if its owner asks."""
    created(own, "/mcp-services", Name="loop", Url=f"{made.url}/_emulator/tools")

    assert 502 == own.get("/mcp-services/loop/tools").status_code
    assert ["sandbox"] == [one["Name"] for one in own.get("/tools").json()["Tools"]]


def test_the_catalogue_says_what_each_answer_relied_on(made: Emulator) -> None:
    """Question, evidence and alternatives of each unknown, and the entries."""
    act(made, "CreateSession", ToolId=made.tool_id, UserSessionId="u")
    entry = made.journal.entries()[-1]

    unknowns = http.get(f"{made.url}/_emulator/unknowns/catalogue").json()["unknowns"]

    in_force = http.get(f"{made.url}/_emulator/unknowns").json()["in_force"]
    assert in_force == {one["id"]: one["in_force"] for one in unknowns}
    relied_on = sorted(one["id"] for one in unknowns if entry.id in one["entries"])
    assert relied_on == entry.unknowns != []
    for one in unknowns:
        assert all(one[name] for name in ("question", "section"))
        assert [True] == [each["built"] for each in one["alternatives"] if each["default"]]


def test_kinds_of_faults_have_schemas(own: httpx.Client) -> None:
    """By which a form is made: one of each kind is armed."""
    kinds = own.get("/faults/kinds").json()["kinds"]

    assert {"fail", "delay", "wrong_json", "kill_kernel"} <= {*kinds}
    for kind, schema in kinds.items():
        assert {"kind", "operation", "nth", "every", "times"} <= {*schema["properties"]}
        assert kind == schema["properties"]["kind"]["const"]
        assert schema["description"]
        armed = own.post("/faults", json={"kind": kind, "operation": "InvokeTool"})
        assert 201 == armed.status_code
    assert "InvokeTool" == kinds["wrong_json"]["x-only-for"]
    assert "x-only-for" not in kinds["fail"]
