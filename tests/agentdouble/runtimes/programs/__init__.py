"""Programs for runtimes whose bytes matter or that need no framework."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any


def table(name: str, program: str, directory: Path) -> dict[str, Any]:
    """Return a runtime of one instance that runs a program in a new directory."""
    shutil.copy(Path(__file__).with_name(program), directory)
    command = [sys.executable, program]
    return {"name": name, "command": command, "directory": str(directory), "max_instances": 1}
