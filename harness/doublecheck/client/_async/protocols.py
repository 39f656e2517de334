"""Clients of an MCP server, of an A2A application, and of a session's browser.

``wire.mcp``, ``wire.a2a`` and ``wire.data_plane`` build their requests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from doublecheck.client._async.connection import AsyncConnection, events
from doublecheck.values.agents import A2aAnswer, McpResult, McpTools
from doublecheck.values.executions import BrowserInfo, checked
from doublecheck.wire import a2a, data_plane, mcp
from doublecheck.wire.data_plane import Endpoint, Format
from doublecheck.wire.mcp import McpServer, McpSession

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncA2aClient:
    """A client of one A2A application, in the version that its card declares.

    Every method raises RefusedError, with a JSON-RPC code if there is one (-32001: the task does
    not exist), and AnswerError for an answer that is not A2A.
    """

    def __init__(self, connection: AsyncConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._agent: a2a.Agent | None = None

    # sync only: @property
    async def card(self) -> Mapping[str, Any]:
        """Return the application's card, unchanged."""
        agent = await self._known()
        return agent.card

    async def send(
        self,
        text: str,
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        check: bool = False,
    ) -> A2aAnswer:
        """Send a message and wait for the answer. The ids continue an earlier conversation.

        With ``check`` a task that failed or was rejected raises ResultError.
        """
        call = a2a.send(await self._known(), text, contextId=context_id, taskId=task_id)
        return checked(await self._connection.call(call), check)

    async def stream(
        self,
        text: str,
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        check: bool = False,
    ) -> AsyncGenerator[A2aAnswer]:
        """Send a message and yield the answers as they arrive; ``check`` as for ``send()``."""
        request = a2a.stream(await self._known(), text, contextId=context_id, taskId=task_id)
        async with (
            self._connection.streaming(request) as response,
            events(response, a2a.refuse_no_stream) as arriving,
        ):
            async for event in arriving:
                yield checked(a2a.read_event(response, event.data), check)

    async def task(self, task_id: str) -> A2aAnswer:
        """Return the current state of a task."""
        return await self._connection.call(a2a.task(await self._known(), task_id))

    async def cancel(self, task_id: str) -> A2aAnswer:
        """Cancel a task."""
        return await self._connection.call(a2a.cancel(await self._known(), task_id))

    async def _known(self) -> a2a.Agent:
        if self._agent is None:
            self._agent = await self._connection.call(a2a.card(self._connection.target, self._path))
        return self._agent

    def __repr__(self) -> str:
        return f"<AsyncA2aClient of {self._connection.target.at('a2a')}{self._path}>"


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
        """Return the server's tools from all pages. Raise AnswerError, also for an endless list."""
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


class AsyncBrowser:
    """The browser of one session. Every method raises RefusedError if the platform refuses."""

    def __init__(self, connection: AsyncConnection, endpoint: Endpoint) -> None:
        self._connection = connection
        self._endpoint = endpoint

    async def info(self) -> BrowserInfo:
        """Return the browser's properties, with the address of its DevTools protocol."""
        return await self._connection.call(data_plane.info(self._endpoint))

    async def screenshot(self, format: Format | None = None) -> bytes:  # noqa: A002 (the wire's)
        """Return a screenshot of the active page."""
        return await self._connection.call(data_plane.screenshot(self._endpoint, format))
