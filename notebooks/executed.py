"""Running a notebook afresh, in a kernel and a folder of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from notebooks.normalize import Normalizer

FOLDER = Path(__file__).parent
WITHIN_S = 300  # a kernel starts, a cell ends, and what it shows arrives
_OF_PLATFORMS = ("AGENTDOUBLE_", "DOUBLECHECK_", "PLATFORM_")
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def found(names: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks whose names begin so, in their order; all of them without a name."""
    beginnings = tuple(names) or ("",)
    return [path for path in sorted(FOLDER.glob("*.ipynb")) if path.name.startswith(beginnings)]


def read(path: Path) -> NotebookNode:
    """Return a notebook as it is in its file."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> NotebookNode:
    """Return a notebook with what its cells show today; raise CellExecutionError."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as run:
        client = NotebookClient(
            notebook,
            timeout=WITHIN_S,
            startup_timeout=WITHIN_S,
            iopub_timeout=WITHIN_S,
            record_timing=False,
            resources={"metadata": {"path": folder}},
            config=_sockets_in(run),
        )
        client.execute(env=_environment())
    notebook.metadata = nbformat.from_dict(_METADATA)
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
    Normalizer().notebook(notebook)
    nbformat.validate(notebook)
    return notebook


def _sockets_in(folder: str) -> Config:
    """Have the kernel's sockets be files: a port that was free might be another's by then."""
    config = Config()
    config.KernelManager.transport = "ipc"
    config.KernelManager.connection_file = f"{folder}/kernel.json"
    return config


def _environment() -> dict[str, str]:
    """Leave out what names a platform: the notebooks have doubles of their own."""
    return {name: one for name, one in os.environ.items() if not name.startswith(_OF_PLATFORMS)}
