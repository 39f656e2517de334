"""The A2A reference application; reference/executor.py implements its actions."""

import os

from reference.agentdouble_apps import reference_executor

from agentdouble import agent_card

app = reference_executor()


if __name__ == "__main__":
    host, port = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    app.run(agent_card(app, os.environ.get("URL", f"http://127.0.0.1:{port}")), host, port)
