"""The MCP reference application; its tools are in reference/tools.py."""

import os

from reference.agentdouble_apps import reference_tools

app = reference_tools()


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
