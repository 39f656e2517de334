"""Names that a module exports without importing their modules.

Such a module says where its names are in the form that type checkers read::

    if TYPE_CHECKING:
        from doublecheck.run.platform import connect as connect

LazyNames reads the same lines and imports a name's module when the name is first used. So a test
run that loads the pytest plugin does not import the rest. ``__all__`` is written out, because tools
that read code without running it, such as the one that makes the reference, see no other.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_IMPORT = re.compile(r"^    from (doublecheck\.\S+) import (\w+) as \2$", re.MULTILINE)


class LazyNames(dict[str, str]):
    """The names that the module in ``file`` exports, sorted, with their modules."""

    def __init__(self, file: str) -> None:
        imports = _IMPORT.findall(Path(file).read_text("utf-8"))
        super().__init__(sorted((name, home) for home, name in imports))

    def load(self, name: str) -> Any:
        """Import and return the object with this name. Raise KeyError for an unknown name."""
        return getattr(self.module(self[name]), name)

    def module(self, name: str) -> ModuleType:
        """Import and return a module."""
        from agentdouble.core.imports import import_now  # slow: agentdouble

        import_now(name)
        return sys.modules[name]
