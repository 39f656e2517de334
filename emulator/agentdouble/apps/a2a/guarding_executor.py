"""The executor between the SDK and the user's executor, which ends every turn properly.

Without it the SDK waits forever for an executor that sends no event, fails a turn that begins with
a status, and stores events that come after the end.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.utils.errors import (
    A2AError,
    InternalError,
    JSONParseError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from google.protobuf.timestamp_pb2 import Timestamp

from agentdouble.apps.a2a.events import EventOrder
from agentdouble.core import ledger, request_cause
from agentdouble.core.code_tool import DEFAULT_USER, Invocation, invoked_by
from agentdouble.errors import TurnTimeoutError
from agentdouble.journal.failures import beneath

if TYPE_CHECKING:
    from agentdouble.apps.a2a.served_application import ServedApplication
from agentdouble.apps.a2a.executor_loop import ExecutorLoop

_log = logging.getLogger(__name__)

FAILED = "The agent failed. The application's log says why."


class GuardingExecutor(AgentExecutor):
    """Runs an application's executor on a separate event loop, and orders its events.

    The application's name is the agent's name in the sandbox sessions of run_code. A2AErrors of the
    executor are sent to the caller as they are; the text of other errors only with ``show_errors``.
    """

    def __init__(self, executor: AgentExecutor, app: ServedApplication, loop: ExecutorLoop) -> None:
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
            with invoked_by(self._invocation(context)), request_cause.passed_on(headers):
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
