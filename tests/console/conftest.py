from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.console.driving import console_page, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A headless Chromium that all console tests share."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double with a console; tests that need an empty one reset it."""
    with Emulator(console=True, pool_size=0) as double:
        yield double


@pytest.fixture
def opened(browser: Browser, double: Emulator) -> Iterator[Page]:
    """The console of an empty double; the browser must log no errors."""
    double.reset(keep=())
    with console_page(browser, double) as page:
        yield page
