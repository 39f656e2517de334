"""Outputs of a running cell, and interrupts."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import PATIENT, NotebookKernel

BEGIN = """
import threading
import doublecheck
platform = doublecheck.connect()
platform.run_code("import os; kept = 1; os.mkfifo('runs')")
(session,) = platform.request("GET", "/_emulator/sessions").json()["sessions"]

def tell_when_it_runs():
    with open(session["home"] + "/runs"):
        print(1, flush=True)

def show(output):
    if output.msg_type == "stream":
        print(output.content["text"], end="", flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _connected(notebook: NotebookKernel) -> None:
    assert notebook.run(BEGIN + PATIENT).error is None


def interrupted(notebook: NotebookKernel, cell: str, when: str) -> tuple[str, str]:
    """Interrupt a cell once it prints something; return its output and its error."""
    printed, error = "", ""
    for kind, content in notebook.running(cell):
        if kind == "stream":
            if not printed:
                assert when == content["text"][0]
                notebook.interrupt()
            printed += content["text"]
        elif kind == "error":
            error = "\n".join(content["traceback"])
    return printed, error


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            "platform.run_code('print(1, flush=True)\\nwhile True: pass', on_output=show)",
            id="whose outputs are shown",
        ),
        pytest.param(
            "threading.Thread(target=tell_when_it_runs).start()\n"
            "platform.run_code(\"open('runs', 'w').close()\\nwhile True: pass\")",
            id="that waits for its result",
        ),
        pytest.param(
            "threading.Thread(target=tell_when_it_runs).start()\n"
            "platform.exec_bash('(echo > runs; exec sleep 600)')",
            id="that waits for a command",
        ),
    ],
)
def test_an_interrupted_cell_interrupts_the_code(notebook: NotebookKernel, cell: str) -> None:
    """The session keeps its state, and the message is short."""
    printed, error = interrupted(notebook, cell, "1")

    assert "1" == printed.strip()
    assert "InterruptedRunError" in error
    assert "was interrupted" in error
    assert len(error.splitlines()) < 15
    assert "'1'" == notebook.run("platform.run_code('kept').text").text
