"""Programs that start quickly, and runtimes for them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentdouble.core.clock import Clock
from agentdouble.runtimes.launching import InstanceLauncher
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.settings import Settings

# Answers every request with a name of its process and the variable SAYS; ends at once where a file `broken`
# is beside it.
ANSWERING = """
import os, secrets, socket, sys
if os.path.exists("broken"):
    sys.exit("I am broken.")
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=100)
said = f"{secrets.token_hex(4)} {os.environ.get('SAYS', '')}".encode()
head = b"HTTP/1.1 200 OK\\r\\nconnection: close\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(said)
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(head + said)
    connection.close()
"""

# Answers readiness alone, and lets every other request stand.
STANDING = """
import os, socket, threading
def answer(connection):
    asked = connection.recv(65536)
    if not asked:  # somebody saw whether it listens
        connection.close()
        return
    if b"/readiness" in asked:
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nconnection: close\\r\\ncontent-length: 0\\r\\n\\r\\n")
        connection.close()
        return
    print("asked", flush=True)
    connection.recv(1)
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=100)
while True:
    threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()
"""


def table(directory: Path, source: str = ANSWERING, **keys: Any) -> dict[str, Any]:
    """Return the table of a runtime named after its directory, which is created."""
    directory.mkdir(exist_ok=True)
    (directory / "program.py").write_text(source)
    command = [sys.executable, "-SE", "program.py"]
    return {"name": directory.name, "command": command, "directory": str(directory), **keys}


@asynccontextmanager
async def runtimes(
    clock: Clock | None = None, reserved: Collection[str] = ()
) -> AsyncIterator[RuntimeRegistry]:
    """Yield unconfined runtimes that are never reaped."""
    launcher = InstanceLauncher(Settings.load(isolation="none"), dict)
    registry = RuntimeRegistry(clock or Clock(), Monitor(), launcher.launch, reserved=reserved)
    yield registry
    await registry.close()
    await launcher.close()
