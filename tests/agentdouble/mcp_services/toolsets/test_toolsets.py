from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from agentdouble import Emulator
from agentdouble.errors import (
    ServiceNameError,
    ServiceNameTakenError,
    UnknownServiceError,
    UnknownToolsetError,
)
from agentdouble.mcp_hosting import Endpoint, failure
from agentdouble.mcp_services import McpBackend, ServerBackend
from agentdouble.mcp_services.toolsets import EXPOSES, Exposes, kept_lists, listing
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, background
from tests.agentdouble.mcp_services.backend import TOOLS, Backend

pytestmark = [pytest.mark.libraries, pytest.mark.smoke]

T = TypeVar("T")

FORM: Any = {"type": "object", "properties": {"name": {"type": "string"}}}
KEY = "the-toolset-s-key"
OBJECT = {"type": "object"}
UNREACHABLE = (
    "The MCP service 'dead' does not do its part: "
    "The backend of the MCP service 'dead' cannot be reached."
)


@pytest.fixture(scope="module")
def toolsets(services: Emulator) -> Emulator:
    """A double with a service in process and one that is dead."""
    services.mcp.create("words", words())
    services.mcp.create("dead", "http://127.0.0.1:9/mcp")
    return services


def words() -> MCPServer:
    made = MCPServer("words", log_level="WARNING")
    long = "t" * 127

    def upper(text: str) -> str:
        """Write a text in capitals."""
        return text.upper()

    def count_letters(text: str) -> int:
        """Tell how long a text is."""
        return len(text)

    def fail() -> None:
        raise RuntimeError("not said")

    made.add_tool(upper)
    made.add_tool(count_letters)
    made.add_tool(fail)
    made.add_tool(upper, name=long + "a")
    made.add_tool(count_letters, name=long + "b")
    return made


def open_(double: Emulator, name: str) -> tuple[str, str]:
    url = f"{double.url}/mcp/{name}"
    return url, mcp_wire.open_session(url, KEY)


def make(double: Emulator, name: str, *members: str, **options: Any) -> tuple[str, str]:
    """Make a toolset and open a session of it."""
    double.mcp_toolsets.create(name, members, key=KEY, **options)
    return open_(double, name)


def tools(url: str, session: str) -> dict[str, Any]:
    return mcp_wire.result(mcp_wire.post(url, mcp_wire.message("tools/list"), KEY, session))


def names(url: str, session: str) -> list[str]:
    return [tool["name"] for tool in tools(url, session)["tools"]]


def texts(result: dict[str, Any]) -> tuple[bool, list[str]]:
    return result["isError"], [content["text"] for content in result["content"]]


def test_the_tools_of_several_services_are_one_list(toolsets: Emulator, backend: Backend) -> None:
    """Each under its service's name; what is said of it stays."""
    toolsets.mcp.create("passing", f"{backend.url}/mcp")
    url, session = make(toolsets, "merged", "words", "passing")

    found = tools(url, session)

    listed = [tool["name"] for tool in found["tools"]]
    assert ["words__upper", "words__count_letters", "words__fail"] == listed[:3]
    assert [f"passing__{tool}" for tool in TOOLS] == listed[5:]
    assert "Write a text in capitals." == found["tools"][0]["description"]
    assert ["text"] == found["tools"][0]["inputSchema"]["required"]
    assert "_meta" not in found


def test_a_call_reaches_the_service_of_the_tool(toolsets: Emulator, backend: Backend) -> None:
    """In both eras; its result comes back as it is, and an error as well."""
    toolsets.mcp.create("echoing", f"{backend.url}/mcp")
    url, session = make(toolsets, "routed", "words", "echoing")

    upper = mcp_wire.call(url, KEY, session, "words__upper", text="abc")
    modern = mcp_wire.call_modern(url, KEY, "words__count_letters", text="abc")
    echoed = mcp_wire.call(url, KEY, session, "echoing__echo", a=[1])

    assert {"result": "ABC"} == upper["structuredContent"]
    assert {"result": 3} == modern["structuredContent"]
    assert {"arguments": {"a": [1]}} == echoed["structuredContent"]
    assert (True, ["Error executing tool fail"]) == texts(
        mcp_wire.call(url, KEY, session, "words__fail")
    )


def test_tools_that_are_not_there_are_tool_errors(toolsets: Emulator) -> None:
    """Of no service, of a service that is not in the toolset, and of one that lacks it."""
    url, session = make(toolsets, "lacking", "words")

    for name in ("upper", "other__upper", "dead__echo"):
        assert (True, [f"There is no tool {name!r}."]) == texts(
            mcp_wire.call(url, KEY, session, name)
        )
    assert (True, ["Unknown tool: none"]) == texts(mcp_wire.call(url, KEY, session, "words__none"))


def test_a_long_name_is_called_by_what_is_listed(toolsets: Emulator) -> None:
    """Shortened names lead to the tool that was meant."""
    url, session = make(toolsets, "long", "words")
    one, other = [name for name in names(url, session) if "ttt" in name]

    assert {"result": "AB"} == mcp_wire.call(url, KEY, session, one, text="ab")["structuredContent"]
    assert {"result": 2} == mcp_wire.call(url, KEY, session, other, text="ab")["structuredContent"]


def test_a_dead_service_takes_no_other_along(toolsets: Emulator) -> None:
    """The list lacks its tools and says why; a call of one is an error, of another works."""
    url, session = make(toolsets, "partly", "dead", "words")

    found = tools(url, session)

    assert {"agentdouble/missing": {"dead": UNREACHABLE}} == found["_meta"]
    assert 5 == len(found["tools"])
    assert (True, [UNREACHABLE]) == texts(mcp_wire.call(url, KEY, session, "dead__echo"))
    assert (False, ["A"]) == texts(mcp_wire.call(url, KEY, session, "words__upper", text="a"))


@pytest.mark.parametrize("kind", ["page", "garbage", "fault"])
def test_a_service_that_speaks_no_mcp_is_missing(
    toolsets: Emulator, backend: Backend, kind: str
) -> None:
    """Its address is in no message."""
    toolsets.mcp.create(kind, f"{backend.url}/{kind}")
    url, session = make(toolsets, f"with-{kind}", kind, "words")

    found = tools(url, session)

    assert [kind] == list(found["_meta"]["agentdouble/missing"])
    assert backend.url.removeprefix("http://") not in str(found)
    assert 5 == len(found["tools"])


def test_a_service_that_never_answers_is_missing_in_time(
    toolsets: Emulator, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for as long as a list may take; then it is let go of."""
    monkeypatch.setattr(listing, "LIST_TIMEOUT_S", 1.0)  # it is asked within that time
    toolsets.mcp.create("mute", f"{backend.url}/mute")
    url, session = make(toolsets, "waiting", "mute", "words")

    missing = tools(url, session)["_meta"]["agentdouble/missing"]["mute"]

    assert missing.endswith("it does not say in 1 s which tools it has")
    assert backend.left.wait(TIMEOUT_S)


def test_a_call_ends_when_its_caller_leaves(toolsets: Emulator, backend: Backend) -> None:
    """As it does without a toolset in between."""
    toolsets.mcp.create("hanging", f"{backend.url}/mcp")
    url, _ = make(toolsets, "left", "hanging")

    with mcp_wire.waiting(
        url, mcp_wire.modern("hanging__hang", {}), mcp_wire.modern_headers(KEY, "hanging__hang")
    ):
        assert backend.came.wait(TIMEOUT_S)

    assert backend.left.wait(TIMEOUT_S)


def test_progress_reaches_the_caller(toolsets: Emulator, backend: Backend) -> None:
    """While the tool still runs."""
    toolsets.mcp.create("reporting", f"{backend.url}/mcp")
    url, session = make(toolsets, "progress", "reporting")
    asked = mcp_wire.message(
        "tools/call",
        {"name": "reporting__progress", "arguments": {}, "_meta": {"progressToken": "p"}},
    )

    with mcp_wire.streamed(url, KEY, session, asked) as (_, messages):
        first = next(messages)
        backend.go_on.set()
        last = next(messages)

    assert {"progressToken": "p", "progress": 1, "total": 2, "message": "half"} == first["params"]
    assert {"arguments": {}} == last["result"]["structuredContent"]


def test_headers_of_the_caller_go_along(toolsets: Emulator, backend: Backend) -> None:
    """Those of the toolset's own affairs do not: its key, for one."""
    toolsets.mcp.create("hearing", f"{backend.url}/mcp")
    url, session = make(toolsets, "headers", "hearing")
    asked = mcp_wire.message("tools/call", {"name": "hearing__echo", "arguments": {}})

    mcp_wire.http.post(url, json=asked, headers=mcp_wire.headers(KEY, session, user_id="ann"))

    assert {"ann"} == {seen["user_id"] for seen in backend.seen}
    assert KEY not in str(backend.seen)


def test_the_pair_finds_tools_and_calls_them(toolsets: Emulator) -> None:
    """Two tools in place of all; the best come first, with their schemas."""
    url, session = make(toolsets, "pair", "dead", "words", exposes="search-and-use")

    found = mcp_wire.call(url, KEY, session, "search", query="length of texts, letters")
    used = mcp_wire.call(
        url, KEY, session, "use", name="words__count_letters", arguments={"text": "ab"}
    )

    assert ["search", "use"] == names(url, session)
    (first, *_) = found["structuredContent"]["tools"]
    assert ("words__count_letters", ["text"]) == (first["name"], first["inputSchema"]["required"])
    assert {"dead": UNREACHABLE} == found["structuredContent"]["missing"]
    assert {"result": 2} == used["structuredContent"]


def test_a_search_is_bounded(toolsets: Emulator) -> None:
    """Empty words find all, others nothing, and a limit is kept."""
    url, session = make(toolsets, "bounded", "words", exposes="search-and-use")

    def found(**arguments: Any) -> int:
        result = mcp_wire.call(url, KEY, session, "search", **arguments)
        return len(result["structuredContent"]["tools"])

    assert [5, 2, 0] == [found(query=""), found(query="", limit=2), found(query="zebra")]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search", {}, "The argument 'query' of search is wrong: Field required."),
        (
            "search",
            {"query": 1},
            "The argument 'query' of search is wrong: Input should be a valid string.",
        ),
        (
            "search",
            {"query": "", "limit": 0},
            "The argument 'limit' of search is wrong: Input should be greater than or equal to 1.",
        ),
        (
            "use",
            {"name": "words__upper", "arguments": [1]},
            "The argument 'arguments' of use is wrong: Input should be a valid dictionary.",
        ),
        ("use", {"name": "none"}, "There is no tool 'none'."),
        (
            "words__upper",
            {"text": "a"},
            "There is no tool 'words__upper': there are search and use.",
        ),
    ],
)
def test_wrong_arguments_of_the_pair_are_named(
    toolsets: Emulator, tool: str, arguments: dict[str, Any], message: str
) -> None:
    """The error says which, and why."""
    if "erring" not in [one.name for one in toolsets.mcp_toolsets.list()]:
        toolsets.mcp_toolsets.create("erring", ["words"], exposes="search-and-use", key=KEY)

    url, session = open_(toolsets, "erring")

    assert (True, [message]) == texts(mcp_wire.call(url, KEY, session, tool, **arguments))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_takes_the_access_record(toolsets: Emulator, mode: str) -> None:
    """Its address and headers as they are."""
    name = f"official-{mode}"
    toolsets.mcp_toolsets.create(name, ["words"])
    access = toolsets.mcp_toolsets.record(name)["mcpServers"][name]

    async def use(client: Client) -> tuple[int, Any]:
        listed = await client.list_tools()
        result = await client.call_tool("words__upper", {"text": "abc"})
        return len(listed.tools), result.structured_content

    assert (5, {"result": "ABC"}) == with_client(access, mode, use)


def with_client(
    access: Mapping[str, Any], mode: str, use: Callable[[Client], Awaitable[T]], **options: Any
) -> T:
    """Use the SDK's own client with an access record."""

    async def connect() -> T:
        async with httpx2.AsyncClient(
            headers=access["headers"], trust_env=False, timeout=TIMEOUT_S
        ) as http:
            transport = streamable_http_client(access["httpUrl"], http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                return await use(client)

    return asyncio.run(connect())


async def ann(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "ann"})


async def a_word(_context: Any, params: types.CreateMessageRequestParams) -> Any:
    text = types.TextContent(text=f"at most {params.max_tokens}")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


def asker() -> Server[Any]:
    """Return a server whose tool asks for input as the version without sessions does."""

    async def call(
        _context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.input_responses is None:
            form = types.ElicitRequestFormParams(message="who?", requested_schema=FORM)
            asked: Any = {"who": types.ElicitRequest(params=form)}
            return types.InputRequiredResult(input_requests=asked, request_state="state")
        (answer,) = params.input_responses.values()
        found = {"state": params.request_state, "answer": answer.model_dump()["content"]}
        return types.CallToolResult(content=[], structured_content=found)

    async def tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="ask", input_schema={"type": "object"})]
        )

    return Server("asker", on_list_tools=tools, on_call_tool=call)


def sampler() -> Server[Any]:
    """Return a server whose tool has its caller's model write something."""

    async def call(
        context: ServerRequestContext[Any, Any], _params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        params = types.CreateMessageRequestParams(messages=[], max_tokens=7)
        related = ServerMessageMetadata(related_request_id=context.request_id)
        answer = await context.session.send_request(
            types.CreateMessageRequest(params=params), types.CreateMessageResult, metadata=related
        )
        return types.CallToolResult(content=[answer.content])  # type: ignore[list-item]

    return Server("sampler", on_call_tool=call)


def test_what_a_tool_asks_reaches_the_caller(toolsets: Emulator, backend: Backend) -> None:
    """In sessions, amid the call: elicitation and sampling."""
    toolsets.mcp.create("eliciting", f"{backend.url}/mcp")
    toolsets.mcp.create("sampling", sampler())
    toolsets.mcp_toolsets.create("asking", ["eliciting", "sampling"])
    access = toolsets.mcp_toolsets.record("asking")["mcpServers"]["asking"]

    async def use(client: Client) -> tuple[Any, Any]:
        asked = await client.call_tool("eliciting__ask", {})
        sampled = await client.session.call_tool("sampling__any", {})
        return asked.structured_content, sampled.content

    asked, sampled = with_client(
        access, "legacy", use, elicitation_callback=ann, sampling_callback=a_word
    )

    assert {"action": "accept", "content": {"name": "ann"}} == asked
    assert ["at most 7"] == [content.text for content in sampled]


@pytest.mark.parametrize("exposes", EXPOSES)
def test_input_that_a_tool_requires_is_the_caller_s(toolsets: Emulator, exposes: Exposes) -> None:
    """Without sessions: the tool's question and its state pass, and so does the answer."""
    if "asker" not in [service.name for service in toolsets.mcp.list()]:
        toolsets.mcp.create("asker", asker())
    name = f"requiring-{exposes}"
    toolsets.mcp_toolsets.create(name, ["asker"], exposes=exposes)
    access = toolsets.mcp_toolsets.record(name)["mcpServers"][name]

    async def use(client: Client) -> Any:
        if exposes == "all":
            return (await client.call_tool("asker__ask", {})).structured_content
        return (await client.call_tool("use", {"name": "asker__ask"})).structured_content

    found = with_client(access, mcp_wire.MODERN, use, elicitation_callback=ann)

    assert {"state": "state", "answer": {"name": "ann"}} == found


def test_a_service_without_sessions_is_asked_without(toolsets: Emulator) -> None:
    """Also for a caller who has one, and could be asked back."""
    toolsets.mcp.create("modern", _Modern())
    url, session = make(toolsets, "mixed", "modern")

    result = mcp_wire.call(url, KEY, session, "modern__upper", text="a")

    assert {"result": "A"} == result["structuredContent"]


class _Modern:
    """A backend that knows only the version without sessions."""

    kind = "modern"

    def hosted(self, _name: str, _programs: Any) -> Any:
        inner = Endpoint(lambda: words()._lowlevel_server)

        class Hosted:
            running = inner.running

            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                version = (b"mcp-protocol-version", mcp_wire.MODERN.encode())
                app = inner if version in scope["headers"] else failure(400, "No sessions here.")
                await app(scope, receive, send)

        return Hosted()

    def to_record(self) -> None:
        return None


def test_an_error_of_the_protocol_passes_as_it_is(toolsets: Emulator) -> None:
    """Its code is the server's, not one of the toolset's."""

    async def refuse(_context: Any, _params: Any) -> types.CallToolResult:
        raise MCPError(-32099, "not so")

    toolsets.mcp.create("refusing", Server("refusing", on_call_tool=refuse))
    url, session = make(toolsets, "refused", "refusing")
    asked = mcp_wire.message("tools/call", {"name": "refusing__any", "arguments": {}})

    (answer,) = mcp_wire.replies(mcp_wire.post(url, asked, KEY, session))

    assert {"code": -32099, "message": "not so"} == answer["error"]


def test_keys_are_asked_for(toolsets: Emulator) -> None:
    """A toolset has its own: that of a service does not open it."""
    url, _ = make(toolsets, "keyed", "words")
    other = toolsets.mcp.get("words").keys[0].value

    statuses = [
        mcp_wire.post(url, mcp_wire.INITIALIZE, key).status_code for key in (None, other, KEY)
    ]

    assert [401, 401, 200] == statuses


def test_a_toolset_is_made_changed_and_deleted(toolsets: Emulator) -> None:
    """Its services stay when it goes; one that goes leaves it."""
    toolsets.mcp.create("going", "http://127.0.0.1:9/mcp")
    url, session = make(toolsets, "living", "going")
    made = toolsets.mcp_toolsets.get("living")
    assert made in toolsets.mcp_toolsets.list()

    changed = toolsets.mcp_toolsets.update("living", ["going", "words", "words"])
    toolsets.mcp.delete("going")

    assert (made.service_ids[0], toolsets.mcp.get("words").id) == changed.service_ids
    assert 5 == len(names(url, session))
    assert "_meta" not in tools(url, session)

    toolsets.mcp_toolsets.delete("living")

    assert 404 == mcp_wire.post(url, mcp_wire.INITIALIZE, KEY).status_code
    assert toolsets.mcp.get("words")
    with pytest.raises(UnknownToolsetError, match="There is no MCP toolset 'living'"):
        toolsets.mcp_toolsets.delete("living")


def test_what_cannot_be_made_is_refused(toolsets: Emulator) -> None:
    """Services and toolsets share their addresses, so their names, too."""
    toolsets.mcp_toolsets.create("taken", ["words"])

    with pytest.raises(ServiceNameTakenError):
        toolsets.mcp_toolsets.create("words", ["words"])
    with pytest.raises(ServiceNameTakenError):
        toolsets.mcp.create("taken", "http://127.0.0.1:9/mcp")
    with pytest.raises(ServiceNameError):
        toolsets.mcp_toolsets.create("a/b", ["words"])
    with pytest.raises(UnknownServiceError, match="There is no MCP service 'none'"):
        toolsets.mcp_toolsets.create("other", ["words", "none"])


def test_of_two_that_are_made_at_once_one_is_made(toolsets: Emulator) -> None:
    """A service and a toolset of one name."""

    def attempt(number: int) -> str:
        try:
            if number % 2:
                toolsets.mcp.create("contested", "http://127.0.0.1:9/mcp")
            else:
                toolsets.mcp_toolsets.create("contested", ["words"])
        except ServiceNameTakenError:
            return "taken"
        return "made"

    futures = [background(lambda number=number: attempt(number)) for number in range(6)]

    assert ["made", *["taken"] * 5] == sorted(future.result(TIMEOUT_S) for future in futures)


def test_a_toolset_that_leads_back_to_itself_ends(toolsets: Emulator) -> None:
    """The service between sees its own mark, and the rest of the tools is there."""
    url, session = make(toolsets, "circle", "words")
    backend = McpBackend(url, {"Authorization": f"Bearer {KEY}"})
    toolsets.mcp.create("back", backend)
    toolsets.mcp_toolsets.update("circle", ["words", "back"])

    assert [
        *("words__upper", "words__count_letters", "words__fail"),
        *("back__words__upper", "back__words__count_letters", "back__words__fail"),
    ] == [name for name in names(url, session) if "ttt" not in name]


def test_toolsets_outlive_a_restart(tmp_path: Path, backend: Backend) -> None:
    """With --state: name, services, keys and what is exposed; one that was deleted does not."""
    state = f"sqlite:///{tmp_path / 'double.db'}"
    with Emulator(state=state) as double:
        double.mcp.create("kept", f"{backend.url}/mcp")
        make(double, "set", "kept", exposes="search-and-use")
        make(double, "gone", "kept")
        before = double.mcp_toolsets.get("set")
        double.mcp_toolsets.delete("gone")

    with Emulator(state=state) as double:
        assert (before,) == double.mcp_toolsets.list()
        url, session = open_(double, "set")
        used = mcp_wire.call(url, KEY, session, "use", name="kept__echo", arguments={"a": 1})
        assert {"arguments": {"a": 1}} == used["structuredContent"]
        double.reset(keep=())
        assert () == double.mcp_toolsets.list()

    with Emulator(state=state) as double:
        assert () == double.mcp_toolsets.list()


def test_a_server_that_fails_amid_a_question_costs_that_one(toolsets: Emulator) -> None:
    """A backend of this process that does not start."""

    def broken() -> Any:
        raise RuntimeError("it does not start")

    toolsets.mcp.create("broken", ServerBackend(broken))
    url, session = make(toolsets, "cracked", "broken", "words")

    assert (True, 5) == (
        "broken" in tools(url, session)["_meta"]["agentdouble/missing"],
        len(names(url, session)),
    )


def counted(seen: list[str | None], count: int = 12) -> Server[Any]:
    """Return a server of tools of 100 KB each that tells which cursors are asked for."""

    async def tools(
        _context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        seen.append(params.cursor if params else None)
        return types.ListToolsResult(
            tools=[
                types.Tool(name=f"t{one}", description="x" * 100_000, input_schema=OBJECT)
                for one in range(count)
            ]
        )

    return Server("counted", on_list_tools=tools)


def paged(url: str, session: str) -> tuple[list[str], list[str]]:
    """Follow the cursors of a list; return them, and the names of the tools."""
    params: dict[str, str] = {}
    cursors, found = [], []
    while True:
        page = mcp_wire.post(url, mcp_wire.message("tools/list", params), KEY, session)
        assert len(page.content) < 520 * 1024
        result = mcp_wire.result(page)
        found += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return cursors, found
        params = {"cursor": result["nextCursor"]}
        cursors.append(params["cursor"])


@pytest.mark.parametrize(
    ("kept_s", "lists"), [(kept_lists.KEPT_S, 1), (0, 3)], ids=["kept", "asked again"]
)
def test_a_large_list_comes_in_pages(
    toolsets: Emulator, monkeypatch: pytest.MonkeyPatch, kept_s: float, lists: int
) -> None:
    """All tools in order; the services are asked once, unless the caller takes its time."""
    monkeypatch.setattr(kept_lists, "KEPT_S", kept_s)
    seen: list[str | None] = []
    name = f"large-{lists}"
    toolsets.mcp.create(name, counted(seen))
    url, session = make(toolsets, f"paged-{lists}", name, "dead", "words")

    cursors, found = paged(url, session)

    assert [f"{name}__t{one}" for one in range(12)] == found[:12]
    assert ["words__upper", "words__count_letters", "words__fail"] == found[12:15]
    assert (2, lists) == (len(cursors), len(seen))


def test_a_cursor_of_another_list_is_refused(toolsets: Emulator) -> None:
    """As it is after the toolset has changed before it."""
    toolsets.mcp.create("big", counted([]))
    url, session = make(toolsets, "cursors", "big", "words")
    (cursor, _), _names = paged(url, session)
    asked = mcp_wire.message("tools/list", {"cursor": cursor})
    assert "result" in mcp_wire.replies(mcp_wire.post(url, asked, KEY, session))[0]

    toolsets.mcp_toolsets.update("cursors", services=["words", "big"])
    (changed,) = mcp_wire.replies(mcp_wire.post(url, asked, KEY, session))

    assert -32602 == changed["error"]["code"]
    assert "or has changed since: ask for it again without a cursor" in changed["error"]["message"]


def test_callers_whom_the_services_tell_apart_have_lists_of_their_own(toolsets: Emulator) -> None:
    """What one has listed is not shown to another, and is bounded in number."""
    seen: list[str | None] = []
    toolsets.mcp.create("told-apart", counted(seen))
    url, session = make(toolsets, "callers", "told-apart")
    (cursor, *_), _names = paged(url, session)
    seen.clear()

    for who in [*"abcdefghi", "i", "a"]:
        sent = {**mcp_wire.headers(KEY, session), "X-Tenant": who}
        asked = mcp_wire.message("tools/list", {"cursor": cursor})
        assert "result" in mcp_wire.replies(mcp_wire.http.post(url, json=asked, headers=sent))[0]

    assert 10 == len(seen)  # i's list was kept; a's had been dropped for it
