"""This repository's notebooks in JupyterLab, run as by a reader.

No other notebook is open: JupyterLab may draw its outputs again, and load what is in them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.jupyterlab.conftest import NOTEBOOKS
from tests.jupyterlab.pages import DARK, LIGHT, READABLE, opened
from tests.jupyterlab.server import Lab

pytestmark = [pytest.mark.once, pytest.mark.slow]

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("notebook", sorted(file.name for file in NOTEBOOKS.glob("*.ipynb")))
def test_notebook_runs_and_is_readable(
    page: Page, lab: Lab, notebook: str, screenshots: Path | None
) -> None:
    """No cell fails or loads from elsewhere, and each text stands out in either theme."""
    faint = {}
    with opened(page, notebook) as view:
        view.run_all()
        cells = view.code_cells()
        for theme in (LIGHT, DARK):
            view.show_in(theme)
            faint[theme] = view.faint_texts(READABLE)
            if screenshots is not None:
                view.photograph(screenshots / theme.split()[-1].lower(), Path(notebook).stem)

    assert [] == [cell["source"] for cell in cells if not cell["execution_count"]]
    assert [] == [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"]
    assert {LIGHT: [], DARK: []} == faint
    assert [] == [url for url in view.requests if not url.startswith((lab.url, "data:", "blob:"))]
