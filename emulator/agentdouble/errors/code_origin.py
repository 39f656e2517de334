"""Functions that say where a source file belongs: to this distribution, a package or the user."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Literal

Origin = Literal["ours", "installed", "user"]

_PACKAGES = frozenset({"site-packages", "dist-packages"})


@functools.lru_cache(maxsize=4096)
def origin_of(name: str) -> Origin:
    """Return the owner of the code that was compiled under a file name."""
    file = Path(name)
    if any(map(file.is_relative_to, _own())):
        return "ours"
    installed = not _PACKAGES.isdisjoint(file.parts) or any(map(file.is_relative_to, _stdlib()))
    return "installed" if installed or name.startswith("<frozen") else "user"


def caller(frame: FrameType | None) -> Origin:
    """Return who called, skipping installed packages: the nearest frame of the user or of ours."""
    for outer in _outwards(frame):
        origin = origin_of(outer.f_code.co_filename)
        if origin != "installed":
            return origin
    return "installed"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _own() -> tuple[Path, ...]:
    modules = filter(None, map(sys.modules.get, ("agentdouble", "doublecheck")))
    return tuple(Path(str(module.__file__)).parent for module in modules)


@functools.lru_cache(maxsize=1)
def _stdlib() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return Path(paths["stdlib"]), Path(paths["platstdlib"])
