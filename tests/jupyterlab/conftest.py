from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import nbformat
import pytest

from agentdouble import Emulator
from tests import machine
from tests.agentdouble.conftest import _clean_environment  # noqa: F401 (used by every test)
from tests.console.driving import launched
from tests.jupyterlab.pages import started
from tests.jupyterlab.server import Lab, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NOTEBOOK = "sandbox.ipynb"  # in the folder of the JupyterLab whose gateway is the double
SCREENSHOTS = "DOUBLECHECK_SCREENSHOTS"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start this machine's Chromium without a window."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def lab() -> Iterator[Lab]:
    """Start a JupyterLab with copies of this repository's notebooks."""
    if importlib.util.find_spec("jupyterlab") is None:
        machine.lack("needs JupyterLab: pip install 'agentdouble[emulator,test,lab]'")
    # pytest's own directories, below one for each worker, are too long for the kernels' sockets
    with TemporaryDirectory(prefix="lab-") as folder:
        place = Path(folder)
        shutil.copytree(NOTEBOOKS, place / "notebooks")
        with serving(place) as lab:
            yield lab


@pytest.fixture(scope="package")
def emulator() -> Iterator[Emulator]:
    """The double whose sessions are kernels."""
    with Emulator(allow_origins=("*",)) as double:
        yield double


@pytest.fixture(scope="package")
def gateway_lab(emulator: Emulator) -> Iterator[Lab]:
    """A JupyterLab whose gateway is the double."""
    if importlib.util.find_spec("jupyterlab") is None:
        machine.lack("needs JupyterLab: pip install 'agentdouble[emulator,test,lab]'")
    with TemporaryDirectory(prefix="lab-") as folder:
        spec = {"name": "python3", "display_name": "Python (sandbox)", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
        (Path(folder) / "notebooks").mkdir()
        nbformat.write(notebook, Path(folder) / "notebooks" / NOTEBOOK)
        with serving(Path(folder), emulator.environment("jupyter")) as lab:
            yield lab


@pytest.fixture(scope="package")
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """Open that JupyterLab in a page, once."""
    with started(browser, lab) as page:
        yield page


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Return the folder for pictures of outputs to look at, if one is named."""
    named = os.environ.get(SCREENSHOTS)
    return None if not named else Path(named).resolve()
