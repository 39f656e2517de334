from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from agentdouble.sandbox.browser import chromium
from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.console.driving import console_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

INSTALL = "pip install 'agentdouble[emulator,test]'"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A headless Chromium that all console tests share."""
    if importlib.util.find_spec("playwright") is None:
        _lacking("Playwright", INSTALL)
    path = chromium.find(None)
    if path is None:
        _lacking("Chromium", chromium.INSTALL)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # its own sandbox needs what containers and root do not have
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


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


def _lacking(requirement: str, remedy: str) -> None:
    reason = f"needs {requirement}: {remedy}"
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
