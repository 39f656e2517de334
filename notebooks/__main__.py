"""``python -m notebooks [NAME ...]``: run the notebooks and write what they show into them.

A cell that shows the same as before keeps its outputs to the byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat

from notebooks.executed import executed, found, read
from notebooks.output_match import looks


def main(names: list[str]) -> int:
    """Write the notebooks whose names begin so, all without a name; return an exit code."""
    paths = found(names)
    if not paths:
        print(f"No notebook's name begins with {' or '.join(names)}.", file=sys.stderr)
        return 2
    for path in paths:
        changed = write(path)
        print(f"{path.name}: {changed} cells show something else than before")
    return 0


def write(path: Path) -> int:
    """Run a notebook, write it, and return how many cells show something else than before."""
    before = {cell.id: cell for cell in read(path).cells if cell.cell_type == "code"}
    notebook = executed(path)
    changed = 0
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        if looks(cell) == looks(before[cell.id]):
            cell.outputs = before[cell.id].outputs
        else:
            changed += 1
    nbformat.write(notebook, path)
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
