"""Display of values and streams in a notebook kernel."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel

STREAM = """
import doublecheck

def said(*texts):
    for text in texts:
        yield doublecheck.results.AgentEvent("model", ({"text": text},), author="coder")

async def said_later(*texts):
    for event in said(*texts):
        yield event

class Ends(doublecheck.DoubleCheckError):
    pass

def broken():
    yield from said("before")
    raise Ends("it ends here")
"""


@pytest.fixture(scope="module", autouse=True)
def _defined(notebook: NotebookKernel) -> None:
    assert notebook.run(STREAM).error is None


def _displays(notebook: NotebookKernel, cell: str) -> list[tuple[str, str]]:
    return [
        (kind, content["data"]["text/plain"])
        for kind, content in notebook.running(cell)
        if "data" in content
    ]


def test_a_stream_is_a_single_growing_display(notebook: NotebookKernel) -> None:
    """The value of the cell does not repeat it."""
    displays = _displays(notebook, "doublecheck.show(said('one', 'two', 'three'))")

    assert ("display_data", "<1 event: <AgentEvent coder 'one'>>") == displays[0]
    assert {"update_display_data"} == {kind for kind, _ in displays[1:]}
    assert displays[-1][1].startswith("<3 events: <AgentEvent coder 'one'>")


def test_an_async_stream_is_awaited(notebook: NotebookKernel) -> None:
    displays = _displays(notebook, "len(await doublecheck.show(said_later('one', 'two')))")

    assert [("display_data", "<1 event: <AgentEvent coder 'one'>>")] == displays[:1]
    assert ("execute_result", "2") == displays[-1]


def test_a_broken_stream_shows_events_before_its_error(notebook: NotebookKernel) -> None:
    ran = notebook.run("doublecheck.show(broken())")

    assert ">before<" in ran.html
    assert "it ends here" in (ran.error or "")


@pytest.mark.parametrize("cell", ["{}(stream)", "await {}(later)"])
def test_a_stream_that_fails_at_once_shows_only_its_error(
    notebook: NotebookKernel, cell: str
) -> None:
    """Only an empty stream that ends normally shows "No events."."""
    notebook.run("stream, later = (1 / 0 for _ in 'a'), (1 / 0 async for _ in said_later('a'))")

    ran = notebook.run(cell.format("doublecheck.show"))
    assert [] == ran.bundles
    assert "ZeroDivisionError" in (ran.error or "")

    assert "No events." in notebook.run(cell.format("doublecheck.show")).html


def test_show_refuses_other_values(notebook: NotebookKernel) -> None:
    ran = notebook.run("doublecheck.show('text')")

    assert "show() needs a stream, such as platform.stream(...), but got 'text'." in (
        ran.error or ""
    )
