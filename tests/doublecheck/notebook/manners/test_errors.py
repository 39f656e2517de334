"""Short messages of errors and interrupts in a notebook kernel."""

from __future__ import annotations

import pytest

from agentdouble.errors import UnknownToolError
from doublecheck.errors import TargetError
from tests.doublecheck.notebook.kernels import NotebookKernel, Ran


def test_an_error_shows_the_cell_line_and_the_message(notebook: NotebookKernel) -> None:
    """It shows no frames of doublecheck, httpx or asyncio."""
    traceback = (notebook.run("1 + 1\nplatform.agents.get('nope', 'x')").error or "").splitlines()

    assert "----> 2 platform.agents.get('nope', 'x')" in traceback
    assert traceback[-1].startswith("RefusedError: GET http://127.0.0.1:")
    assert [] == [line for line in traceback if line.startswith("File ")]


def test_frames_of_generated_code_are_hidden(notebook: NotebookKernel) -> None:
    """For example, the methods of a dataclass belong to no file."""
    traceback = notebook.run("doublecheck.connect('localhost:8000')").error or "File "

    assert "TargetError" in traceback
    assert "File " not in traceback


def test_user_frames_are_shown(notebook: NotebookKernel) -> None:
    """A long chain is cut in the middle."""
    ran = notebook.run(
        "def deep(n):\n    return deep(n - 1) if n else platform.agents.get('nope', 'x')\ndeep(9)"
    )

    frames = [line for line in (ran.error or "").splitlines() if line.startswith("Cell In")]
    assert ["deep(9)", *["in deep(n)"] * 3] == [
        "deep(9)" if ", in" not in line else f"in {line.partition(', in ')[2]}" for line in frames
    ]


def test_awaited_calls_hide_frames_too(notebook: NotebookKernel) -> None:
    ran = notebook.run("await awaited.agents.get('nope', 'x')")

    assert "File " not in (ran.error or "File ")


def test_the_cause_of_an_error_is_hidden(notebook: NotebookKernel) -> None:
    ran = notebook.run(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    raise doublecheck.errors.TargetError('in our words') from error"
    )

    assert "TargetError: in our words" in (ran.error or "")
    assert "ZeroDivisionError\n" not in (ran.error or "")


def test_errors_of_the_double_are_short_too(notebook: NotebookKernel) -> None:
    ran = notebook.run("from agentdouble import Emulator\nEmulator(sesion_ttl=3)")

    assert "SettingsError" in (ran.error or "")
    assert "File " not in (ran.error or "File ")


def test_xmode_verbose_shows_all_frames(notebook: NotebookKernel) -> None:
    """It leaves out variables, which may be secrets."""
    notebook.run("platform.agents.get('nope', 'x')")
    notebook.run("%xmode Verbose")
    try:
        traceback = notebook.run("%tb").error or notebook.run("%tb").stderr
    finally:
        notebook.run("%xmode Context")

    assert "in get" in traceback
    assert "credentials=" not in traceback


@pytest.mark.parametrize("error", [TargetError("what"), UnknownToolError("t", ["a"])])
def test_tracebacks_are_complete_outside_notebooks(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        raise error

    rendered = "".join(caught.value._render_traceback_())  # type: ignore[attr-defined]
    assert "Traceback (most recent call last):" in rendered
    assert "raise error" in rendered


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
