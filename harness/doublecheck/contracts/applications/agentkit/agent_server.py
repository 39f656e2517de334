"""The reference agent in API-server mode, with the platform's own SDK.

Its agents are in agents/.
"""

import os

from agentkit.apps import AgentkitAgentServerApp
from agents.doublecheck_reference import root_agent

server = AgentkitAgentServerApp(agent=root_agent)


if __name__ == "__main__":
    server.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
