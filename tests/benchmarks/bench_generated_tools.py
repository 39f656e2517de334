"""How fast definitions become tools, and how fast a thousand tools are listed.

Run: python -m pytest tests/benchmarks/bench_generated_tools.py -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

from agentdouble import Emulator
from agentdouble.mcp_services import openapi
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.openapi.test_real_definitions import files

__all__ = ["files"]

LISTED_MS = 50  # the most that a thousand tools may take


def thousand() -> dict[str, Any]:
    """Return a definition of a thousand operations, each with parameters and a body."""
    pet = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string", "description": "What it is called."},
            "tags": {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}},
            "parent": {"$ref": "#/components/schemas/Pet"},
        },
    }
    tag = {"type": "object", "properties": {"name": {"type": "string", "nullable": True}}}
    operation = {
        "summary": "Change a pet",
        "description": "Changes a pet of a shop; what is not given stays as it is.",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}},
            {"name": "fields", "in": "query", "schema": {"type": "array", "items": {}}},
        ],
        "requestBody": {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
        },
        "responses": {"200": {"description": "changed"}},
    }
    paths = {
        f"/shops/{n}/pets/{{id}}": {"post": {**operation, "operationId": f"changePet{n}"}}
        for n in range(1000)
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "shops", "version": "1"},
        "paths": paths,
        "components": {"schemas": {"Pet": pet, "Tag": tag}},
    }


@pytest.fixture(scope="module")
def endpoint() -> Iterator[tuple[str, str]]:
    """The address of a service of a thousand tools, and its key."""
    definition = openapi.load(thousand())
    with Emulator() as double:
        service = double.mcp.create("shops", openapi.server(definition, base_url=double.url))
        yield f"{double.url}/mcp/shops", service.key_values[0]


@pytest.mark.benchmark(group="a thousand generated tools are listed")
def bench_list_over_http(benchmark: Any, endpoint: tuple[str, str]) -> None:
    url, key = endpoint
    session = mcp_wire.open_session(url, key)

    def ask() -> list[str]:
        names, page = [], {"nextCursor": None}
        while "nextCursor" in page:
            params = {"cursor": page["nextCursor"]} if page["nextCursor"] else {}
            asked = mcp_wire.message("tools/list", params)
            page = mcp_wire.result(mcp_wire.post(url, asked, key, session))
            names += [tool["name"] for tool in page["tools"]]
        return names

    assert "changePet999" == benchmark(ask)[-1]
    assert benchmark.stats["median"] * 1000 < LISTED_MS


@pytest.mark.benchmark(group="a thousand generated tools are listed")
def bench_list_with_the_official_client(benchmark: Any) -> None:
    server = openapi.server(openapi.load(thousand()), base_url="http://api.example")

    async def ask() -> None:
        async with mcp.Client(server) as client:
            page = await client.list_tools()
            count = len(page.tools)
            while page.next_cursor is not None:
                page = await client.list_tools(cursor=page.next_cursor)
                count += len(page.tools)
            assert 1000 == count

    benchmark.pedantic(lambda: asyncio.run(ask()), rounds=3)


@pytest.mark.benchmark(group="a definition is read")
@pytest.mark.parametrize("name", ["github", "kubernetes", "rclone"])
def bench_load(benchmark: Any, files: dict[str, Path], name: str) -> None:
    benchmark.pedantic(lambda: openapi.load(files[name]), rounds=1)
