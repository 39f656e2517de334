"""What a kernel does about the threads of its code that print."""

from __future__ import annotations

from agentdouble import Emulator
from tests.agentdouble.calling import eventually, text

WATCHED = """
import threading
from IPython import get_ipython

iopub, looks = get_ipython().kernel.iopub_thread, []
iopub._event_pipe_gc_seconds = 0.001
look = iopub._event_pipe_gc


async def counted():
    looks.append(1)
    await look()


iopub._event_pipe_gc = counted
"""
STARTED = """
threads = [threading.Thread(target=print) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
PIPES = "print(len(iopub._event_pipes))"


def test_pipes_of_ended_threads_are_closed_and_nothing_is_done_else(shared: Emulator) -> None:
    """Whoever is idle has no processor time, so that a double need not count what it uses."""
    text(shared, WATCHED, "printing-threads")
    text(shared, STARTED, "printing-threads")
    pipes = eventually(
        lambda: int(text(shared, PIPES, "printing-threads")), lambda found: found <= 2
    )
    done = int(text(shared, "print(len(looks))", "printing-threads"))
    later = [int(text(shared, "print(len(looks))", "printing-threads")) for _ in range(20)]

    assert pipes <= 2
    assert done > 0
    assert {later[0]} == set(later)
