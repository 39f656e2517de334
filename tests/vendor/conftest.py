from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.vendor import environment

HERE = Path(__file__).parent
Run = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder: it is slow, and skipped without the packages."""
    missing = f"{environment.VARIABLE} names no Python with {' '.join(environment.PACKAGES)}"
    absent = pytest.mark.skipif(environment.VARIABLE not in os.environ, reason=missing)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(absent)


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter that has the packages."""
    return os.environ[environment.VARIABLE]


@pytest.fixture
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


@pytest.fixture
def run(python: str, double: Emulator) -> Run:
    """Run a program beside the double and return what it tells."""
    return lambda program, **facts: environment.run(python, program, double, **facts)
