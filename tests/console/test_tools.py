"""The page of tools and MCP services: create, edit, call and delete them."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import mcp_types as types
import pytest
from mcp.server import Server
from starlette.applications import Starlette
from starlette.routing import Route

from agentdouble import Emulator
from agentdouble.core import running_doubles
from agentdouble.mcp_hosting import McpEndpoint
from tests.agentdouble.calling import act
from tests.agentdouble.mcp_services.stdio.conftest import HERE as STDIO
from tests.console.driving import DEFINITION, PATIENCE_MS, console_page, create_api, go
from tests.console.driving import create_service as create
from tests.ports import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once

HERE = str(Path(__file__).parent)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="acted = 1"><script>acted = 2</script></svg>'
COMMON = ("Name", "Path", "CreatedAt", "UpdatedAt", "MCPServiceId", "ToolId", "Tools")


def hostile(elsewhere: str) -> str:
    """Return HTML that acts or sends requests wherever a page interprets it."""
    return (
        f'<img src="{elsewhere}/img" onerror="acted = 3"><script>acted = 4</script>'
        f'<a href="javascript:acted = 5">{elsewhere}/link</a><iframe src="{elsewhere}/f"></iframe>'
    )


def hostile_server(html: str) -> Server[Any]:
    """Return a server with hostile names, descriptions, schemas and results."""
    schema = {
        "type": "object",
        "description": html,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": html, "pattern": "(a+)+$"},
            "days": {"type": "integer", "minimum": 1, "default": 3},
            "way": {"enum": ["walk", html], "default": html},
            "node": {"$ref": "#/$defs/Node"},
        },
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    names = ("weather", html)
    tools = [
        types.Tool(name=name, description=html, title=html, input_schema=schema) for name in names
    ]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = dict(params.arguments or {})
        if arguments["city"] == "Nowhere":
            failed = types.TextContent(text=f"no such city {html}")
            return types.CallToolResult(content=[failed], is_error=True)
        svg = base64.b64encode(SVG.encode()).decode()
        return types.CallToolResult(
            content=[
                types.TextContent(text=html),
                types.ImageContent(data=PIXEL, mime_type="image/png"),
                types.ImageContent(data=svg, mime_type="image/svg+xml"),
                types.ImageContent(data=PIXEL, mime_type="text/html"),
                types.ResourceLink(name=html, uri="javascript:acted=6"),
            ],
            structured_content={"asked": arguments},
        )

    return Server(html, on_list_tools=list_tools, on_call_tool=call)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[socket.socket]:
    """A listener that must receive no connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture(scope="module")
def html(elsewhere: socket.socket) -> str:
    return hostile(f"http://127.0.0.1:{elsewhere.getsockname()[1]}")


@pytest.fixture(scope="module")
def backend(html: str) -> Iterator[str]:
    """The URL of a real MCP server."""
    endpoint = McpEndpoint(lambda: hostile_server(html))
    app = Starlette(routes=[Route("/mcp", endpoint)], lifespan=lambda _app: endpoint.running())
    with served(app) as url:
        yield f"{url}/mcp"


@pytest.fixture
def command(
    double: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., str]]:
    """Run ``agentdouble`` against the double and return its output."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(HERE)

    def run(*words: str) -> str:
        from agentdouble.cli.app import app

        with contextlib.redirect_stdout(io.StringIO()) as printed:
            app(words, standalone_mode=False)
        return printed.getvalue()

    with running_doubles.announced(double.connection):
        yield run


def comparable(service: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are equal in equivalent resources, and the names of keys."""
    compared = {name: value for name, value in service.items() if name not in COMMON}
    for part in compared.get("InboundAuthorizerConfiguration", {}).get("Authorizer", {}).values():
        part["ApiKeys"] = [key["Name"] for key in part["ApiKeys"]]
    command = compared.get("BackendConfiguration", {}).get("CustomMcpConfiguration")
    if command:
        package = command["PublicPackage"]
        package["RawConfig"] = json.loads(package["RawConfig"])
    return compared


def stored(double: Emulator, name: str) -> dict[str, Any]:
    """Return the platform's description of a service."""
    services = act(double, "ListMCPServices")["MCPServices"]
    (id_,) = (service["MCPServiceId"] for service in services if service["Name"] == name)
    service: dict[str, Any] = act(double, "GetMCPService", MCPServiceId=id_)["MCPService"]
    return service


def text(page: Page, name: str, value: str) -> None:
    page.get_by_role("textbox", name=name, exact=True).fill(value)


def create_service(page: Page, name: str, source: str) -> None:
    page.get_by_role("link", name="New service").press("Enter")
    text(page, "Name", name)
    page.get_by_role("radio", name=source).check()


def test_a_tool_is_created_edited_and_deleted(
    opened: Page, double: Emulator, command: Callable[..., str]
) -> None:
    """The command creates the same tool, and the page shows it at once."""
    html = "<img src=x onerror='acted = 7'>"
    opened.get_by_role("link", name="Tools").press("Enter")
    opened.get_by_role("link", name="New tool", exact=True).press("Enter")
    text(opened, "Name", "by page")
    text(opened, "Description", html)
    opened.get_by_role("button", name="Add to Environment variables").press("Enter")
    text(opened, "Key", "LEVEL")
    text(opened, "Value", "debug")
    opened.get_by_role("textbox", name="Value", exact=True).press("Shift+Enter")
    opened.get_by_role("heading", name="by page").wait_for()
    id_ = opened.url.rpartition("/")[2]
    opened.get_by_text(f"export PLATFORM_TOOL_ID={id_}").wait_for()

    body = {"Name": html, "Description": html, "ToolType": "CodeEnv"}
    envs = '[{"Key": "LEVEL", "Value": "debug"}]'
    fields = (f"{name}={value}" for name, value in body.items())
    tool_id = json.loads(command("call", "CreateTool", *fields, f"Envs={envs}", "--json"))["ToolId"]

    by_page, by_command = (act(double, "GetTool", ToolId=tool_id) for tool_id in (id_, tool_id))
    assert comparable(by_command) == comparable(by_page)
    opened.get_by_role("link", name=html).click()
    opened.get_by_role("heading", name=html).wait_for()
    opened.get_by_role("button", name="Change").click()
    dialog = opened.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Description").fill("another")
    dialog.get_by_role("button", name="Change").click()
    opened.get_by_text("another", exact=True).wait_for()
    assert by_command["Envs"] == act(double, "GetTool", ToolId=tool_id)["Envs"]
    opened.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    opened.get_by_text("Choose a tool").wait_for()
    assert {"sandbox", "by page"} == {tool["Name"] for tool in act(double, "ListTools")["Tools"]}


def test_page_and_command_create_the_same_services(
    opened: Page, double: Emulator, command: Callable[..., str], backend: str, tmp_path: Path
) -> None:
    """The sources are a URL with a token, a dropped definition and a command."""
    go(opened, "/tools")
    create_service(opened, "address", "An address")
    text(opened, "Address of the MCP server", backend)
    text(opened, "Token", "t0ken")
    opened.get_by_role("button", name="Create").click()
    opened.get_by_role("heading", name="address").wait_for()
    create_service(opened, "", "A definition")
    drop(opened, "pets.json", json.dumps(DEFINITION))
    opened.get_by_text("Read pets.json.").wait_for()
    text(opened, "User and password", "me:päss")
    opened.get_by_role("button", name="Create").click()
    opened.get_by_text("1 tool").wait_for()
    opened.get_by_text("Warning: The API at").wait_for()
    create_service(opened, "program", "A command")
    text(opened, "Command", f'{sys.executable} program.py \'a "word"\' "a b"')
    text(opened, "Working directory", str(STDIO))
    opened.get_by_role("button", name="Add to Environment variables").click()
    variable = opened.get_by_role("group", name="Environment variables 1")
    variable.get_by_role("textbox", name="Name").fill("LEVEL")
    variable.get_by_role("textbox", name="Value").fill("debug")
    opened.get_by_role("button", name="Create").click()
    opened.get_by_role("heading", name="program").wait_for()

    (definition := tmp_path / "pets.json").write_text(json.dumps(DEFINITION))
    (token := tmp_path / "token").write_text("t0ken")
    program = [sys.executable, "program.py", 'a "word"', "a b"]
    command("mcp", "create", "address2", backend, "--bearer", f"file:{token}")
    (login := tmp_path / "login").write_text("me:päss")
    command("mcp", "create", "pets2", str(definition), "--basic", f"file:{login}")
    options = ("--env", "LEVEL=debug", "--directory", str(STDIO))
    command("mcp", "create", "program2", *options, "--", *program)

    for name in ("address", "pets", "program"):
        by_page, by_command = stored(double, name), stored(double, f"{name}2")
        assert comparable(by_command) == comparable(by_page)
    opened.get_by_role("link", name="program2").wait_for()
    listed = json.loads(command("mcp", "list", "--json"))["MCPServices"]
    assert ["address", "pets", "program"] == [service["Name"] for service in listed][:3]


def drop(page: Page, name: str, content: str) -> None:
    """Drop a file on the definition field."""
    data = page.evaluate_handle(
        "([name, text]) => { const data = new DataTransfer();"
        " data.items.add(new File([text], name)); return data; }",
        [name, content],
    )
    place = page.get_by_role("textbox", name="Definition", exact=True)
    place.dispatch_event("drop", {"dataTransfer": data})


def test_a_tool_is_called_and_its_texts_cannot_act(
    opened: Page, double: Emulator, backend: str, html: str, elsewhere: socket.socket
) -> None:
    """The schema becomes a form; the result has text, images and JSON, or an error."""
    go(opened, "/tools/new/service")
    text(opened, "Name", "weather")
    text(opened, "Address of the MCP server", backend)
    opened.get_by_role("textbox", name="Address of the MCP server").press("Shift+Enter")
    opened.get_by_text("2 tools").wait_for()
    tool = opened.locator("details").first
    tool.locator("summary").press("Enter")
    result = tool.get_by_role("group", name="Result")
    city = tool.get_by_role("textbox", name="city")

    city.press("Shift+Enter")
    assert "City needs a value" in tool.get_by_role("alert").inner_text()
    city.fill("Bern")
    city.press("Shift+Enter")

    result.get_by_role("group", name="Structured content").wait_for()
    arguments = json.loads(result.get_by_role("group", name="Structured content").inner_text())
    assert {"asked": {"city": "Bern", "days": 3, "way": html}} == arguments
    assert html == result.get_by_role("group", name="Text").inner_text()
    result.get_by_text("text/html, ").wait_for()
    imgs = result.get_by_role("img").all()
    assert [True, True] == [img.evaluate("(img) => img.decode().then(() => true)") for img in imgs]
    city.fill("Nowhere")
    tool.get_by_role("button", name="As JSON", exact=True).click()
    tool.get_by_role("button", name="Call").click()
    result.get_by_text("no such city").wait_for()
    result.get_by_text("error", exact=True).wait_for()
    opened.locator("summary").last.click()
    opened.locator("details").last.get_by_role("textbox", name="city").wait_for()
    acted = opened.evaluate(
        "() => [window.acted, document.querySelectorAll('iframe, script').length]"
    )
    assert [None, 1] == acted
    with pytest.raises(BlockingIOError):  # nobody has come
        elsewhere.accept()


def test_keys_are_shown_copied_created_and_revoked(browser: Browser, double: Emulator) -> None:
    """Requests with a revoked key are refused."""
    double.reset(keep=())
    with console_page(browser, double, refused=(401,)) as opened:
        opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
        go(opened, f"/tools/service/{create_api(double, 'one')}")
        opened.get_by_text("1 tool").wait_for()
        access = opened.get_by_role("region", name="Access").get_by_role(
            "group", name="Access record"
        )
        record = double.mcp.record("one")
        server = record["mcpServers"]["one"]

        assert "Bearer ***" in access.inner_text()
        opened.get_by_role("button", name="Show the key").click()
        opened.get_by_role("button", name="Hide the key").wait_for()
        assert record == json.loads(access.inner_text())
        opened.get_by_role("button", name="Hide the key").click()
        opened.get_by_label("For", exact=True).select_option("VS Code: .vscode/mcp.json")
        assert "Bearer ***" in access.inner_text()
        text(opened, "Name of a new key", "second")
        opened.get_by_role("button", name="New key").press("Enter")
        opened.get_by_role("button", name="Revoke second").wait_for()
        opened.get_by_role("button", name="Copy with the key").click()
        opened.get_by_role("status").get_by_text("Copied").wait_for()

        copied = json.loads(opened.evaluate("() => navigator.clipboard.readText()"))["servers"][
            "one"
        ]
        assert ("http", server["httpUrl"], True) == (
            copied["type"],
            copied["url"],
            copied["headers"] != server["headers"],
        )
        opened.get_by_role("button", name="Revoke default").click()
        opened.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        opened.get_by_text("You cannot revoke the last key").wait_for()
        request = {
            "headers": {"Accept": "application/json, text/event-stream"},
            "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        }
        codes = [
            httpx.post(
                server["httpUrl"], **{**request, "headers": {**request["headers"], **headers}}
            ).status_code
            for headers in (server["headers"], copied["headers"])
        ]
        assert (401, False) == (codes[0], codes[1] == 401)


def test_errors_show_their_place(browser: Browser, double: Emulator) -> None:
    """They are in a definition, in a URL or in a dead service, which shows its log."""
    double.reset(keep=())
    absent = {"CustomConfiguration": {"Domain": "127.0.0.1", "Port": 9, "ProtocolType": "http"}}
    dead = create(double, "dead", ProtocolType="MCP", BackendConfiguration=absent)
    package = {"McpType": "stdio", "RawConfig": json.dumps({"command": "true"})}
    ended = create(
        double,
        "ended",
        ProtocolType="MCP",
        BackendType="CustomMcp",
        BackendConfiguration={"CustomMcpConfiguration": {"PublicPackage": package}},
    )
    assert double.console_url is not None
    context = browser.new_context()  # Chromium's own console has each refusal of a request
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(double.console_url)
    page.get_by_text("Connected").wait_for()
    go(page, "/tools")
    create_service(page, "broken", "A definition")
    alert = page.get_by_role("region", name="Chosen").get_by_role("alert")

    page.get_by_role("button", name="Create").click()
    alert.get_by_text("A definition is required").wait_for()
    wrong = json.dumps(DEFINITION).replace('"query"', '"nowhere"')
    text(page, "Definition", wrong)
    page.get_by_role("button", name="Create").click()
    alert.get_by_text("#/paths/~1pets/get/parameters/0").wait_for()
    text(page, "Definition", "openapi: 3.0.3\ninfo: [x\npaths: {}")
    page.get_by_role("button", name="Create").click()
    alert.get_by_text("in line 3").wait_for()
    assert "paths: {}" == page.evaluate("() => getSelection().toString()")
    text(page, "Address of the API", "127.0.0.1:9000")
    page.get_by_role("button", name="Create").click()
    alert.get_by_text(
        "Address of the API must be an address such as http://HOST:PORT/v1,"
    ).wait_for()
    page.get_by_role("radio", name="An address").check()
    text(page, "Address of the MCP server", "ftp://127.0.0.1")
    page.get_by_role("button", name="Create").click()
    alert.get_by_text("Address of the MCP server must be").wait_for()
    alert.get_by_text("http://HOST:PORT/mcp").wait_for()
    go(page, f"/tools/service/{dead}")
    page.get_by_text("'dead' cannot be reached").wait_for()
    go(page, f"/tools/service/{ended}")
    page.get_by_role("region", name="Tools").get_by_text("'ended'").wait_for()
    page.locator("summary", has_text="Log of its processes").click()
    page.get_by_role("group", name="Log").get_by_text(
        "its process ended with code 0"
    ).first.wait_for()
    go(page, "/tools/service/none")
    page.get_by_text("There is no service none.").wait_for()
    context.close()


STRANGE: list[Any] = [
    *(None, True, 5, "x", [], {}, {"type": 5}, {"$ref": "#"}, {"$ref": "http://127.0.0.1:9/x"}),
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"anyOf": [{"$ref": "#"}]},
    {"type": "object", "required": 5, "properties": {"a": 5, "__proto__": {"type": "constructor"}}},
    {"properties": {"a": {"type": ["string", "null", "x"], "description": {}, "default": [[]]}}},
    {"properties": {f"p{n}": {"properties": {"q": {"enum": [n] * 300}}} for n in range(149)}},
    {"type": "array", "items": {"$ref": "#"}},
]
SHOW = """async ({ schema, values }) => {
  const { schemaForm } = await import('/static/lib/schema_form.js');
  window.form = schemaForm(schema, { values });
  document.getElementById('page').replaceChildren(form.element);
  return form.read();
}"""


def test_forms_for_arbitrary_schemas(opened: Page) -> None:
    """They return their values, accept strange schemas and mark invalid fields."""
    for strange in STRANGE:
        opened.evaluate(SHOW, {"schema": strange})  # no exception
    place = {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}}
    properties = {
        "way": {"enum": ["walk", None]},
        "either": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/P"}}]
        },
        "maybe": {"$ref": "#/$defs/P"},
        "left": {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
        "free": {},
        "blank": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "known": {"type": "boolean", "default": True},
    }
    schema = {"type": "object", "properties": properties, "$defs": {"P": place}}
    values = {
        "way": "walk",
        "either": [{"lat": 1.5}],
        "left": {"a": {}},
        "free": {"x": None},
        "known": False,
        "blank": "",
        "list": [],
        "more": 1,
    }

    assert values == opened.evaluate(SHOW, {"schema": schema, "values": values})
    opened.get_by_role("group", name="either 1").get_by_role("textbox", name="lat").fill("north")
    wrong = opened.evaluate("() => { try { form.read() } catch (error) { return error.message } }")
    assert "either.1.lat is not a number." == wrong
    opened.get_by_role("textbox", name="lat", description="Lat is not a number.").wait_for()
    opened.get_by_role("button", name="Remove either 1").click()
    assert {**values, "either": []} == opened.evaluate("() => form.read()")
