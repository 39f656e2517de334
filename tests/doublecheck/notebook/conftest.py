from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel


@pytest.fixture(scope="module")
def notebook() -> Iterator[NotebookKernel]:
    """A notebook shared by the tests of a module; cells keep their state."""
    with notebook_kernel() as kernel:
        yield kernel
