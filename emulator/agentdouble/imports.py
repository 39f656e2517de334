"""Imports where they are first needed, which several threads must not do at once.

Two threads that import parts of one package at the same time can end in a deadlock. Python
resolves it and hands a half-made module to one of them, whose import then fails. So what the
double imports late is imported here, by one thread at a time. Other code of the process does not
ask here: what fails while others import is imported again when they are through.
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

_PATIENCE_S = 10.0  # whoever has the turn may wait for a module that this thread is importing
_TRIES = 5
_SETTLES_IN_S = 1.0
_LOOK_S = 0.01

_turn = threading.RLock()
_counting = threading.Lock()
_begun = 0
_running = 0


def import_now(*modules: str) -> None:
    """Import modules, if they are not yet, when no other thread of the double does; may block."""
    if are_whole(modules):
        return
    with _my_turn(), _counted():
        for name in modules:
            _import(name)


def import_theirs(name: str) -> ModuleType:
    """Import a module of the user's, which may take long: nobody waits for it.

    One that fails while the double imports something is imported again when the double does not.
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
    """Import inside without looking for garbage, for a command, whose process is its own.

    Imports leave none, and looking for it takes an eighth of their time. What is there at the end
    stays as long as the process, so no later collection looks at it either.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def are_whole(modules: tuple[str, ...]) -> bool:
    """Whether modules are imported, with the packages they are in: none is still being made."""
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
    """Count an import; give what tells whether there were others meanwhile."""
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
            for package in _with_packages(name):  # outer ones first, as who imports only those
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
    """Have each package know its part: who imported that may have had an earlier try's package."""
    for part in _with_packages(name)[1:]:
        package, _, short = part.rpartition(".")
        if not hasattr(sys.modules[package], short):
            setattr(sys.modules[package], short, sys.modules[part])


def _wait_for_others() -> None:
    """Wait until no module is being made, but not for one that takes long."""
    for _ in range(round(_SETTLES_IN_S / _LOOK_S)):
        if not any(map(_is_being_made, list(sys.modules.values()))):
            return
        time.sleep(_LOOK_S)


def _forget_orphans(names: set[str]) -> None:
    """Forget modules whose package could not be imported: they would be taken for parts of it."""
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
