from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel


@pytest.fixture(scope="package")
def notebook() -> Iterator[NotebookKernel]:
    """A notebook that all these tests share."""
    with notebook_kernel() as kernel:
        yield kernel
