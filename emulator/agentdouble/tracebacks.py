"""Errors in a notebook: the user's own lines that led there, and the message.

A notebook shows every frame of a traceback with its source, and an error that comes from ours is
a page of frames of ours, of httpx and of asyncio. IPython asks an exception how it wants to be
shown: ``_render_traceback_``. Anywhere else tracebacks are as they always are.

Files tell which frames are whose: a function of the user's that we call is shown, and what is
installed is not. ``%xmode Verbose`` shows every frame, but no variables: IPython would print those of
httpx, and with them keys.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from functools import partial
from types import FrameType, TracebackType
from typing import Any

from agentdouble.code_origin import Whose, whose

_FEW = 4
_ALL = "Verbose"
_OURS = frozenset({"agentdouble", "doublecheck"})


class ShownShort:
    """An exception that a notebook shows without a page of frames; to be named before its base.

    It is pickled as it is: what it says is not what its class is called with.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        assert isinstance(self, BaseException)
        return _unfinished, (type(self), self.args), self.__dict__

    def _render_traceback_(self) -> list[str]:
        assert isinstance(self, BaseException)
        return short(self)


def short(error: BaseException) -> list[str]:
    """Return what a notebook shows of an error; every frame of it after ``%xmode Verbose``."""
    shower = _shower()
    if shower is None:
        return _whole(error)
    cut, frames = alone(error), own_frames(error.__traceback__)
    if frames is None:  # a magic: nothing of the user's led there
        return list(shower.get_exception_only(type(error), error))
    try:
        return list(shower.structured_traceback(type(cut), cut, frames, tb_offset=0))
    except Exception:  # IPython cannot show every line: one that ends a text in triple quotes, say
        return traceback.format_exception(type(cut), cut, frames)


def shorten(error: BaseException) -> None:
    """Have a notebook show an error that is not ours as it shows those that are."""
    if _shell() is not None and not hasattr(error, "_render_traceback_"):
        error._render_traceback_ = partial(short, error)  # type: ignore[attr-defined]


def leave_message(error: BaseException) -> None:
    """Have a notebook show an error's message alone: a magic's, to which its own line has led."""
    vars(error)["_render_traceback_"] = partial(_message, error)


def own_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the frames of the user's code, a few of them where they are many, None if none is."""
    return _linked(_few(_own(frames)))


def alone(error: BaseException) -> BaseException:
    """Return an error of the same type and message that does not tell what caused it."""
    cut = type(error).__new__(type(error), *error.args)
    cut.args = error.args
    cut.__dict__.update(error.__dict__)
    return cut


def _unfinished(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    return kind.__new__(kind, *args)


def _message(error: BaseException) -> list[str]:
    shower = _shower()
    return _whole(error) if shower is None else list(shower.get_exception_only(type(error), error))


def _whole(error: BaseException) -> list[str]:
    """Return every frame, in plain Python's way: IPython's shows variables, which may be secrets."""
    return traceback.format_exception(type(error), error, error.__traceback__)


def _shower() -> Any:
    """Return what shortens tracebacks in the shell that there is, None where all is to be shown.

    Whoever asks has imported IPython; this must not be what does.
    """
    shell = _shell()
    return None if shell is None or shell.InteractiveTB.mode == _ALL else shell.InteractiveTB


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _own(frames: TracebackType | None) -> list[TracebackType]:
    """Return the frames of the user's code, outermost first."""
    return [one for one in _each(frames) if _whose(one.tb_frame) == "user"]


def _whose(frame: FrameType) -> Whose:
    """Return whose a frame is; code that a library has made, for a dataclass say, has no file."""
    named = str(frame.f_globals.get("__name__")).partition(".")[0]
    if named in _OURS:
        return "ours"
    return whose(frame.f_code.co_filename)


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
