"""Fixtures for the tests of the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests.agentdouble.model.clients import Model


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    """A double for all tests of a module."""
    with Emulator() as double:
        yield double


@pytest.fixture
def model(running: Emulator) -> Iterator[Model]:
    """The model of a double without scripts, at a stopped clock."""
    running.reset()
    with Model(running) as model:
        yield model
