"""Errors in a notebook: the user's own lines that led to the error, and the message.

A notebook shows every frame of a traceback with its source. For an error of ours that is a page of
frames of ours, of httpx and of asyncio. IPython calls ``_render_traceback_`` of an exception to
show it. Outside a notebook tracebacks are unchanged.

The file of a frame says who owns it. A function of the user that we call is shown, and installed
code is not. ``%xmode Verbose`` shows every frame but no variables, because IPython would print
those of httpx, which contain keys.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

Origin = Literal["ours", "installed", "user"]

_PACKAGES = frozenset({"site-packages", "dist-packages"})

_FEW = 4
_ALL = "Verbose"
_OURS = frozenset({"agentdouble", "doublecheck"})


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


class ShownShort:
    """An exception that a notebook shows without a page of frames; name it before its base class.

    It is pickled without calling the class, because its message is not the class's argument.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        assert isinstance(self, BaseException)
        return _unfinished, (type(self), self.args), self.__dict__

    def _render_traceback_(self) -> list[str]:
        assert isinstance(self, BaseException)
        return short(self)


def short(error: BaseException) -> list[str]:
    """Return the lines that a notebook shows for an error; every frame after ``%xmode Verbose``."""
    shower = _shower()
    if shower is None:
        return _full(error)
    cut, frames = alone(error), own_frames(error.__traceback__)
    if frames is None:  # a magic: no frame of the user led to the error
        return list(shower.get_exception_only(type(error), error))
    try:
        return list(shower.structured_traceback(type(cut), cut, frames, tb_offset=0))
    except Exception:  # IPython cannot show some lines, such as the end of a triple-quoted string
        return traceback.format_exception(type(cut), cut, frames)


def shorten(error: BaseException) -> None:
    """Make a notebook show an error that is not ours in the same way as ours."""
    if _shell() is not None and not hasattr(error, "_render_traceback_"):
        error._render_traceback_ = partial(short, error)  # type: ignore[attr-defined]


def leave_message(error: BaseException) -> None:
    """Make a notebook show only the message of an error, as for a magic's error."""
    vars(error)["_render_traceback_"] = partial(_message, error)


def own_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the frames of the user's code, only a few if there are many, or None."""
    return _traceback_of(_shortened(_user_frames(frames)))


def alone(error: BaseException) -> BaseException:
    """Return an error of the same type and message without its cause."""
    cut = type(error).__new__(type(error), *error.args)
    cut.args = error.args
    cut.__dict__.update(error.__dict__)
    return cut


def _unfinished(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    return kind.__new__(kind, *args)


def _message(error: BaseException) -> list[str]:
    shower = _shower()
    return _full(error) if shower is None else list(shower.get_exception_only(type(error), error))


def _full(error: BaseException) -> list[str]:
    """Return every frame as plain Python shows it; IPython's variables may be secrets."""
    return traceback.format_exception(type(error), error, error.__traceback__)


def _shower() -> Any:
    """Return the shell's traceback formatter, or None if every frame is to be shown.

    The caller has imported IPython; this function must not import it.
    """
    shell = _shell()
    return None if shell is None or shell.InteractiveTB.mode == _ALL else shell.InteractiveTB


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _user_frames(frames: TracebackType | None) -> list[TracebackType]:
    """Return the frames of the user's code, outermost first."""
    return [frame for frame in _frames(frames) if _origin_of_frame(frame.tb_frame) == "user"]


def _origin_of_frame(frame: FrameType) -> Origin:
    """Return the owner of a frame; generated code, as for a dataclass, has no file."""
    named = str(frame.f_globals.get("__name__")).partition(".")[0]
    if named in _OURS:
        return "ours"
    return origin_of(frame.f_code.co_filename)


def _frames(frames: TracebackType | None) -> Iterator[TracebackType]:
    while frames is not None:
        yield frames
        frames = frames.tb_next


def _shortened(frames: list[TracebackType]) -> list[TracebackType]:
    """Leave out the middle frames if there are many, as in a recursion."""
    return frames if len(frames) <= _FEW else [frames[0], *frames[1 - _FEW :]]


def _traceback_of(frames: list[TracebackType]) -> TracebackType | None:
    """Return a traceback of only these frames."""
    linked: TracebackType | None = None
    for frame in reversed(frames):
        linked = TracebackType(linked, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return linked
