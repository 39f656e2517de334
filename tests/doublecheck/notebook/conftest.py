from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel


@pytest.fixture(scope="module")
def notebook() -> Iterator[NotebookKernel]:
    """One notebook for a module: the state of its cells is kept."""
    with notebook_kernel() as kernel:
        yield kernel
