"""One executor of A2A: as an application of a double, and on the bare SDK under uvicorn.

python a2a_apps.py PORT [DATABASE]
"""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskStore, TaskUpdater
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from agentdouble import A2AApp, agent_card

app = A2AApp("bench")


@app.agent_executor(runner="echo")
class Executor(AgentExecutor):
    """Repeats the text of a message."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        """Send the task, an artifact, and the end."""
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        await updater.add_artifact([new_text_part(context.get_user_input())])
        await updater.complete()

    async def cancel(self, context: Any, event_queue: Any) -> None:
        """Do nothing."""


def serve(port: int, database: str | None = None) -> None:
    """Serve it on the bare SDK, with tasks in memory or in a database; log no requests."""
    store: TaskStore = InMemoryTaskStore()
    if database is not None:
        store = DatabaseTaskStore(create_async_engine(database))
    card = agent_card("bare", "http://127.0.0.1")
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=store, agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error")


if __name__ == "__main__":
    serve(int(sys.argv[1]), *sys.argv[2:])
