"""The A2A reference application, with the platform's own SDK; see reference/executor.py."""

import os

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentSkill
from agentkit.apps import AgentkitA2aApp
from reference.executor import NAME, Steps

app = AgentkitA2aApp()
tasks: dict = {}
steps = Steps(tasks)


@app.task_store()
class Store(TaskStore):
    """A task store that the executor can delete from, with the method names of this SDK."""

    async def save(self, task, context=None):
        """Save a task."""
        tasks[task.id] = task

    async def get(self, task_id, context=None):
        """Return a task, or None."""
        return tasks.get(task_id)

    async def delete(self, task_id, context=None):
        """Delete a task."""
        tasks.pop(task_id, None)


@app.agent_executor()
class Executor(AgentExecutor):
    """Performs the action that the first word of a message names."""

    async def execute(self, context, event_queue):
        """Perform the action."""
        await steps.do(context, event_queue)

    async def cancel(self, context, event_queue):
        """Refuse: every action ends soon anyway."""
        raise NotImplementedError


def card(url: str) -> AgentCard:
    """Return the agent card for a URL."""
    does = "Performs the action that the first word of a message names."
    skill = AgentSkill(id=NAME, name=NAME, description=does, tags=["agent"])
    return AgentCard(
        name=NAME,
        description=does,
        url=url,
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )


if __name__ == "__main__":
    host, port = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    app.run(card(os.environ.get("URL", f"http://127.0.0.1:{port}")), host, port)
