from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from agentdouble import SimpleApp
from agentdouble.errors import DecorationError


async def good(payload: Any, headers: Any) -> str:
    return ""


async def other_names(request: Any, meta: Any) -> str:
    return ""


async def stream(payload: Any, headers: Any) -> AsyncIterator[str]:
    yield ""


async def with_default(payload: Any, headers: Any, more: int = 1) -> str:
    return ""


class Handler:
    async def method(self, payload: Any, headers: Any) -> str:
        return ""

    async def __call__(self, payload: Any, headers: Any) -> str:
        return ""


def sync(payload: Any, headers: Any) -> str:
    return ""


def sync_generator(payload: Any, headers: Any) -> Any:
    yield ""


async def no_parameter() -> str:
    return ""


async def one_argument(payload: Any) -> str:
    return ""


async def three(payload: Any, headers: Any, more: Any) -> str:
    return ""


async def keyword_only(payload: Any, *, headers: Any) -> str:
    return ""


async def needs_keyword(payload: Any, headers: Any, *, more: Any) -> str:
    return ""


async def star(*arguments: Any) -> str:
    return ""


async def one_and_star(payload: Any, *headers: Any) -> str:
    return ""


async def other_order(headers: Any, payload: Any) -> str:
    return ""


@pytest.mark.parametrize(
    "function",
    [good, other_names, stream, with_default, Handler().method, functools.partial(three, more=1)],
)
def test_entrypoint_is_async_with_payload_and_headers(function: Any) -> None:
    """DEC-01: a valid function is registered and returned unchanged."""
    assert function is SimpleApp().entrypoint(function)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (sync, "it is not async"),
        (sync_generator, "it is not async"),
        (lambda payload, headers: "", "it is not async"),
        (Handler(), "it is not async"),
        (no_parameter, "it does not accept these two: too many positional arguments"),
        (one_argument, "it does not accept these two: too many positional arguments"),
        (three, "it does not accept these two: missing a required argument: 'more'"),
        (keyword_only, "it does not accept these two: "),
        (needs_keyword, "it does not accept these two: missing a required"),
        (Handler.method, "it does not accept these two: missing a required argument: 'headers'"),
        (star, "it does not name both parameters"),
        (one_and_star, "it does not name both parameters"),
        (other_order, "it takes them in the other order"),
        ("good", "it is not a function"),
        (None, "it is not a function"),
    ],
)
def test_invalid_entrypoint_is_refused_at_decoration(function: Any, reason: str) -> None:
    """DEC-01: a TypeError says what is wrong."""
    app = SimpleApp()

    with pytest.raises(DecorationError) as caught:
        app.entrypoint(function)

    assert reason in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert "entrypoint" == caught.value.decorator


def pings() -> Iterator[str]:
    yield "up"


@pytest.mark.parametrize("function", [lambda: "up", functools.partial(lambda text: text, "up")])
def test_ping_is_sync_without_parameters(function: Callable[[], Any]) -> None:
    """DEC-02: a valid function is registered and returned unchanged."""
    assert function is SimpleApp().ping(function)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_parameter, "it is async"),
        (stream, "it is async"),
        (pings, "it is a generator and does not return a string"),
        (lambda text: text, "it takes parameters"),
        (lambda text="": text, "it takes parameters"),
        (lambda *_: "", "it takes parameters"),
        (1, "it is not a function"),
    ],
)
def test_invalid_ping_is_refused_at_decoration(function: Any, reason: str) -> None:
    """DEC-02: the error says what is wrong."""
    with pytest.raises(DecorationError, match=f": {reason}") as caught:
        SimpleApp().ping(function)

    assert "ping" == caught.value.decorator


def test_async_task_is_not_implemented() -> None:
    """DEC-03: the error says so."""
    with pytest.raises(NotImplementedError, match=r"planned .* not implemented"):
        SimpleApp().async_task(good)
