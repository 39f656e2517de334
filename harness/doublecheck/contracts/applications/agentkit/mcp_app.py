"""The MCP reference application, with the platform's own SDK.

Its tools are in reference/tools.py.
"""

import os

from agentkit.apps import AgentkitMCPApp
from reference import tools

app = AgentkitMCPApp()
for function in tools.TOOLS:
    app.tool(function)
app.agent_as_a_tool(tools.AGENT)


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
