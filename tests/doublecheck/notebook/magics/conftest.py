from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import PATIENT, NotebookKernel, notebook_kernel


@pytest.fixture(scope="package")
def notebook() -> Iterator[NotebookKernel]:
    """A notebook for the tests of the magics, with a double in ``platform``."""
    with notebook_kernel() as kernel:
        ran = kernel.run(
            "%load_ext doublecheck\nimport doublecheck\nplatform = doublecheck.connect()" + PATIENT
        )
        assert ran.error is None
        yield kernel


@pytest.fixture(autouse=True)
def _reset(notebook: NotebookKernel) -> None:
    """Reset the double before each test and run cells on it."""
    assert notebook.run("platform.reset(wait=False)\n%sandbox use platform").error is None
