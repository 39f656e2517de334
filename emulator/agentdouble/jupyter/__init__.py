"""Sandbox sessions as kernels of a Jupyter server, for JupyterLab, nbclient and others.

A kernel here is a kernel of a session. ``session_kernels`` finds, makes, restarts and ends them, and
lets their code take turns with that of InvokeTool. ``kernel_clients`` connects each client to the
kernel's sockets, and keeps what it misses while it is disconnected. ``websocket_wire`` has the two
forms of messages on a WebSocket, and ``jupyter_routes`` the part of Jupyter's REST API that gateways
serve.
"""

from __future__ import annotations

PREFIX = "/jupyter"
