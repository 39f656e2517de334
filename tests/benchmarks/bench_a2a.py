"""The double's cost for an A2A application: a message to its completed task, against the bare SDK.

    python -m pytest -s tests/benchmarks/bench_a2a.py

The same executor runs on the bare SDK under uvicorn, in a process of its own as the double is;
the rounds of the two take turns, so that a load on the machine meets both. CPU is what a server's
process uses for a call: it tells more than the time where the machine is busy.
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

ROUNDS, CALLS = 12, 40
AT_MOST = 1.15
EXECUTOR = """
import socket, sys
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater

class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        await updater.add_artifact([new_text_part(context.get_user_input())])
        await updater.complete()

    async def cancel(self, context, event_queue):
        pass

listener = socket.socket(fileno=int(sys.argv[1]))
"""
BARE = """
import uvicorn
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from agentdouble import agent_card
from starlette.applications import Starlette

card = agent_card("bare", "http://127.0.0.1")
handler = DefaultRequestHandler(
    agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card
)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
config = uvicorn.Config(Starlette(routes=routes), log_level="error")
uvicorn.Server(config).run([listener])
"""
DOUBLE = """
import threading
from agentdouble import A2AApp, Emulator, serving

app = A2AApp("bench")
app.agent_executor(runner="echo")(Executor)
serving.open_socket = lambda *_: listener
with Emulator(app):
    sys.stdin.read()
"""


class Caller:
    """Sends messages over one connection."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self._process = process
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        self._body = json.dumps(call)

    def cpu_ms(self) -> float:
        """Return the CPU time of the process so far."""
        times = self._process.cpu_times()
        return (times.user + times.system) * 1000

    def took_ms(self) -> float:
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        began = time.perf_counter()
        self._connection.request("POST", "/", self._body, headers)
        answer = self._connection.getresponse().read()
        took = time.perf_counter() - began
        assert b"TASK_STATE_COMPLETED" in answer, answer
        return took * 1000


@contextmanager
def serving(script: str) -> Iterator[Caller]:
    """Serve in a separate process; yield a caller."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        fd = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", EXECUTOR + script, str(fd)],
            pass_fds=[fd],
            stdin=subprocess.PIPE,
        )
        try:
            yield Caller(listener.getsockname()[1], psutil.Process(process.pid))
        finally:
            process.terminate()
            process.communicate()


def test_message_costs_little_more_than_on_the_bare_sdk() -> None:
    """Compare the median times to a completed task, and the CPU of the process."""
    took: dict[str, list[float]] = {"bare": [], "double": []}
    used: dict[str, float] = {}
    with serving(BARE) as bare, serving(DOUBLE) as double:
        callers = {"bare": bare, "double": double}
        for round_ in range(ROUNDS):
            for name, caller in callers.items():
                times = [caller.took_ms() for _ in range(CALLS)]
                took[name] += times if round_ else []  # the first warms up
            if not round_:
                used = {name: caller.cpu_ms() for name, caller in callers.items()}
        calls = (ROUNDS - 1) * CALLS
        cpu = {name: (caller.cpu_ms() - used[name]) / calls for name, caller in callers.items()}

    medians = {name: statistics.median(times) for name, times in took.items()}
    for quantity, figures in (("time", medians), ("CPU", cpu)):
        ratio = figures["double"] / figures["bare"]
        print(
            f"\n{quantity}: {figures['bare']:.2f} ms bare, {figures['double']:.2f} ms double, {ratio:.2f}"
        )
    assert medians["double"] / medians["bare"] <= AT_MOST
