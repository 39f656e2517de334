"""Pictures of JupyterLab: the session of an agent in its launcher, and a notebook on it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentdouble import Emulator
from notebooks.pictures.screenshots import SIZE, invoke, save
from tests.jupyterlab.pages import opened_from_launcher, started
from tests.jupyterlab.server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_AGENT = "temperatures = [18.5, 21.5, 24.0, 20.5]"
_PLOT = """\
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.2))
plt.plot(temperatures, marker="o")
plt.show()"""
_SESSION = "ann / s1 (coder)"


def draw(browser: Browser, folder: Path) -> None:
    """Write ``lab-launcher.png`` and ``lab-session.png`` there."""
    with Emulator(allow_origins=("*",)) as double, TemporaryDirectory(prefix="lab-") as place:
        invoke(double, "s1", {"prompt": _AGENT})
        with (
            serving(Path(place), double.environment("jupyter")) as lab,
            started(browser, lab) as page,
        ):
            page.set_viewport_size(SIZE)
            page.get_by_text(_SESSION).first.wait_for()
            save(page, folder / "lab-launcher.png")

            notebook = opened_from_launcher(page, _SESSION)
            notebook.run("%whos")
            notebook.run(_PLOT)
            page.locator(".jp-Notebook-cell").first.click()
            notebook.command("notebook:delete-cell")  # the empty one that a new notebook has
            save(page, folder / "lab-session.png")
