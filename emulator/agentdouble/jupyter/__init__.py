"""Sandbox sessions as kernels of a Jupyter server, for JupyterLab, nbclient and others.

A kernel here is a kernel of a session. ``session_kernels`` finds, opens, makes, restarts and ends
them; ``kernelspecs`` names those that can be opened. ``session_kernel`` is one of them: it lets
its code take turns with that of InvokeTool, and tells its end. ``notebook_sessions`` are what
Jupyter calls sessions. ``kernel_clients`` connects each client to the kernel's sockets, and keeps
what it misses while it is disconnected. ``websocket_wire`` has the two forms of messages on a
WebSocket, and ``jupyter_routes`` the part of Jupyter's REST API that is served.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import HTTPConnection

PREFIX = "/jupyter"
IN_PATH = "token/"  # comes before a key in a path


def presented(connection: HTTPConnection) -> Iterator[str]:
    """Yield what a request has in each place where a Jupyter server expects its token.

    Clients that send no header with a WebSocket have it in the query or in the path.
    """
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "token"):
        yield token.strip()
    yield connection.query_params.get("token", "")
    path: str = connection.scope["path"]
    if path.startswith(f"{PREFIX}/{IN_PATH}"):
        yield path.removeprefix(f"{PREFIX}/{IN_PATH}").partition("/")[0]
