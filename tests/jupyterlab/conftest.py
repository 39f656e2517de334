from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from agentdouble.sandbox.browser import chromium
from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.jupyterlab.pages import started
from tests.jupyterlab.server import Lab, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
INSTALL = "pip install 'agentdouble[emulator,test,lab]'"
SCREENSHOTS = "DOUBLECHECK_SCREENSHOTS"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine, without a window."""
    path = _needed()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # its own sandbox needs what containers and root do not have
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def lab() -> Iterator[Lab]:
    """A JupyterLab with copies of the notebooks of this repository."""
    _needed()
    # pytest's own directories, below one for each worker, are too long for the kernels' sockets
    with TemporaryDirectory(prefix="lab-") as folder:
        place = Path(folder)
        shutil.copytree(NOTEBOOKS, place / "notebooks")
        with serving(place) as lab:
            yield lab


@pytest.fixture(scope="package")
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A page with that JupyterLab, loaded once."""
    with started(browser, lab) as page:
        yield page


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """The folder for pictures of what is shown, if one is named: they are to be looked at."""
    named = os.environ.get(SCREENSHOTS)
    return None if not named else Path(named).resolve()


def _needed() -> str:
    """Return the path of Chromium; skip the test without what it needs, in CI fail it."""
    for module in ("jupyterlab", "playwright"):
        if importlib.util.find_spec(module) is None:
            _lacking(module, INSTALL)
    executable = chromium.find(None)
    if executable is None:
        _lacking("Chromium", chromium.INSTALL)
    assert executable is not None
    return executable


def _lacking(component: str, remedy: str) -> None:
    reason = f"needs {component}: {remedy}"
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
