"""The real file system, in a test that has replaced it.

pyfakefs replaces ``os``, ``open`` and ``pathlib`` for the whole process, and so for a double that
serves in a thread of it. While the double is asked, pyfakefs pauses. What the double does by itself
in the background must not meet a change: descriptors that ``os.pipe()`` returns while files are
faked are the numbers of others when they are closed for real.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_AT_MOST_S = 10.0  # for what hangs in the background

_turn = threading.Lock()
_change = threading.Condition()
_at_work = 0
_to_be_faked = False
_callers = 0
_paused: tuple[Any, Mapping[str, ModuleType]] | None = None


@contextmanager
def real_files() -> Iterator[None]:
    """Have the real file system inside, in every thread of the process."""
    global _callers, _paused
    with _turn:
        if not _callers:
            _paused = _pause()
        _callers += 1
    try:
        yield
    finally:
        with _turn:
            _callers -= 1
            if not _callers and _paused is not None:
                _resume(*_paused)


@contextmanager
def used_in_background() -> Iterator[None]:
    """Note that files are used inside without being asked, so that their replacement waits."""
    global _at_work
    with _change:
        _at_work += 1
    try:
        yield
    finally:
        with _change:
            _at_work -= 1
            _change.notify_all()


@contextmanager
def to_be_faked() -> Iterator[None]:
    """Have no background work that uses files inside, where a test replaces the file system."""
    global _to_be_faked
    with _change:
        _to_be_faked = True
        _change.wait_for(lambda: not _at_work, _AT_MOST_S)
    try:
        yield
    finally:
        _to_be_faked = False


def files_are_faked() -> bool:
    """Whether a test has replaced the file system, also while that pauses, or is about to."""
    return _to_be_faked or _patcher() is not None


def _patcher() -> Any:
    """Return pyfakefs's patcher, or None if no test uses it now."""
    pyfakefs: Any = sys.modules.get("pyfakefs.fake_filesystem_unittest")
    return None if pyfakefs is None else pyfakefs.Patcher.PATCHER


def _pause() -> tuple[Any, Mapping[str, ModuleType]] | None:
    """Pause pyfakefs; return its patcher, and the modules that it forgets when it pauses.

    They are those that were imported since it began, because they use its replacements.
    """
    patcher = _patcher()
    if patcher is None or not patcher.is_patching:
        return None
    before = dict(sys.modules)
    patcher.pause()
    return patcher, {name: one for name, one in before.items() if name not in sys.modules}


def _resume(patcher: Any, forgotten: Mapping[str, ModuleType]) -> None:
    """Resume pyfakefs with the modules of before, unless the test has ended meanwhile."""
    if patcher is not _patcher():
        return
    patcher.resume()
    for name, module in forgotten.items():
        sys.meta_path[0].find_spec(name, None)  # so that pyfakefs forgets it after the test
        sys.modules[name] = module
