"""Errors in a notebook: the user's own lines that led there, and the message.

A notebook shows every frame of a traceback with its source, and an error that comes from ours is
a page of frames of ours, of httpx and of asyncio. IPython asks an exception how it wants to be
shown: ``_render_traceback_``. Anywhere else tracebacks are as they always are.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_FEW = 4
_ALL = "Verbose"
_PACKAGES = frozenset({"site-packages", "dist-packages"})


def short(error: BaseException) -> list[str]:
    """Return what a notebook shows of an error; every frame of it after ``%xmode Verbose``."""
    shower = _shower()
    if shower is None or shower.mode == _ALL:  # in plain Python's way: locals may be secrets
        return traceback.format_exception(type(error), error, error.__traceback__)
    frames = _linked(_few(_own(error.__traceback__)))
    if frames is None:  # a magic: nothing of the user's led there
        return list(shower.get_exception_only(type(error), error))
    alone = _alone(error)
    return list(shower.structured_traceback(type(alone), alone, frames, tb_offset=0))


def _shower() -> Any:
    """Return what shows tracebacks in the shell that there is, None outside of any.

    Whoever asks has imported IPython; this must not be what does.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if shell is None else shell.InteractiveTB


def _alone(error: BaseException) -> BaseException:
    """Return an error of the same type and message that does not tell what caused it."""
    alone = type(error).__new__(type(error), *error.args)
    alone.args = error.args
    alone.__dict__.update(error.__dict__)
    return alone


def _own(frames: TracebackType | None) -> list[TracebackType]:
    """Return the frames of the user's code, outermost first."""
    return [one for one in _each(frames) if not _is_foreign(one.tb_frame)]


def _each(frames: TracebackType | None) -> Iterator[TracebackType]:
    while frames is not None:
        yield frames
        frames = frames.tb_next


def _few(frames: list[TracebackType]) -> list[TracebackType]:
    """Leave out the middle of many: a recursion, say."""
    return frames if len(frames) <= _FEW else [frames[0], *frames[1 - _FEW :]]


def _linked(frames: list[TracebackType]) -> TracebackType | None:
    """Return a traceback of these frames alone."""
    linked: TracebackType | None = None
    for one in reversed(frames):
        linked = TracebackType(linked, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return linked


def _is_foreign(frame: FrameType) -> bool:
    """Whether a frame is of a package, of Python itself, or of ours."""
    file = Path(frame.f_code.co_filename)
    return (
        file.name.startswith("<frozen")
        or not _PACKAGES.isdisjoint(file.parts)
        or any(map(file.is_relative_to, _foreign_places()))
    )


@functools.lru_cache(maxsize=1)
def _foreign_places() -> tuple[Path, ...]:
    python = (Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib"))
    ours = filter(None, map(sys.modules.get, ("agentdouble", "doublecheck")))
    return (*python, *(Path(str(module.__file__)).parent for module in ours))
