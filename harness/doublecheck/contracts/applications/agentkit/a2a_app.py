"""The A2A reference application, with the platform's own SDK; see reference/executor.py."""

import os

from a2a.types import AgentCapabilities, AgentCard, AgentSkill
from agentkit.apps import AgentkitA2aApp
from reference.executor import NAME, classes

app = AgentkitA2aApp()
Store, Executor = classes()
app.task_store()(Store)
app.agent_executor()(Executor)


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
