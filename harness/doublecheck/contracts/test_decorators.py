"""Checks of the decorator contract of simple applications (DEC)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import agentdouble
from doublecheck.contracts.clauses import clause


async def _right(payload: dict[str, Any], headers: dict[str, str]) -> str:
    return ""


async def _right_stream(payload: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[str]:
    yield ""


def _sync(payload: dict[str, Any], headers: dict[str, str]) -> str:
    return ""


async def _nothing() -> str:
    return ""


async def _payload_alone(payload: dict[str, Any]) -> str:
    return ""


async def _three(payload: dict[str, Any], headers: dict[str, str], more: str) -> str:
    return ""


async def _turned_round(headers: dict[str, str], payload: dict[str, Any]) -> str:
    return ""


def _right_ping() -> str:
    return ""


def _ping_with_parameter(verbose: bool = False) -> str:
    return ""


async def _async_ping() -> str:
    return ""


def _accepted(decorate: Callable[[Any], Any], functions: tuple[Any, ...]) -> list[Any]:
    """Return the functions that a decorator does not refuse."""
    accepted = []
    for function in functions:
        try:
            decorate(function)
        except TypeError:
            continue
        accepted.append(function)
    return accepted


@clause("DEC-01")
def test_entrypoint_refuses_what_is_no_entrypoint() -> None:
    """Async with payload and headers is accepted, a generator too; nothing else is."""
    right = (_right, _right_stream)
    wrong = (_sync, _nothing, _payload_alone, _three, _turned_round)

    assert [*right] == _accepted(agentdouble.SimpleApp().entrypoint, right + wrong)


@clause("DEC-02")
def test_ping_refuses_what_is_no_ping() -> None:
    """Sync without parameters is accepted; nothing else is."""
    wrong = (_ping_with_parameter, _async_ping)

    assert [_right_ping] == _accepted(agentdouble.SimpleApp().ping, (_right_ping, *wrong))


@clause("DEC-03")
def test_async_task_says_that_it_is_not_implemented() -> None:
    """Decorating with it raises, and the message names it."""
    with pytest.raises(NotImplementedError, match="async_task"):
        agentdouble.SimpleApp().async_task(_right)
