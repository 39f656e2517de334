"""A client of an MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.values.agents import McpResult, McpTools
from doublecheck.wire import mcp
from doublecheck.wire.mcp import McpServer, McpSession

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncMcpClient:
    """A client of one MCP server, in a session that the first request opens.

    ``async with`` ends the session. Every method raises RefusedError, with a JSON-RPC code if there
    is one, and AnswerError for an answer that is not MCP.
    """

    def __init__(self, connection: AsyncConnection, server: McpServer) -> None:
        self._connection = connection
        self._server = server
        self._session: McpSession | None = None

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._server.url

    async def tools(self) -> McpTools:
        """Return the server's tools from all pages. Raise AnswerError, even for an endless list."""
        pages = await self._pages()
        return McpTools(tool for page in pages for tool in mcp.tools_of(page))

    async def _pages(self) -> list[dict[str, Any]]:
        """Return the pages of the list of tools. Raise AnswerError for an endless list."""
        pages, followed = [await self.ask("tools/list")], list[str]()
        while (cursor := mcp.next_cursor(pages[-1], followed)) is not None:
            pages.append(await self.ask("tools/list", cursor=cursor))
        return pages

    async def call(self, tool: str, /, **arguments: Any) -> McpResult:
        """Call a tool. A failure is also a result, with ``is_error`` set.

        ``result.raise_for_error()`` raises it.
        """
        session = await self._opened()
        return await self._connection.call(mcp.call_tool(self._server, session, tool, arguments))

    async def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Call any method of the protocol and return its result."""
        session = await self._opened()
        return await self._connection.call(mcp.ask(self._server, session, method, params))

    def another(self) -> Self:
        """Return a client of the same server, with a session of its own."""
        return type(self)(self._connection, self._server)

    async def aclose(self) -> None:
        """End the session, if there is one."""
        session, self._session = self._session, None
        if session is not None and session.id is not None:
            await self._connection.call(mcp.end(self._server, session))

    async def _opened(self) -> McpSession:
        if self._session is None:
            session = await self._connection.call(mcp.initialize(self._server))
            await self._connection.call(mcp.initialized(self._server, session))
            self._session = session
        return self._session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncMcpClient of {self.url}>"
