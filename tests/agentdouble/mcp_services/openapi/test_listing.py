"""The list of tools on the wire, the first time and later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

import anyio
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from agentdouble import Emulator
from agentdouble.mcp_services import openapi
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.openapi.calling import openapi_3

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
