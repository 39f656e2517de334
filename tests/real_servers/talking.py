"""A conversation of the current client with a server behind a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    METHOD_NOT_FOUND,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from tests.real_servers.servers import HERE, Call

_TIMEOUT_S = 120


class User:
    """The user of the client; ``heard`` has the messages that arrived."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    async def sample(self, _context: Any, _params: Any) -> CreateMessageResult:
        self.heard.add("sampling")
        return CreateMessageResult(
            role="assistant", content=TextContent(text="Paris"), model="a-model"
        )

    async def fill_in(self, _context: Any, params: Any) -> ElicitResult:
        self.heard.add("elicitation")
        fields = params.requested_schema["properties"]
        text = {name for name, schema in fields.items() if schema.get("type") == "string"}
        plain = {name for name in text if not fields[name].keys() & {"enum", "format", "oneOf"}}
        return ElicitResult(action="accept", content=dict.fromkeys(plain, "ann"))

    async def roots(self, _context: Any) -> ListRootsResult:
        self.heard.add("roots")
        return ListRootsResult(roots=[Root(uri=HERE.as_uri())])

    async def log(self, _line: Any) -> None:
        self.heard.add("logging")

    async def progress(self, _now: float, _total: float | None, _message: str | None) -> None:
        self.heard.add("progress")


def talk(url: str, key: str, mode: str, calls: Sequence[Call]) -> tuple[str, list[str]]:
    """List and call; return the version of the protocol, and what was run. Raises AssertionError."""
    return anyio.run(_talk, url, key, mode, calls)


async def _talk(url: str, key: str, mode: str, calls: Sequence[Call]) -> tuple[str, list[str]]:
    user = User()
    headers = {"Authorization": f"Bearer {key}"}
    with anyio.fail_after(_TIMEOUT_S):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_S) as http,
            Client(
                streamable_http_client(url, http_client=http),
                mode=mode,
                sampling_callback=user.sample,
                elicitation_callback=user.fill_in,
                list_roots_callback=user.roots,
                logging_callback=user.log,
            ) as client,
        ):
            ran = await _list(client)
            for call in calls:
                await _call(client, user, call)
                ran.append(call.name)
            return str(client.protocol_version), ran


async def _list(client: Client) -> list[str]:
    facts = [f"{len((await client.list_tools()).tools)} tools"]
    for kind in ("resources", "prompts"):
        try:
            listed = await getattr(client, f"list_{kind}")()
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            continue
        facts.append(f"{len(getattr(listed, kind))} {kind}")
    return facts


async def _call(client: Client, user: User, call: Call) -> None:
    user.heard -= {"progress", "sampling", "elicitation"}
    result = await client.call_tool(call.tool, call.arguments, progress_callback=user.progress)
    text = " ".join(item.text for item in result.content if isinstance(item, TextContent))
    assert not result.is_error, f"{call.tool}: {text[:300]}"
    assert call.says in text, f"{call.tool} said {text[:300]!r}, without {call.says!r}"
    assert call.hears in (None, *user.heard), f"{call.tool}: no {call.hears} reached the client"
