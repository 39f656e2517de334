from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble import Emulator
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import OpenApiBackend, openapi
from agentdouble.mcp_services.openapi import ApiKey, Bearer
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.openapi.calling import openapi_3
from tests.ports import served

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
    with served(Starlette(routes=[Route("/items/{id}", _item)])) as url:
        yield url.removeprefix("http://")


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


KEY = "service-key"
LARGE = [f"op{number}" for number in range(30)]


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    """The address of a service of thirty operations, 1.8 MB in all."""
    described = {"description": "x" * 60_000, "responses": {"200": {"description": "fine"}}}
    paths = {
        f"/{number}": {"post": {**described, "operationId": f"op{number}"}} for number in range(30)
    }
    definition = openapi.load({**openapi_3(), "paths": paths})
    with Emulator() as double:
        double.mcp.create("large", openapi.server(definition, base_url=double.url), key=KEY)
        yield f"{double.url}/mcp/large"


def page(url: str, session: str, cursor: str | None) -> dict[str, Any]:
    """Return the page at a cursor, within the size limit of clients."""
    message = mcp_wire.message("tools/list", {} if cursor is None else {"cursor": cursor})
    answer = mcp_wire.post(url, message, KEY, session)
    assert len(answer.content) < 520 * 1024
    return mcp_wire.result(answer)


def every_page(url: str, sessions: Iterable[str]) -> list[dict[str, Any]]:
    """Follow the cursors, each page in the next of these sessions."""
    in_turn = cycle(sessions)
    pages = [page(url, next(in_turn), None)]
    while "nextCursor" in pages[-1]:
        pages.append(page(url, next(in_turn), pages[-1]["nextCursor"]))
    return pages


def test_large_list_is_paginated(large: str) -> None:
    """All tools, in the definition's order; a cursor is valid in every session."""
    first, other = (mcp_wire.open_session(large, KEY) for _ in range(2))
    pages = every_page(large, [first])

    assert [8, 8, 8, 6] == [len(listing["tools"]) for listing in pages]
    assert LARGE == [tool["name"] for listing in pages for tool in listing["tools"]]
    assert pages == every_page(large, [first, other])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_official_client_gets_all_tools_of_a_large_list(large: str, mode: Any) -> None:
    """In both eras, with its default event size limit."""

    async def ask() -> list[str]:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            mcp.Client(streamable_http_client(large, http_client=http), mode=mode) as client,
        ):
            page = await client.list_tools()
            names = [tool.name for tool in page.tools]
            while page.next_cursor is not None:
                page = await client.list_tools(cursor=page.next_cursor)
                names += [tool.name for tool in page.tools]
            return names

    assert LARGE == anyio.run(ask)
