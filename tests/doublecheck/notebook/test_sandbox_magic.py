"""``%%sandbox`` in the kernel of a notebook."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel


@pytest.fixture(scope="module", autouse=True)
def _loaded(notebook: NotebookKernel) -> None:
    assert notebook.run("%load_ext doublecheck").error is None


def test_a_cell_runs_in_the_session(notebook: NotebookKernel) -> None:
    """State stays in the session's kernel, and this one has none of it."""
    notebook.run("%%sandbox\nx = 6 * 7")

    assert ">42<" in notebook.run("%%sandbox\nx").html
    assert "NameError" in (notebook.run("x").error or "")
