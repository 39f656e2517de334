"""Checks of the decorators of simple and MCP applications (DEC)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import agentdouble
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.in_process import (
    accepted,
    got,
    invoked,
    refusal,
    tool_names,
    tool_result,
)
from doublecheck.contracts.sentences import instead, listed

Payload = dict[str, Any]
Headers = dict[str, str]


async def _entrypoint(payload: Payload, headers: Headers) -> str:
    return json.dumps([payload, headers["x-who"]])


async def _stream(payload: Payload, headers: Headers) -> AsyncIterator[str]:
    yield str(payload["prompt"])
    yield headers["x-who"]


class _Agent:
    async def entrypoint(self, payload: Payload, headers: Headers) -> Any: ...

    def ping(self) -> Any: ...


def _sync(payload: Payload, headers: Headers) -> Any: ...


async def _nothing() -> Any: ...


async def _payload_alone(payload: Payload) -> Any: ...


async def _three(payload: Payload, headers: Headers, extra: str) -> Any: ...


async def _headers_by_name(payload: Payload, *, headers: Headers) -> Any: ...


async def _any(*arguments: Any) -> Any: ...


def _sync_strings(payload: Payload, headers: Headers) -> Iterator[str]:
    yield ""


async def _turned_round(headers: Headers, payload: Payload) -> Any: ...


NO_ENTRYPOINTS = (
    *(_sync, _nothing, _payload_alone, _three, _turned_round, _headers_by_name, _any),
    _sync_strings,
    *(lambda payload, headers: "", _Agent, "entrypoint", None),
)


@clause("DEC-01")
def test_entrypoint_refuses_what_is_no_entrypoint() -> None:
    """Only async functions and generators with payload and headers are accepted."""
    right = (_entrypoint, _stream, _Agent().entrypoint)

    those = accepted(agentdouble.SimpleApp().entrypoint, right + NO_ENTRYPOINTS)
    assert [*right] == those, f"entrypoint accepts {listed(those)}"


@clause("DEC-01")
def test_the_entrypoint_is_called_with_payload_and_headers() -> None:
    """The entrypoint gets payload, then headers. A string returns as JSON, a generator streams."""
    app, streaming = agentdouble.SimpleApp(), agentdouble.SimpleApp()
    app.entrypoint(_entrypoint)
    streaming.entrypoint(_stream)
    payload = {"prompt": "hello", "more": [1]}

    answer = invoked(app, payload, {"x-who": "me"})
    events = invoked(streaming, payload, {"x-who": "me"})

    expected, received = [payload, "me"], json.loads(wire.returned(answer))
    assert expected == received, f"the entrypoint gets {instead(received, expected)}"
    strings = wire.chunks(wire.data_of(events), ["hello", "me"])
    assert ["hello", "me"] == strings, f"the stream has {listed(strings)}"


def _ping() -> str:
    return "well"


async def _async_ping() -> Any: ...


class _AsyncCallable:
    async def __call__(self) -> Any: ...


async def _async_strings() -> AsyncIterator[str]:
    yield ""


NO_PINGS = (
    *(
        _async_ping,
        lambda verbose: "",
        lambda payload, headers: "",
        "ping",
        None,
        _Agent,
        _AsyncCallable(),
    ),
    *(_async_strings, lambda verbose=False: "", lambda *_all: "", lambda **_named: ""),
    *(lambda *, verbose=False: "",),
)


@clause("DEC-02")
def test_ping_refuses_what_is_no_ping() -> None:
    """Only sync functions without parameters are accepted."""
    right = (_ping, _Agent().ping, lambda: "")

    those = accepted(agentdouble.SimpleApp().ping, right + NO_PINGS)
    assert [*right] == those, f"ping accepts {listed(those)}"


@clause("DEC-02")
def test_the_ping_function_is_called() -> None:
    """/ping returns the ping function's string, even after others were refused."""
    app = agentdouble.SimpleApp()
    app.ping(_ping)
    those = accepted(app.ping, NO_PINGS)
    assert [] == those, f"ping accepts {listed(those)}"

    text = wire.probe_text(got(app, "/ping"))
    assert "well" == text, f"/ping answers {text!r}"


@clause("DEC-03")
def test_async_task_says_that_it_is_not_implemented() -> None:
    """The decorator raises for any function, with a message that names the decorator."""
    for function in (_entrypoint, _stream, _sync):
        with pytest.raises(NotImplementedError, match="async_task"):
            agentdouble.SimpleApp().async_task(function)


@dataclass
class Place:
    """A complex object."""

    city: str
    streets: list[str]


def _forecast(city: str, days: int = 1) -> dict[str, Any]:
    return {"city": city, "days": days}


async def _async_forecast(city: str) -> str:
    return f"sun in {city}"


def _no_parameters() -> str:
    return "nothing"


def _complex(place: Place, others: list[Place] | None = None, *, wide: bool = False) -> str:
    return f"{place.city}, {place.streets}, {wide}, {[place.city for place in others or ()]}"


async def _async_complex(places: dict[str, Place]) -> dict[str, Any]:
    return {name: place.streets for name, place in places.items()}


def _unannotated(city, days: int = 1) -> Any: ...  # type: ignore[no-untyped-def]


def _second_unannotated(city: str, days) -> Any: ...  # type: ignore[no-untyped-def]


async def _unannotated_default(city: str, days=1) -> Any: ...  # type: ignore[no-untyped-def]


TOOLS = (_forecast, _async_forecast, _no_parameters, _complex, _async_complex)


def _unannotated_by_name(city: str, *, days=1) -> Any: ...  # type: ignore[no-untyped-def]


def _unannotated_by_position(days, /, city: str = "") -> Any: ...  # type: ignore[no-untyped-def]


async def _unannotated_rest(city: str, *days) -> Any: ...  # type: ignore[no-untyped-def]


NO_TOOLS = {
    "'city'": (_unannotated,),
    "'days'": (
        _second_unannotated,
        _unannotated_default,
        _unannotated_by_name,
        _unannotated_by_position,
    ),
    "days'": (_unannotated_rest,),
}
NO_FUNCTIONS = ("tool", 42, Place, Place("Rome", []), ["a"])


class _Assistant:
    async def ask(self, prompt: str) -> str:
        """Answer."""
        return prompt


async def _assistant(prompt: str) -> str:
    """Answer everything."""
    return prompt


def _sync_assistant(prompt: str) -> str:
    return ""


async def _deaf() -> str:
    return ""


async def _two_prompts(prompt: str, more: str) -> str:
    return ""


async def _number(prompt: int) -> str:
    return ""


async def _answers_a_number(prompt: str) -> int:
    return 0


async def _untyped(prompt) -> str:  # type: ignore[no-untyped-def]
    return ""


async def _by_name(**prompt: str) -> str:
    return ""


async def _rest(*prompt: str) -> str:
    return ""


async def _streaming_assistant(prompt: str) -> AsyncIterator[str]:
    yield prompt


def _sync_strings_of_a_prompt(prompt: str) -> Iterator[str]:
    yield prompt


NO_AGENTS = (
    _sync_assistant,
    _deaf,
    _two_prompts,
    _number,
    _answers_a_number,
    _untyped,
    _by_name,
    _rest,
    _streaming_assistant,
    _sync_strings_of_a_prompt,
    lambda prompt: "",
    _Assistant,
    *NO_FUNCTIONS,
)


@clause("DEC-04")
def test_tool_refuses_a_parameter_without_a_type() -> None:
    """The error names the untyped parameter, at any position. Typed functions are accepted."""
    for parameter, functions in NO_TOOLS.items():
        app = agentdouble.MCPApp()
        for decorate in (app.tool, app.tool()):
            messages = [refusal(decorate, function) or "accepted" for function in functions]
            wrong = [message for message in messages if parameter not in message]
            assert [] == wrong, f"{parameter} has no type, but tool says {listed(wrong)}"
        assert {} == app.tools, f"refused functions are tools: {listed(app.tools)}"

    for decorate in (agentdouble.MCPApp().tool, agentdouble.MCPApp().tool()):
        those = accepted(decorate, (*TOOLS, *NO_FUNCTIONS))
        assert [*TOOLS] == those, f"tool accepts {listed(those)}"


@clause("DEC-04")
def test_agent_as_a_tool_refuses_what_is_no_agent() -> None:
    """Only async functions that take one text, the prompt, and return a text are accepted."""
    app, right = agentdouble.MCPApp(), (_assistant, _Assistant().ask)

    those = accepted(app.agent_as_a_tool, (*right, *NO_AGENTS))
    assert [*right] == those, f"agent_as_a_tool accepts {listed(those)}"
    names = sorted(tool_names(app))
    assert ["_assistant", "ask"] == names, f"the tools are {listed(names)}"
    told = _text(tool_result(app, "_assistant", {"prompt": "hello"}))
    assert "hello" == told, f"the agent answers {told!r}"


@clause("DEC-04")
def test_sync_and_async_tools_are_listed_and_called() -> None:
    """Sync and async functions are tools that return what the function returns, even for objects."""
    app = agentdouble.MCPApp()
    for function in TOOLS:
        app.tool(function)
    rome, oslo = {"city": "Rome", "streets": ["a", "b"]}, {"city": "Oslo", "streets": []}

    expected, names = sorted(tool.__name__ for tool in TOOLS), sorted(tool_names(app))
    assert expected == names, f"the tools are {instead(names, expected)}"
    two_days = {"city": "Rome", "days": 2}
    args = {"place": rome, "others": [oslo, rome], "wide": True}
    calls: tuple[tuple[str, dict[str, Any], Any], ...] = (
        ("_forecast", two_days, two_days),
        ("_async_forecast", {"city": "Rome"}, "sun in Rome"),
        ("_no_parameters", {}, "nothing"),
        ("_complex", args, "Rome, ['a', 'b'], True, ['Oslo', 'Rome']"),
        ("_async_complex", {"places": {"x": oslo, "y": rome}}, {"x": [], "y": ["a", "b"]}),
    )
    for name, arguments, returned in calls:
        result = _text(tool_result(app, name, arguments))
        assert returned == result, f"{name} returns {instead(result, returned)}"


def _text(result: Any) -> Any:
    """Return the text of a result, which may be wrapped in an object."""
    return result["result"] if isinstance(result, dict) and "result" in result else result
