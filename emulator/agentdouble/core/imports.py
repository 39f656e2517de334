"""Late imports, made by one thread at a time, and fast imports of a command.

Two threads that import parts of one package at the same time can end in a deadlock. Python
resolves it by giving one of them a partly imported module, and that import then fails.
"""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()


def import_now(*modules: str) -> None:
    """Import missing modules while no other thread of the double imports; may block."""
    if not are_imported(modules):
        with _lock:
            for name in modules:
                importlib.import_module(name)


def are_imported(modules: tuple[str, ...]) -> bool:
    """Return whether modules are completely imported."""
    specs = [getattr(sys.modules.get(name), "__spec__", None) for name in modules]
    return not any(spec is None or getattr(spec, "_initializing", False) for spec in specs)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Pause garbage collection during imports; for a command, which has its own process.

    Imports leave no garbage, and the collection takes an eighth of their time. The objects that
    exist at the end are frozen, so that later collections skip them too.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
