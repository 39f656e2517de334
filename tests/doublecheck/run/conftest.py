from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel


@pytest.fixture(scope="package")
def notebook() -> Iterator[NotebookKernel]:
    """One notebook for all of these tests."""
    with notebook_kernel() as kernel:
        yield kernel
