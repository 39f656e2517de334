"""The largest public API definitions as services, listed by the current client."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentdouble import Emulator
from agentdouble.mcp_services import OpenApiBackend, openapi
from tests.agentdouble.mcp_services.openapi.test_real_definitions import PACKAGES, _fetched
from tests.mcp_official.suite import find_node
from tests.real_servers.running import KEY, Result, tried
from tests.real_servers.servers import AUTO, LEGACY

LARGEST = ("github", "kubernetes")


def results(double: Emulator, only: list[str]) -> Iterator[Result]:
    """List the tools of each, in both eras."""
    for name in LARGEST:
        what = f"definition: {name}"
        if only and what not in only:
            continue
        yield tried(what, lambda: _listed(double, name))  # noqa: B023


def _listed(double: Emulator, name: str) -> str:
    package, member, _, operations = PACKAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        file = _fetched(find_node().npm, Path(folder) / name, package, member)
        definition = openapi.load(file, validate=False)
    backend = OpenApiBackend.load(definition, base_url="http://127.0.0.1:9/")
    double.mcp.create(name, backend, key=KEY)
    counts = {mode: anyio.run(_tools, f"{double.url}/mcp/{name}", mode) for mode in (AUTO, LEGACY)}
    assert {len(names) for names in counts.values()} == {operations}, counts
    return f"{operations} tools, client {AUTO} and {LEGACY}"


async def _tools(url: str, mode: str) -> set[str]:
    names: set[str] = set()
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        page = await client.list_tools()
        names.update(tool.name for tool in page.tools)
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            names.update(tool.name for tool in page.tools)
    return names
