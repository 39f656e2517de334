"""The reference application of A2A; what it does: reference/executor.py."""

import os

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskStore
from reference.executor import NAME, Steps

from agentdouble import A2AApp, agent_card

app = A2AApp(NAME)
kept: dict = {}
steps = Steps(kept)


@app.task_store()
class Kept(TaskStore):
    """A task store whose tasks the executor can forget."""

    def save_task(self, task):
        """Keep a task."""
        kept[task.id] = task

    def get_task(self, task_id):
        """Return a task, or None."""
        return kept.get(task_id)

    def delete_task(self, task_id):
        """Forget a task."""
        kept.pop(task_id, None)


@app.agent_executor(runner="echo")
class Executor(AgentExecutor):
    """Performs the action that the first word of a message names."""

    async def execute(self, context, event_queue):
        """Do it."""
        await steps.do(context, event_queue)


if __name__ == "__main__":
    host, port = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    app.run(agent_card(app, os.environ.get("URL", f"http://127.0.0.1:{port}")), host, port)
