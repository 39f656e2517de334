"""The reference application of MCP; its tools: reference/tools.py."""

import os

from reference import tools

from agentdouble import MCPApp

app = MCPApp(tools.NAME)
for function in tools.TOOLS:
    app.tool(function)
app.agent_as_a_tool(tools.AGENT)


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
