"""What the Python kernel leaves out or shares to start sooner must still work."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, body_of, run, send, signed, text

IOPUB = "iopub = get_ipython().kernel.iopub_thread"


def test_an_idle_kernel_sleeps(shared: Emulator) -> None:
    """No timer wakes the thread that sends output."""
    text(shared, f"{IOPUB}; timers = [*iopub.io_loop.asyncio_loop._scheduled]", "idle")

    assert "[]\n" == text(shared, "print(timers)", "idle")  # to print needs a timer


def test_the_sockets_of_ended_threads_are_closed(shared: Emulator) -> None:
    """Each thread that prints has a socket, and a process can have only a thousand."""
    code = f"""
import threading
{IOPUB}
for _ in range(40):
    thread = threading.Thread(target=print, args=("x",))
    thread.start()
    thread.join()
"""
    assert "x\n" * 40 == text(shared, code, "threads")
    assert int(text(shared, "print(len(iopub._event_pipes))", "threads")) < 10


def test_the_kernel_answers_heartbeats(shared: Emulator) -> None:
    """Clients of Jupyter in a session believe that a silent kernel is dead."""
    code = """
import ipykernel.connect, json, zmq
info = json.load(open(ipykernel.connect.get_connection_file()))
with zmq.Context() as context, context.socket(zmq.REQ) as client:
    client.connect(f"{info['transport']}://{info['ip']}-{info['hb_port']}")
    client.send(b"ping")
    print(client.recv())
"""
    assert "b'ping'\n" == text(shared, code, "heartbeat")


def test_the_control_channel_opens_although_a_fork_holds_its_socket(shared: Emulator) -> None:
    """It opens for its first client, while code runs."""
    code = """
import ipykernel.connect, json, os, signal, zmq
from jupyter_client.session import Session
child = os.fork()
if child == 0:
    signal.pause()
info = json.load(open(ipykernel.connect.get_connection_file()))
session = Session(key=info["key"].encode())
with zmq.Context() as context, context.socket(zmq.DEALER) as client:
    client.connect(f"{info['transport']}://{info['ip']}-{info['control_port']}")
    session.send(client, "kernel_info_request")
    print(client.poll(10_000) and session.recv(client)[1]["content"]["status"])
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0) and None
"""
    assert "ok\n" == text(shared, code, "control")


def test_what_a_fork_prints_belongs_to_the_cell(shared: Emulator) -> None:
    code = """
import multiprocessing
fork = multiprocessing.get_context("fork")
def say(): print("from a fork")
for _ in range(2):
    process = fork.Process(target=say)
    process.start()
    process.join()
"""
    assert "from a fork\n" * 2 == text(shared, code, "forks")


def test_ipython_makes_its_directories_when_it_needs_them(shared: Emulator) -> None:
    """A start makes none of them."""
    pytest.importorskip("IPython.external.pickleshare", reason="older ones have no %store")
    code = "x = 1\n%store x\n%bookmark here\ndel x\n%store -r x\nx"

    assert "1" == run(shared, code, "store")["data"]["outputs"][-1]["data"]["text/plain"]
    assert "here" in text(shared, "%bookmark -l", "store")


def test_a_startup_file_runs_before_the_first_cell() -> None:
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        Path(directory).chmod(0o755)
        startup = Path(directory, "startup.py")
        startup.write_text("started = 'by the file'")
        variable = {"Key": "PYTHONSTARTUP", "Value": str(startup)}
        with Emulator(pool_size=0, visible_paths=(directory,)) as double:
            tool = act(double, "CreateTool", Name="t", ToolType="CodeEnv", Envs=[variable])[
                "ToolId"
            ]
            body = {**body_of(double, "print(started)"), "ToolId": tool}
            answer = send(signed(double, body)).json()

    assert "by the file" in answer["Result"]["Result"]
