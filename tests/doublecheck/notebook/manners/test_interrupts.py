"""Interrupted cells end at once with a short message, and the double goes on."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, Ran


def interrupted(notebook: NotebookKernel, cell: str) -> Ran:
    """Run a cell, interrupt it once it has begun, and return its output."""
    messages = []
    for kind, content in notebook.running(cell):
        messages.append((kind, content))
        if kind == "stream" and "begin" in content["text"]:
            notebook.interrupt()
    return Ran(tuple(messages))


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("platform.invoke('wait')", "KeyboardInterrupt"),
        ("list(platform.stream('wait'))", "KeyboardInterrupt"),
        ("await awaited.invoke('wait')", "CancelledError"),
    ],
)
def test_interrupted_calls_show_their_line(notebook: NotebookKernel, cell: str, error: str) -> None:
    """The double still answers."""
    traceback = interrupted(notebook, cell).error or ""

    assert [f"----> 1 {cell}", f"{error}: "] == [
        line for line in traceback.splitlines() if line.startswith(("---->", "File", error + ":"))
    ]
    assert "'pong!'" == notebook.run("platform.ping()").text


@pytest.mark.slow
def test_awaited_code_is_interrupted(notebook: NotebookKernel) -> None:
    """The session keeps its state."""
    cell = """
await awaited.run_code('''
import time
kept = 42
print("begins", flush=True)
time.sleep(600)
''', on_output=lambda said: print(said.content["text"], flush=True))
"""
    assert "CancelledError" in (interrupted(notebook, cell).error or "")

    assert "'42'" == notebook.run("platform.run_code('kept').text").text
