"""Displays, live outputs, interrupts and processes of a notebook kernel; show() without one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

import doublecheck
from doublecheck.results import AgentEvent, StreamEvent
from tests.doublecheck.notebook.kernels import PATIENT, TIMEOUT_S, NotebookKernel, notebook_kernel

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


@pytest.fixture(scope="module")
def notebook() -> Iterator[NotebookKernel]:
    """A notebook shared by the tests of a module; cells keep their state."""
    with notebook_kernel() as kernel:
        yield kernel


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


BEGIN = """
import threading
import doublecheck
platform = doublecheck.connect()
platform.run_code("import os; kept = 1; os.mkfifo('runs')")
(session,) = platform.request("GET", "/_emulator/sessions").json()["sessions"]

def tell_when_it_runs():
    with open(session["home"] + "/runs") as runs:
        runs.read()  # to its end, or SIGPIPE would end the command that writes
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
            "platform.sandbox().exec_bash('(echo > runs; exec sleep 600)')",
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


EVENTS = (StreamEvent("a"), StreamEvent('{"b": 1}'))


def test_show_prints_and_returns_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert EVENTS == doublecheck.show(iter(EVENTS))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_show_prints_async_events(capsys: pytest.CaptureFixture[str]) -> None:

    async def stream() -> AsyncIterator[StreamEvent]:
        for event in EVENTS:
            yield event

    assert EVENTS == asyncio.run(doublecheck.show(stream()))
    assert 'a\n{"b": 1}\n' == capsys.readouterr().out


def test_show_prints_whole_texts_and_tool_calls(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"functionCall": {"name": "add"}}
    event = AgentEvent("model", ({"text": "x" * 200},), author="coder")

    doublecheck.show((event, AgentEvent("model", (call,), author="coder")))

    assert f"coder: {'x' * 200}\n<AgentEvent coder calls add>\n" == capsys.readouterr().out


def test_an_interrupted_stream_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    closed = []

    def stream() -> Iterator[StreamEvent]:
        try:
            yield EVENTS[0]
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        doublecheck.show(stream())
    assert ([True], "a\n") == (closed, capsys.readouterr().out)


START = """
import doublecheck
platform = doublecheck.connect()
awaited = await doublecheck.connect_async(platform.url)
await awaited.ping()
platform.run_code("import subprocess; subprocess.Popen(['sleep', '600'])")
import os
os.getpid()
"""


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there a killed process takes all along")
def test_processes_end_with_a_restarted_or_killed_kernel(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as written, notebook_kernel(stderr=written) as notebook:
        started = _start(notebook)
        notebook.restart()
        assert [] == _alive(started)

        started = _start(notebook)
        psutil.Process(started[0].ppid()).kill()
        assert [] == _alive(started)

    lines = [line for line in log.read_text().splitlines() if "[IPKernelApp]" not in line]
    assert [] == lines


def _start(notebook: NotebookKernel) -> list[psutil.Process]:
    """Start a double with a session in a notebook and return the new processes."""
    ran = notebook.run(START)
    assert (None, "") == (ran.error, ran.stderr)
    children = psutil.Process(int(ran.text)).children(recursive=True)
    assert "sleep" in [process.name() for process in children]
    return children


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that are still alive after the timeout."""
    return list(psutil.wait_procs(processes, timeout=TIMEOUT_S)[1])


def test_a_notebook_keeps_nothing_of_a_bar(notebook: NotebookKernel) -> None:
    """One display changes with the progress, and is empty at the end; nothing is printed."""
    ran = notebook.run(
        "from doublecheck.run.progress_bar import Bar\n"
        "with Bar('twin', after_s=0) as bar:\n"
        "    bar.show(1, 2, 'probes')\n"
    )

    (_, drawn), (updated, erased) = ran.messages
    assert '<progress value="1" max="2"' in drawn["data"]["text/html"]
    assert "twin: 1/2 probes" == drawn["data"]["text/plain"]
    assert "update_display_data" == updated
    assert {"text/plain": "", "text/html": ""} == erased["data"]
    assert drawn["transient"] == erased["transient"]


@pytest.mark.parametrize("connect", ["doublecheck.connect", "await doublecheck.connect_async"])
def test_a_platform_is_a_card_with_links(notebook: NotebookKernel, connect: str) -> None:
    """Its console's address is secret elsewhere; there is none without a console."""
    ran = notebook.run(
        "from agentdouble import Emulator\n"
        "double = Emulator(console=True).start()\n"
        f"platform = {connect}(double)\n"
        "display(platform)\n"
        "assert double.console_url not in repr(platform.target)\n"
        "print(double.url, double.console_url)"
    )
    assert ran.error is None
    url, console = ran.stdout.split()
    assert f'<a href="{url}"' in ran.html
    assert f'<a href="{console}"' in ran.html
    for said in ("double</span>", "api server", "platform.sandboxes()", "platform.journal()"):
        assert said in ran.html

    live = notebook.run(
        "import dataclasses\n"
        "doublecheck.Platform(dataclasses.replace(\n"
        "    platform.target, kind='live', token=None, console=None, mcp='http://127.0.0.1:9/m'))"
    )
    assert "live</span>" in live.html
    assert "http://127.0.0.1:9/m" in live.html
    assert "platform.sandboxes()" not in live.html
    notebook.run("double.stop()")
