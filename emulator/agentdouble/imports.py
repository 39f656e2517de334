"""Late imports, made by one thread at a time.

Two threads that import parts of one package at the same time can end in a deadlock. Python
resolves it by giving one of them a partly imported module, and that import then fails. So the
double's late imports go through this module, by one thread at a time. Other code of the process
does not use it: an import that fails while others run is tried again when they have ended.
"""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from agentdouble.real_files import real_files

_PATIENCE_S = 10.0  # the other thread may wait for a module that this one imports
_TRIES = 5
_SETTLES_IN_S = 1.0
_LOOK_S = 0.01

_turn = threading.RLock()
_counting = threading.Lock()
_begun = 0
_running = 0


def import_now(*modules: str) -> None:
    """Import missing modules while no other thread of the double imports; may block."""
    if are_whole(modules):
        return
    with _my_turn(), _counted(), real_files():
        for name in modules:
            _import(name)


def import_theirs(name: str) -> ModuleType:
    """Import a module of the user, which may take long, without making other threads wait.

    If it fails while the double imports something, it is imported again afterwards.
    """
    before = set(sys.modules)
    with _counted() as found_others:
        try:
            return importlib.import_module(name)
        except Exception:
            if not found_others():
                _forget_orphans(set(sys.modules) - before)
                raise
    with _my_turn():
        _wait_for_others()
        _forget_orphans(set(sys.modules) - before)
        return importlib.import_module(name)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Import inside without garbage collection; for a command, which has its own process.

    Imports leave no garbage, and the collection takes an eighth of their time. The objects that
    exist at the end are frozen, so that later collections skip them too.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def are_whole(modules: tuple[str, ...]) -> bool:
    """Return whether modules and their packages are completely imported."""
    return all(map(_is_whole, modules))


@contextmanager
def _my_turn() -> Iterator[None]:
    """Keep the double's other threads from importing inside, unless that takes too long."""
    have_turn = _turn.acquire(timeout=_PATIENCE_S)
    try:
        yield
    finally:
        if have_turn:
            _turn.release()


@contextmanager
def _counted() -> Iterator[Callable[[], bool]]:
    """Count an import; yield a function that returns whether other imports ran at the same time."""
    global _begun, _running
    with _counting:
        _begun += 1
        _running += 1
        number, beside_others = _begun, _running > 1
    try:
        yield lambda: beside_others or _begun > number
    finally:
        with _counting:
            _running -= 1


def _import(name: str) -> None:
    for tries_left in reversed(range(_TRIES)):
        before = set(sys.modules)
        try:
            for package in _with_packages(name):  # outer packages first
                importlib.import_module(package)
        except Exception:
            _wait_for_others()
            _forget_orphans(set(sys.modules) - before)
            if not tries_left:
                raise
        else:
            if _is_whole(name):
                _bind(name)
                return
            _wait_for_others()


def _bind(name: str) -> None:
    """Set each submodule as an attribute of its package, which an earlier try may have imported."""
    for part in _with_packages(name)[1:]:
        package, _, short = part.rpartition(".")
        if not hasattr(sys.modules[package], short):
            setattr(sys.modules[package], short, sys.modules[part])


def _wait_for_others() -> None:
    """Wait until no module is being imported, but at most ``_SETTLES_IN_S`` seconds."""
    for _ in range(round(_SETTLES_IN_S / _LOOK_S)):
        if not any(map(_is_being_made, list(sys.modules.values()))):
            return
        time.sleep(_LOOK_S)


def _forget_orphans(names: set[str]) -> None:
    """Remove modules whose package failed to import, because they would count as parts of it."""
    for name in sorted(names):
        if "." in name and name.rpartition(".")[0] not in sys.modules:
            sys.modules.pop(name, None)


def _is_whole(name: str) -> bool:
    modules = [sys.modules.get(one) for one in _with_packages(name)]
    return not any(module is None or _is_being_made(module) for module in modules)


def _is_being_made(module: object) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]
