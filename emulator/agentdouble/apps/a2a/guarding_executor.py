"""The executor between the SDK and the user's executor, which ends every turn properly.

Without it the SDK waits forever for an executor that sends no event, fails a turn that begins with
a status, and stores events that come after the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.types import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent
from a2a.utils.errors import (
    A2AError,
    InternalError,
    JSONParseError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp

from agentdouble.agents.loops import AgentLoops, LoopTask
from agentdouble.apps.a2a.events import EventOrder
from agentdouble.core import causes, ledger
from agentdouble.core.code_tool import DEFAULT_USER, Invocation, invoked_by
from agentdouble.errors import TurnTimeoutError
from agentdouble.journal.failures import beneath
from agentdouble.server.cross_loop_queue import CrossLoopQueue

if TYPE_CHECKING:
    from agentdouble.apps.a2a.application import A2AApp

Work = Callable[[EventQueue], Coroutine[Any, Any, None]]
Receive = Callable[[Event], Awaitable[None]]

_EVENTS = (Message, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent)


@dataclass(frozen=True)
class _Finished:
    error: BaseException | None = None


_Item = Union[Event, _Finished]  # noqa: UP007 (evaluated, also on Python 3.10)


class ExecutorLoop:
    """Runs users' executors, on the caller's loop until ``open`` is called."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loops: AgentLoops | None = None

    def open(self) -> None:
        """Run executors on separate loops from now on."""
        self._loops = AgentLoops()

    async def close(self) -> None:
        """Cancel the running executors and end the loops."""
        loops, self._loops = self._loops, None
        if loops is not None:
            await loops.close()

    async def run(self, work: Work, receive: Receive, limit_s: float) -> None:
        """Run work and receive its events here, one after the other; raise the error of the work.

        Raises TurnTimeoutError and cancels the work if it takes longer than ``limit_s``. If this is
        cancelled, it cancels the work and does not wait for it.
        """
        queue: CrossLoopQueue[_Item] = CrossLoopQueue()
        outbox = _Outbox(queue)
        running = await self._start(work, outbox, queue)
        limit = asyncio.get_running_loop().call_later(
            limit_s, lambda: queue.put(_Finished(TurnTimeoutError(limit_s)))
        )
        try:
            while True:
                for item in await queue.take():
                    if isinstance(item, _Finished):
                        return running.finished(item)
                    await receive(item)
        finally:
            limit.cancel()
            outbox.closed = True
            running.cancel()

    async def _start(self, work: Work, outbox: _Outbox, queue: CrossLoopQueue[_Item]) -> _Running:
        if self._loops is None:
            return _Running(asyncio.ensure_future(_work(work, outbox, queue)))
        return _Running(await self._loops.submit(self._name, lambda: _work(work, outbox, queue)))


class _Running:
    """Work that has been started and whose end is not known yet."""

    def __init__(self, work: LoopTask | asyncio.Future[None]) -> None:
        self._work = work
        self._is_over = False

    def finished(self, end: _Finished) -> None:
        """Raise the error that the work raised, if any."""
        self._is_over = not isinstance(end.error, TurnTimeoutError)
        if end.error is not None:
            raise end.error

    def cancel(self) -> None:
        """Cancel the work unless it has ended, because that would wake its loop for nothing."""
        if not self._is_over:
            self._work.cancel()
        elif isinstance(self._work, LoopTask):
            self._work.stop_watching()


async def _work(work: Work, outbox: _Outbox, queue: CrossLoopQueue[_Item]) -> None:
    try:
        await work(outbox)
    except asyncio.CancelledError as error:
        # the executor has cancelled itself, and the caller must not wait forever
        queue.put(_Finished(RuntimeError(f"It cancelled itself: {error!r}")))
        raise
    except BaseException as error:  # also sys.exit(), which would end the loop
        queue.put(_Finished(error if isinstance(error, Exception) else RuntimeError(repr(error))))
    else:
        queue.put(_Finished())


class _Outbox(EventQueue):
    """The event queue that an executor sees."""

    def __init__(self, queue: CrossLoopQueue[_Item]) -> None:
        self._queue = queue
        self._waiting = asyncio.Lock()
        self.closed = False

    async def enqueue_event(self, event: Event) -> None:
        """Send an event; wait while the queue is full.

        Raises TypeError for an object that is not an event, and an exception of protobuf for an
        event that cannot be written as JSON.
        """
        if not isinstance(event, _EVENTS):
            raise TypeError(
                f"The event queue accepts a Message, a Task, a TaskStatusUpdateEvent or a "
                f"TaskArtifactUpdateEvent, not a value of type {type(event).__name__}."
            )
        MessageToDict(event)  # one that JSON cannot represent would break every later response
        if self.closed:  # the turn has ended, so no caller receives the event
            return
        copy = type(event)()
        copy.CopyFrom(event)  # the executor may change the event after it has sent it
        self._queue.put(copy)
        if self._queue.full:
            async with self._waiting:  # the queue has one producer
                if self._queue.full and not self.closed:
                    await self._queue.wait_for_room()


FAILED = "The agent failed. The application's log says why."

_log = logging.getLogger(__name__)


class GuardingExecutor(AgentExecutor):
    """Runs an application's executor on a separate event loop, and orders its events.

    The application's name is the agent's name in the sandbox sessions of run_code. A2AErrors of the
    executor are sent to the caller as they are; the text of other errors only with ``show_errors``.
    """

    def __init__(self, executor: AgentExecutor, app: A2AApp, loop: ExecutorLoop) -> None:
        self._executor = executor
        self._app = app
        self._loop = loop
        self._running: dict[str, EventOrder] = {}
        self._canceling: dict[str, list[Event]] = {}  # the events of a user's cancel(), by task

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run a turn and end it properly (A2A-02, A2A-03)."""
        ledger.choose("U-A2A-EVENTS")
        order = self._order(context)
        task_id = context.task_id or ""
        self._running[task_id] = order
        try:
            headers = context.call_context.state.get("headers", {})
            with invoked_by(self._invocation(context)), causes.passed_on(headers):
                await self._turn(order, context, event_queue)
        finally:
            if self._running.get(task_id) is order:
                del self._running[task_id]

    async def ask_to_cancel(self, context: RequestContext) -> None:
        """Call the user's ``cancel``; raise its A2AError if it refuses."""
        events: list[Event] = []

        async def receive(event: Event) -> None:
            events.append(event)

        try:
            with invoked_by(self._invocation(context)):
                await self._loop.run(
                    lambda queue: self._executor.cancel(context, queue),
                    receive,
                    self._app.cancel_limit_s,
                )
        except NotImplementedError:
            pass
        except UnsupportedOperationError as error:
            raise TaskNotCancelableError(error.message) from error
        except A2AError:
            raise
        except TurnTimeoutError:
            limit_s = self._app.cancel_limit_s
            _log.warning("Task %s: cancel() did not return within %g s.", context.task_id, limit_s)
        except Exception:
            _log.exception("The executor of %s raised in cancel().", self._app.name)
        self._canceling[context.task_id or ""] = events

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task with the events of the executor's ``cancel``, or else as canceled."""
        task_id = context.task_id or ""
        order = self._running.get(task_id) or self._order(context)
        for event in self._canceling.pop(task_id, []):
            await _send(order.take(event), event_queue)
        await _send(order.cancel(), event_queue)

    async def _turn(
        self, order: EventOrder, context: RequestContext, event_queue: EventQueue
    ) -> None:
        async def receive(event: Event) -> None:
            await _send(order.take(event), event_queue)

        try:
            await self._loop.run(
                lambda queue: self._executor.execute(context, queue),
                receive,
                self._app.turn_limit_s,
            )
        except JSONParseError as error:
            raise InternalError(error.message) from error  # the SDK cannot answer with this error
        except A2AError:
            raise
        except Exception as error:
            cause = beneath(error)
            if cause is not None:
                raise InternalError(cause) from None
            _log.error("The executor of %s failed.", self._app.name, exc_info=error)
            await _send(order.fail(self._text_of(error)), event_queue)
            return
        await _send(order.finish(), event_queue)

    def _text_of(self, error: Exception) -> str:
        if isinstance(error, TurnTimeoutError):
            return str(error)
        return f"{type(error).__name__}: {error}" if self._app.show_errors else FAILED

    def _order(self, context: RequestContext) -> EventOrder:
        task_id, context_id = context.task_id or "", context.context_id or ""
        return EventOrder(task_id, context_id, context.message, context.current_task, self._now)

    def _now(self) -> Timestamp:
        now = Timestamp()
        now.FromDatetime(self._app.clock.now())
        return now

    def _invocation(self, context: RequestContext) -> Invocation:
        return Invocation(
            user_id=context.call_context.user.user_name or DEFAULT_USER,
            session_id=context.context_id or "",
            agent=self._app.name,
        )


async def _send(events: list[Event], queue: EventQueue) -> None:
    for event in events:
        await queue.enqueue_event(event)
