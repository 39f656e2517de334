"""Parameters of tools that the SDK's ``Resolve`` fills before the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve
from mcp.types import ElicitResult, InputRequiredResult
from pydantic import BaseModel

from agentdouble import Context, Emulator, MCPApp
from agentdouble.errors import DecorationError
from tests.agentdouble.apps.mcp.notes import (
    ERAS,
    answer_with,
    ask,
    error_of,
    text_of,
)

both_eras = pytest.mark.parametrize("mode", ERAS)


class Guest(BaseModel):
    name: str


async def who(city: str, ctx: Context) -> Elicit[Guest]:
    """Ask for a guest; ``city`` is the tool's argument."""
    assert ctx.request_id
    return Elicit(f"Who comes to {city}?", Guest)


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    app = MCPApp("guests")

    @app.tool
    def invite(city: str, guest: Annotated[Guest, Resolve(who)]) -> str:
        return f"{guest.name} in {city}"

    @app.tool
    async def count(city: str, guest: Annotated[ElicitationResult[Guest], Resolve(who)]) -> int:
        return int(guest.action == "accept")

    with Emulator(app, pool_size=0) as double:
        yield double


ACCEPT = ElicitResult(action="accept", content={"name": "ann"})


@both_eras
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ACCEPT, [(False, "ann in Rome"), (False, "1")]),
        (
            ElicitResult(action="decline"),
            [
                (
                    True,
                    (
                        "Error executing tool invite: Resolver for parameter 'guest' could not resolve: "
                        "elicitation was decline"
                    ),
                ),
                (False, "0"),
            ],
        ),
    ],
)
def test_tool_asks_in_both_eras(
    double: Emulator, mode: str, answer: ElicitResult, expected: list[tuple[bool, str]]
) -> None:
    """During the call, or in rounds; callers do not see the parameter."""

    async def call(client: Client) -> list[Any]:
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(tool.name, {"city": "Rome"}) for tool in tools]
        names = [list(tool.input_schema["properties"]) for tool in tools]
        return [names, [(result.is_error, text_of(result)) for result in results]]

    fill_in = answer_with(answer)
    assert [[["city"]] * 2, expected] == ask(double.url, mode, call, elicitation_callback=fill_in)


@both_eras
def test_client_without_the_capability_is_not_asked(double: Emulator, mode: str) -> None:
    """The protocol's error says what it lacks."""

    async def call(client: Client) -> tuple[int, str]:
        return await error_of(client.call_tool("invite", {"city": "Rome"}))

    code, message = ask(double.url, mode, call)

    assert -32021 == code
    assert message.startswith("Client did not declare the form elicitation capability")


def _needs_a_city(guest: Annotated[Guest, Resolve(who)]) -> str:
    return guest.name


def _in_a_union(city: str, guest: Annotated[Guest, Resolve(who)] | None) -> str:
    return f"{guest}{city}"


def _asks_twice(city: str, guest: Annotated[Guest, Resolve(who)]) -> str | InputRequiredResult:
    return f"{guest}{city}"


@pytest.mark.parametrize(
    ("decorate", "text"),
    [
        (lambda app: app.tool(_needs_a_city), "'who' parameter 'city' cannot be resolved"),
        (lambda app: app.tool(_in_a_union), r"'_in_a_union' wraps `Resolve\(...\)` in a union"),
        (lambda app: app.tool(_asks_twice), "combines Resolve"),
    ],
)
def test_unresolvable_parameter_is_refused_at_decoration(decorate: Any, text: str) -> None:
    """The error names the function."""
    with pytest.raises(DecorationError, match=text):
        decorate(MCPApp())
