"""Errors in the kernel of a notebook: a short message, never a page of frames."""

from __future__ import annotations

import pytest

from agentdouble.errors import UnknownToolError
from doublecheck.errors import TargetError
from tests.doublecheck.notebook.kernels import NotebookKernel


def test_an_error_shows_the_line_of_the_cell_and_the_message(notebook: NotebookKernel) -> None:
    """No frame of ours is there, nor of httpx or asyncio."""
    traceback = (notebook.run("1 + 1\nplatform.get_session('nope', 'x')").error or "").splitlines()

    assert "----> 2 platform.get_session('nope', 'x')" in traceback
    assert traceback[-1].startswith("RefusedError: GET http://127.0.0.1:")
    assert [] == [line for line in traceback if line.startswith("File ")]


def test_code_that_was_generated_for_ours_does_not_show(notebook: NotebookKernel) -> None:
    """A dataclass's own lines are in no file, and not the user's."""
    traceback = notebook.run("doublecheck.connect('localhost:8000')").error or "File "

    assert "TargetError" in traceback
    assert "File " not in traceback


def test_every_function_of_the_user_that_led_there_is_shown(notebook: NotebookKernel) -> None:
    """Of many, the first and the last."""
    ran = notebook.run(
        "def deep(n):\n    return deep(n - 1) if n else platform.get_session('nope', 'x')\ndeep(9)"
    )

    frames = [line for line in (ran.error or "").splitlines() if line.startswith("Cell In")]
    assert ["deep(9)", *["in deep(n)"] * 3] == [
        "deep(9)" if ", in" not in line else f"in {line.partition(', in ')[2]}" for line in frames
    ]


def test_an_awaited_call_shows_as_little(notebook: NotebookKernel) -> None:
    """The loop's frames stay out as well."""
    ran = notebook.run("await awaited.get_session('nope', 'x')")

    assert "File " not in (ran.error or "File ")


def test_what_caused_an_error_does_not_show(notebook: NotebookKernel) -> None:
    """It is in the message already."""
    ran = notebook.run(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    raise doublecheck.errors.TargetError('in our words') from error"
    )

    assert "TargetError: in our words" in (ran.error or "")
    assert "ZeroDivisionError\n" not in (ran.error or "")


def test_errors_of_the_double_show_the_same(notebook: NotebookKernel) -> None:
    """Both trees of exceptions do."""
    ran = notebook.run("from agentdouble import Emulator\nEmulator(sesion_ttl=3)")

    assert "SettingsError" in (ran.error or "")
    assert "File " not in (ran.error or "File ")


def test_all_of_it_shows_when_asked_for(notebook: NotebookKernel) -> None:
    """``%xmode Verbose`` brings every frame, though without variables: they may be secrets."""
    notebook.run("platform.get_session('nope', 'x')")
    notebook.run("%xmode Verbose")
    try:
        traceback = notebook.run("%tb").error or notebook.run("%tb").stderr
    finally:
        notebook.run("%xmode Context")

    assert "in get_session" in traceback
    assert "credentials=" not in traceback


@pytest.mark.parametrize("error", [TargetError("what"), UnknownToolError("t", ["a"])])
def test_outside_of_a_notebook_a_traceback_is_as_always(error: Exception) -> None:
    """Nothing is left out there."""
    with pytest.raises(type(error)) as caught:
        raise error

    rendered = "".join(caught.value._render_traceback_())  # type: ignore[attr-defined]
    assert "Traceback (most recent call last):" in rendered
    assert "raise error" in rendered
