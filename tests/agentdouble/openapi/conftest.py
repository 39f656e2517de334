from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from agentdouble import Emulator
from tests.agentdouble.openapi.driver import Driver, document_of
from tests.agentdouble.runtimes.asking import APPLICATIONS

ARTIFACT = f"file://{APPLICATIONS}?" + urlencode({"command": f"{sys.executable} -S saying.py"})


@pytest.fixture(scope="package")
def described() -> Iterator[Emulator]:
    """Start a double to read documents from; no test resets it while it is driven."""
    with Emulator(runtime_sources=(APPLICATIONS,)) as double:
        yield double


@pytest.fixture(scope="package")
def document(described: Emulator) -> dict[str, Any]:
    return document_of(described)


@pytest.fixture
def driver(described: Emulator, document: dict[str, Any]) -> Driver:
    return Driver(described, document)
