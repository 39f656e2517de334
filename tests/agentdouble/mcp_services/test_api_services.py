from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import Emulator
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import OpenApiBackend
from agentdouble.mcp_services.openapi import ApiKey, Bearer
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests.agentdouble import mcp_wire

TOKEN = "the-api-s-own-token"
OPERATION = {
    "operationId": "getItem",
    "summary": "Return an item.",
    "parameters": [{"name": "id", "in": "path", "required": True, "type": "integer"}],
    "responses": {"200": {"description": "the item"}},
}


def definition(host: str) -> dict[str, Any]:
    """Return a Swagger definition of an API with one operation."""
    return {
        "swagger": "2.0",
        "info": {"title": "items", "version": "1"},
        "host": host,
        "schemes": ["http"],
        "paths": {"/items/{id}": {"get": OPERATION}},
        "securityDefinitions": {"key": {"type": "apiKey", "in": "query", "name": "k"}},
    }


async def _item(request: Request) -> Response:
    if TOKEN not in (request.headers.get("authorization", "") + str(request.query_params)):
        return JSONResponse({"error": "who are you?"}, 401)
    return JSONResponse({"id": int(request.path_params["id"])})


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Host and port of the API, which requires a token."""
    listener = open_socket("127.0.0.1", 0)
    thread = ServerThread(Starlette(routes=[Route("/items/{id}", _item)]), listener)
    thread.start()
    yield address_of(listener).removeprefix("http://")
    thread.stop()


def get_item(double: Emulator, name: str) -> Any:
    """Call the tool of the definition's operation."""
    (access,) = double.mcp.record(name)["mcpServers"].values()
    key = access["headers"]["Authorization"].removeprefix("Bearer ")
    session = mcp_wire.open_session(access["httpUrl"], key)
    return mcp_wire.call(access["httpUrl"], key, session, "getItem", id=7).get("structuredContent")


@pytest.mark.parametrize("auth", [Bearer(TOKEN), ApiKey(TOKEN)])
def test_http_api_is_a_service(services: Emulator, host: str, auth: Any) -> None:
    """Its operations are tools, called with the service's credentials (SVC-02)."""
    name = type(auth).__name__
    services.mcp.create(name, OpenApiBackend.load(definition(host), auth=auth))

    assert {"id": 7} == get_item(services, name)


@pytest.mark.parametrize("auth", [None, ApiKey("k", "X-K", "cookie")])
def test_api_service_is_stored(tmp_path: Path, host: str, auth: Any) -> None:
    """With its document, so that it is not fetched again."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    options = {"base_url": f"http://{host}", "timeout_s": 3.0, "auth": auth}
    with Emulator(state=state) as double:
        service = double.mcp.create("kept", OpenApiBackend.load(definition("elsewhere"), **options))

    with Emulator(state=state) as double:
        assert (service,) == double.mcp.list()
        assert service.backend.kind == "openapi"


def test_restored_service_calls_its_api(tmp_path: Path, host: str) -> None:
    """After a restart, from the stored document."""
    file = tmp_path / "items.json"
    file.write_text(json.dumps(definition(host)))
    state = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(state=state) as double:
        double.mcp.create("items", OpenApiBackend.load(file, auth=Bearer(TOKEN)))
    file.unlink()

    with Emulator(state=state) as double:
        assert {"id": 7} == get_item(double, "items")


def test_invalid_api_services_are_refused_on_creation() -> None:
    """An invalid definition, a missing address, and a key without a place."""
    nowhere = {**definition(""), "host": ""}
    del nowhere["host"], nowhere["securityDefinitions"]

    with pytest.raises(DefinitionError, match="neither 'swagger' nor 'openapi'"):
        OpenApiBackend.load({})
    with pytest.raises(DefinitionError):
        OpenApiBackend.load(nowhere)
    with pytest.raises(DefinitionError, match="how the API key"):
        OpenApiBackend.load(nowhere, base_url="http://127.0.0.1", auth=ApiKey("k"))
