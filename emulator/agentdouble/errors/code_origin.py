"""Functions that say where a source file belongs: to this distribution, a package or the user."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Literal

Whose = Literal["ours", "installed", "user"]

_PACKAGES = frozenset({"site-packages", "dist-packages"})


@functools.lru_cache(maxsize=4096)
def whose(name: str) -> Whose:
    """Return the owner of the code that was compiled under a file name."""
    file = Path(name)
    if any(map(file.is_relative_to, _ours())):
        return "ours"
    installed = not _PACKAGES.isdisjoint(file.parts) or any(map(file.is_relative_to, _python()))
    return "installed" if installed or name.startswith("<frozen") else "user"


def caller(frame: FrameType | None) -> Whose:
    """Return who called, skipping installed packages: the nearest frame of the user or of ours."""
    for one in _outwards(frame):
        found = whose(one.f_code.co_filename)
        if found != "installed":
            return found
    return "installed"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _ours() -> tuple[Path, ...]:
    modules = filter(None, map(sys.modules.get, ("agentdouble", "doublecheck")))
    return tuple(Path(str(module.__file__)).parent for module in modules)


@functools.lru_cache(maxsize=1)
def _python() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return Path(paths["stdlib"]), Path(paths["platstdlib"])
