"""The executor that stands between the SDK and a user's: whatever that does, a turn ends well."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.types import Task
from a2a.utils.errors import (
    A2AError,
    InternalError,
    JSONParseError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from google.protobuf.timestamp_pb2 import Timestamp

from agentdouble import ledger
from agentdouble.apps.a2a.event_order import EventOrder
from agentdouble.apps.a2a.executor_loop import ExecutorLoop
from agentdouble.clock import Clock
from agentdouble.errors import TurnTimeoutError
from agentdouble.failing import beneath
from agentdouble.run_code import DEFAULT_USER, Invocation, invoked_by

FAILED = "The agent failed. The application's log says why."

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """How long a turn, and a ``cancel`` of the user's, may take; whether errors are told."""

    turn_s: float
    cancel_s: float
    show_errors: bool


class GuardingExecutor(AgentExecutor):
    """Runs an executor beside the server and puts its events right.

    Its ``name`` is the agent's in the sandbox sessions of run_code. A class of the A2A SDK's
    errors that an executor raises is answered as it is; the text of others only with
    ``show_errors``.
    """

    def __init__(
        self,
        executor: AgentExecutor,
        name: Callable[[], str],
        beside: ExecutorLoop,
        clock: Callable[[], Clock],
        limits: Limits,
    ) -> None:
        self._executor = executor
        self._name = name
        self._beside = beside
        self._clock = clock
        self._limits = limits
        self._running: dict[str, EventOrder] = {}
        self._asked: dict[str, list[Event]] = {}  # what a user's cancel has said, by task

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run a turn to a proper end (A2A-02, A2A-03)."""
        ledger.choose("U-A2A-EVENTS")
        course = self._course(context, context.current_task)
        task_id = context.task_id or ""
        self._running[task_id] = course
        try:
            with invoked_by(self._invocation(context)):
                await self._turn(course, context, event_queue)
        finally:
            if self._running.get(task_id) is course:
                del self._running[task_id]

    async def ask_to_cancel(self, context: RequestContext) -> None:
        """Let the user's executor say how a task is canceled; raise the A2AError it refuses with."""
        said: list[Event] = []

        async def hear(event: Event) -> None:
            said.append(event)

        try:
            with invoked_by(self._invocation(context)):
                await self._beside.run(
                    lambda queue: self._executor.cancel(context, queue),
                    hear,
                    self._limits.cancel_s,
                )
        except NotImplementedError:
            pass
        except UnsupportedOperationError as error:
            raise TaskNotCancelableError(error.message) from error
        except A2AError:
            raise
        except TurnTimeoutError:
            self._log("cancel() did not return within %g s", context, self._limits.cancel_s)
        except Exception:
            _log.exception("The executor of %s raised in cancel().", self._name())
        self._asked[context.task_id or ""] = said

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task as its executor has said, as canceled if it has said nothing."""
        task_id = context.task_id or ""
        course = self._running.get(task_id) or self._course(context, context.current_task)
        for event in self._asked.pop(task_id, []):
            await _send(course.take(event), event_queue)
        await _send(course.cancel(), event_queue)

    async def _turn(
        self, course: EventOrder, context: RequestContext, event_queue: EventQueue
    ) -> None:
        async def hear(event: Event) -> None:
            await _send(course.take(event), event_queue)

        try:
            await self._beside.run(
                lambda queue: self._executor.execute(context, queue), hear, self._limits.turn_s
            )
        except JSONParseError as error:
            raise InternalError(error.message) from error  # the SDK cannot answer with it
        except A2AError:
            raise
        except Exception as error:
            told = beneath(error)
            if told is not None:
                raise InternalError(told) from None
            _log.error("The executor of %s failed.", self._name(), exc_info=error)
            await _send(course.fail(self._told(error)), event_queue)
            return
        await _send(course.finish(), event_queue)

    def _told(self, error: Exception) -> str:
        if isinstance(error, TurnTimeoutError):
            return str(error)
        return f"{type(error).__name__}: {error}" if self._limits.show_errors else FAILED

    def _course(self, context: RequestContext, task: Task | None) -> EventOrder:
        return EventOrder(
            context.task_id or "", context.context_id or "", context.message, task, self._stamp
        )

    def _stamp(self) -> Timestamp:
        stamp = Timestamp()
        stamp.FromDatetime(self._clock().now())
        return stamp

    def _invocation(self, context: RequestContext) -> Invocation:
        return Invocation(
            user_id=context.call_context.user.user_name or DEFAULT_USER,
            session_id=context.context_id or "",
            agent=self._name(),
        )

    def _log(self, what: str, context: RequestContext, *arguments: object) -> None:
        _log.warning("Task %s: " + what + ".", context.task_id, *arguments)


async def _send(events: list[Event], queue: EventQueue) -> None:
    for event in events:
        await queue.enqueue_event(event)
