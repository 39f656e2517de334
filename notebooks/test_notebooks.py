"""Each notebook runs from top to bottom, and shows what is kept in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from notebooks.executed import executed, found, read
from notebooks.output_match import kinds

AGAIN = "`python -m notebooks {}` writes what it shows today."


@pytest.mark.parametrize("path", found(), ids=lambda path: path.stem)
def test_it_runs_and_shows_what_is_kept(path: Path) -> None:
    """No cell fails, and each shows outputs of the kinds, and with the texts, that are kept."""
    kept, today = read(path), executed(path)

    assert _shown(kept) == _shown(today), AGAIN.format(path.stem)


def _shown(notebook: NotebookNode) -> list[tuple[Any, ...]]:
    return [
        (cell.id, cell.execution_count, kinds(cell))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
