"""Checks of MCP services: their access records and their backends (SVC)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, mcp_servers, verdicts, wire
from doublecheck.contracts.clauses import clause, find
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.mcp_servers import (
    CheckedService,
    Make,
    is_refused,
    structured_of,
    text_of,
)
from doublecheck.contracts.reference import http_api
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.values.agents import McpResult, McpTool
from doublecheck.wire import calls, mcp
from doublecheck.wire.mcp import McpServer


@pytest.fixture
def direct(platform: Platform) -> McpServer:
    """The MCP application behind the services."""
    return McpServer.at(platform.target, mcp.PATH, None, None)


@pytest.fixture
def through(service: CheckedService) -> Iterator[McpClient]:
    """A client of the service."""
    with service.client() as mcp:
        yield mcp


@clause("SVC-01", writes=True)
def test_a_service_lists_the_tools_of_its_backend(
    platform: Platform, service: CheckedService, direct: McpServer
) -> None:
    """A service lists the same tools, descriptions and schemas as its backend, every time."""
    with mcp_servers.client(platform, direct) as backend, service.client() as through:
        expected = sorted(backend.tools(), key=lambda tool: tool.name)
        assert expected, "the backend lists no tools"
        for _ in range(2):
            actual = sorted(through.tools(), key=lambda tool: tool.name)
            assert expected == actual, f"other tools are listed: {instead(actual, expected)}"


@clause("SVC-01", writes=True, reference_app=True)
@for_each(cost=2, text=inputs.texts())
def test_the_tools_of_a_backend_work_through_its_service(through: McpClient, text: str) -> None:
    """Arguments, results and errors pass unchanged; every call reaches the backend."""
    expected, joined = (
        f"{text} {text}",
        text_of(through.call("join", first=text, second=f" {text}")),
    )
    assert expected == joined, f"join returns {instead(joined, expected)}"
    fact = structured_of(through.call("facts", text=text)).get("text")
    assert text == fact, f"facts returns {instead(fact, text)}"
    for tool, arguments in (("add", {"a": text, "b": 1}), ("nobodys", {}), ("join", {})):
        assert is_refused(through, tool, arguments), f"{tool}({arguments}) succeeded"
    expected, added = str(len(text) + 1), text_of(through.call("add", a=len(text), b=1))
    assert expected == added, f"add returns {instead(added, expected)}"


@clause("SVC-03", writes=True)
def test_the_access_record_has_the_specified_shape(
    service: CheckedService, make_service: Make, direct: McpServer
) -> None:
    """Each record maps only its own service to an address and a key, which are unique."""
    keys, gateways = set(), set()
    for item in (service, make_service(direct.url), make_service(direct.url)):
        url, headers = item.access.get("httpUrl"), item.access.get("headers")
        assert isinstance(url, str), f"httpUrl is not a string: {short(url)}"
        assert isinstance(headers, dict), f"headers is not an object: {short(headers)}"
        authorization = headers.get("Authorization")
        assert isinstance(authorization, str), f"Authorization is missing: {listed(headers)}"
        scheme, _, key = authorization.partition(" ")

        assert ["mcpServers"] == list(item.record), f"the record has {listed(item.record)}"
        services = list(item.record["mcpServers"])
        assert [item.name] == services, f"the record has the services {listed(services)}"
        assert re.match(r"https?://[^/]", url), f"httpUrl is no URL: {short(url)}"
        assert url.endswith(f"/mcp/{item.name}"), f"httpUrl does not end as specified: {url}"
        assert ("Bearer", True) == (scheme, bool(key)), f"no key in {authorization!r}"
        with item.client() as tools:
            assert tools.tools(), f"the record of {item.name} does not give access"
        keys.add(key)
        gateways.add(url.removesuffix(f"/mcp/{item.name}"))
    assert 3 == len(keys), "services share a key"
    assert 1 == len(gateways), f"services have several gateways: {listed(gateways)}"


OPERATIONS = [
    "addThing",
    "changeThing",
    "correctThing",
    "failThing",
    "findPart",
    "findThings",
    "removeThing",
]
_WORDS = inputs.texts(empty=False, nul=False, long=2000).strategy
_NUMBERS = st.integers(-(2**31), 2**31)
_RICH_QUERY = {
    "word": inputs.RICH,
    "tags": ["ü &=+", "a,b", " c "],
    "sizes": [1, 0, -7],
    "count": 0,
    "exact": False,
    "X-Trace": "Id-0_a.B",
}
QUERIES = Input(
    st.fixed_dictionaries(
        {"word": _WORDS},
        optional={
            "tags": st.lists(_WORDS, min_size=1, max_size=3),
            "sizes": st.lists(_NUMBERS, min_size=1, max_size=3),
            "count": _NUMBERS,
            "exact": st.booleans(),
            "X-Trace": inputs.ids().strategy,
        },
    ),
    (
        _RICH_QUERY,
        {"word": "a"},
        {"word": "a", "tags": inputs.many("tag {}"), "exact": True},
        {"word": "a  b", "tags": ["a", "b", "a"], "count": -1, "X-Trace": 'a  b, "c"; d=1'},
        {"word": "a", "sizes": [*range(inputs.MANY), 0], "X-Trace": "0123456789abcdef" * 100},
        {"word": "0", "sizes": [5], "X-Trace": "i1"},
    ),
)
NAMES = Input(inputs.ids().strategy, ("ü 日本 %20&?#=+", "Id-0_a.B", "0-0"))


@dataclass
class Things:
    """The reference API, and the tools of the service in front of it."""

    api: http_api.Api
    client: McpClient
    tools: list[McpTool]

    def tool(self, operation: str) -> McpTool:
        """Return the tool of an operation. How its id becomes the tool's name is left open."""
        matches = [tool for tool in self.tools if _plain(operation) in _plain(tool.name)]
        assert 1 == len(matches), f"{operation} is not one of {[tool.name for tool in self.tools]}"
        return matches[0]

    def arguments(self, operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool's arguments for an operation, under the names that the tool uses.

        The name of the body is left open: it is the one that does not belong to a parameter.
        """
        names = {_plain(key): key for key in self.tool(operation).input_schema["properties"]}
        wanted_values = {_plain(name): value for name, value in values.items() if name != "body"}
        missing = wanted_values.keys() - names.keys()
        assert not missing, f"{operation} takes {sorted(names)}"
        arguments = {names[name]: value for name, value in wanted_values.items()}
        if "body" in values:
            bodies = [key for name, key in names.items() if name not in wanted_values]
            assert 1 == len(bodies), f"{operation} takes {sorted(names)}"
            arguments[bodies[0]] = values["body"]
        return arguments

    def call(self, operation: str, **values: Any) -> dict[str, Any]:
        """Call the tool of an operation. Return the request that the API received.

        Fail unless the API received exactly one request, and the tool returned its answer.
        """
        before = len(self.api.asked)
        result = self.client.call(self.tool(operation).name, **self.arguments(operation, values))
        requests = self.api.asked[before:]
        assert not result.is_error, f"{operation} returns an error: {short(result.text)}"
        assert 1 == len(requests), f"{operation} sent {len(requests)} requests to the API"
        if requests[0]["method"] != "DELETE":
            answered = any(wire.same(requests[0], document) for document in _objects(result))
            assert answered, f"{operation} does not return the API's answer: {short(result)}"
        return requests[0]


@pytest.fixture(scope="module")
def things(platform: Platform) -> Iterator[Things]:
    """A service in front of the reference API."""
    why_not = verdicts.why_not(find("SVC-02"), platform.target, reference_app=False)
    make_service = platform.target.make_service
    if why_not is not None or make_service is None:
        # checked here, because the fixture runs before the checks are examined
        pytest.skip(why_not or mcp_servers.NOT_MADE)
    with ExitStack() as stack:
        api = stack.enter_context(http_api.serving())
        name = f"doublecheck-{uuid.uuid4().hex}"
        service = CheckedService(
            platform, name, make_service(name, http_api.definition(api.address))
        )
        stack.callback(service.delete)
        client = stack.enter_context(service.client())
        yield Things(api, client, list(client.tools()))


@clause("SVC-02", writes=True)
def test_each_operation_of_a_definition_is_a_tool(things: Things) -> None:
    """Every operation is a tool, whatever its method, and there are no other tools."""
    listed_names = [tool.name for tool in things.tools]
    assert len(OPERATIONS) == len(listed_names), f"the tools are {listed(listed_names)}"
    names = {things.tool(operation).name for operation in OPERATIONS}
    assert len(OPERATIONS) == len(names), "two operations share a tool"


@clause("SVC-02", writes=True)
@for_each(at_once=False, query=QUERIES)
def test_parameters_of_query_and_header_reach_the_backend(
    things: Things, query: dict[str, Any]
) -> None:
    """Texts, lists, numbers and booleans reach the backend; omitted parameters are not sent."""
    sent = things.call("findThings", **query)

    expected = {name: _written(name, value) for name, value in query.items() if name != "X-Trace"}
    _require_sent(sent, "GET", "things")
    assert sent["body"] is None, f"the API gets the body {short(sent['body'])} with a GET"
    assert expected == sent["query"], f"the API gets a query {instead(sent['query'], expected)}"
    trace = query.get("X-Trace")
    assert trace == sent["trace"], f"the API gets a header {instead(sent['trace'], trace)}"


@clause("SVC-02", writes=True)
@for_each(word=Input(_WORDS, ("first", "second", "third", "fourth", "fifth")))
def test_each_result_is_of_its_own_call(things: Things, word: str) -> None:
    """The result has the answer to the request of its call."""
    result = things.client.call(things.tool("findThings").name, word=word)

    words = [document.get("query", {}).get("word") for document in _objects(result)]
    assert [word] in words, f"the result belongs to another call: {short(words)}"


@clause("SVC-02", writes=True)
@for_each(at_once=False, name=NAMES)
def test_parameters_of_the_path_reach_the_backend(things: Things, name: str) -> None:
    """One or several path parameters arrive, each in its place."""
    for operation, method in (("changeThing", "PUT"), ("removeThing", "DELETE")):
        arguments: dict[str, Any] = {"body": {}} if method == "PUT" else {}
        sent = things.call(operation, thing=name, **arguments)
        _require_sent(sent, method, "things", name)
        assert {} == sent["query"], f"the API gets a query: {short(sent['query'])}"
    sent = things.call("findPart", thing=name, part=0)
    _require_sent(sent, "GET", "things", name, "parts", "0")


@clause("SVC-02", writes=True)
@for_each(at_once=False, body=inputs.payloads())
def test_a_body_reaches_the_backend_and_its_answer_comes_back(
    things: Things, body: dict[str, Any]
) -> None:
    """The body and the answer arrive complete, with every kind of value."""
    sent = things.call("addThing", body=body)
    _require_sent(sent, "POST", "things")
    assert wire.same(body, sent["body"]), f"the API gets a body {instead(sent['body'], body)}"
    sent = things.call("correctThing", thing="t", body=body)
    _require_sent(sent, "PATCH", "things", "t")
    assert wire.same(body, sent["body"]), f"the API gets a body {instead(sent['body'], body)}"


@clause("SVC-02", writes=True)
def test_an_error_of_the_backend_is_told_as_one(things: Things) -> None:
    """The API gets the request, and its error is not reported as a success; the next call succeeds."""
    for status in (400, 404, 418, 500, 503):
        before = len(things.api.asked)
        arguments = things.arguments("failThing", {"status": status})
        refused = is_refused(things.client, things.tool("failThing").name, arguments)
        assert refused, f"HTTP {status} of the API is a success of its tool"
        assert len(things.api.asked) > before, "the API gets no request"
        things.call("findThings", word="next")


def _require_sent(sent: Mapping[str, Any], method: str, *path: str) -> None:
    """Fail unless the API got a request with this method and path."""
    expected, actual = [method, *path], [sent["method"], *sent["path"]]
    assert expected == actual, f"the API gets a request {instead(actual, expected)}"


def _written(name: str, value: Any) -> list[str]:
    """Return the values of a query parameter, as the definition says they are written."""
    if name == "sizes":
        return [",".join(map(str, value))]
    if isinstance(value, list):
        return list(value)
    return [value if isinstance(value, str) else json.dumps(value)]


def _objects(result: McpResult) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a result, even nested ones (an envelope is left open)."""
    texts = [block["text"] for block in result.content if block.get("type") == "text"]
    for document in (result.structured, *map(calls.json_or_none, texts)):
        yield from _within(document)


def _within(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _within(item)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
