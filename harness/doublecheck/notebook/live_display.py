"""show(): a stream as it arrives, in one growing display."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterable, Coroutine, Iterable, Sequence
from typing import Any, ClassVar, TypeVar, overload

from doublecheck.core.notebook_repr import Series, notebook_shell
from doublecheck.errors import ArgumentError
from doublecheck.values.agents import AgentEvent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_SHARE = 5  # redrawing a display takes at most 1 / _SHARE of the time,
_AT_ONCE_S = 0.5  # except for this long: a burst of events is shown before it pauses


class Collected(Series[T_co], noun="event", drawn_by="notebook.display.agents.collected"):
    """The events of a stream that was shown."""

    _cell: ClassVar[int | None] = None

    def _ipython_display_(self) -> None:
        """Show nothing if the cell that returns it has already shown it."""
        if self._cell is None or self._cell != _cell():
            raise NotImplementedError  # IPython then shows it as usual


@overload
def show(stream: AsyncIterable[T]) -> Coroutine[Any, Any, Collected[T]]: ...


@overload
def show(stream: Iterable[T]) -> Collected[T]: ...


def show(stream: Any) -> Any:
    """Show the events of a stream as they arrive, and return all of them.

    Use ``show(platform.agents.run_sse(session, "hi"))`` or, with the async client,
    ``await show(...)``. A notebook gets one display that grows, a terminal a line for each event.
    If the stream ends early, the events so far are shown and the stream is closed. Raises
    ArgumentError for an object that is not a stream.
    """
    if isinstance(stream, AsyncIterable):
        return _show_async(stream)
    if not isinstance(stream, Iterable) or isinstance(stream, (str, bytes)):
        raise ArgumentError(
            f"show() needs a stream, such as platform.stream(...), but got {stream!r:.80}."
        )
    return _show(stream)


def _show(stream: Iterable[T]) -> Collected[T]:
    events: list[T] = []
    screen = _screen()
    try:
        for event in stream:
            events.append(event)
            screen.arrived(events)
    finally:
        if events:
            screen.ended(events)
        if inspect.isgenerator(stream):
            stream.close()
    if not events:  # not in the finally: a stream that failed shows only its error
        screen.ended(events)
    return _collected(events)


async def _show_async(stream: AsyncIterable[T]) -> Collected[T]:
    events: list[T] = []
    screen = _screen()
    try:
        async for event in stream:
            events.append(event)
            screen.arrived(events)
    finally:
        if events:
            screen.ended(events)
        if inspect.isasyncgen(stream):
            await stream.aclose()
    if not events:
        screen.ended(events)
    return _collected(events)


class _Screen:
    """Shows a line for each event, outside of notebooks."""

    def arrived(self, events: Sequence[Any]) -> None:
        print(_line(events[-1]), flush=True)  # noqa: T201

    def ended(self, events: Sequence[Any]) -> None:
        """Do nothing, because each event was shown when it arrived."""


class _Display(_Screen):
    """A notebook display that is redrawn as events arrive."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._began = time.perf_counter()
        self._drawing_s = 0.0
        self._drawn = 0

    def arrived(self, events: Sequence[Any]) -> None:
        began = time.perf_counter()
        if self._drawing_s > _AT_ONCE_S + (began - self._began) / _SHARE:
            return
        self._draw(events)
        self._drawing_s += time.perf_counter() - began

    def ended(self, events: Sequence[Any]) -> None:
        if self._handle is None or len(events) > self._drawn:
            self._draw(events)

    def _draw(self, events: Sequence[Any]) -> None:
        from IPython.display import display  # optional: IPython

        self._drawn = len(events)
        if self._handle is None:
            self._handle = display(Collected(events), display_id=True)
        else:
            self._handle.update(Collected(events))


def _line(event: Any) -> str:
    """Return an event as text."""
    if isinstance(event, AgentEvent) and event.error is None:
        only_text = all("text" in part for part in event.parts)
        return f"{event.author or event.role}: {event.text}" if only_text else str(event)
    return str(event)


def _screen() -> _Screen:
    return _Screen() if _cell() is None else _Display()


def _collected(events: Iterable[T]) -> Collected[T]:
    collected = Collected(events)
    vars(collected)["_cell"] = _cell()
    return collected


def _cell() -> int | None:
    """Return the number of the running notebook cell, or None outside of notebooks."""
    shell = notebook_shell()
    return None if shell is None else int(shell.execution_count)
