from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentdouble import SimpleApp
from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double

CHOSEN = {"U-INVOKE-ENVELOPE": "object", "U-LIST-APPS": "detailed", "U-SESSION-DELETE": "204"}


def application(greeting: str, size: int = 2, **extra: Any) -> SimpleApp:
    """Return an application that greets, in pieces of ``size`` on request."""
    app = SimpleApp()

    @app.entrypoint
    async def answer(payload: dict[str, Any], headers: dict[str, str]) -> Any:
        if payload.get("pieces"):
            return pieces(greeting, size)
        if payload.get("more"):
            return {"greeting": greeting, "for": headers.get("user_id"), **extra}
        return greeting

    return app


async def pieces(text: str, size: int) -> AsyncIterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.fixture(scope="package")
def double() -> Iterator[Target]:
    """The double to compare the other platform with."""
    with serving_double(application("Hello.")) as target:
        yield target


@pytest.fixture(scope="package")
def live_target() -> Iterator[Target]:
    """A differently configured platform with the same application."""
    with serving_double(application("Hello.", size=3, extra=1), unknowns=CHOSEN) as target:
        yield dataclasses.replace(target, kind="live", name="live")


@pytest.fixture(scope="package")
def other() -> Iterator[Target]:
    """A platform whose application returns a different text."""
    with serving_double(application("Good day.")) as target:
        yield dataclasses.replace(target, kind="live", name="live")


@pytest.fixture
def base(double: Target) -> Iterator[Platform]:
    with Platform(double) as platform:
        yield platform


@pytest.fixture
def two(live_target: Target) -> Iterator[Platform]:
    with Platform(live_target) as platform:
        yield platform


@pytest.fixture
def three(other: Target) -> Iterator[Platform]:
    with Platform(other) as platform:
        yield platform
