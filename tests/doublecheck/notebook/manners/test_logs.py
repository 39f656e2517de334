"""What shows below a cell: what is the user's own, and nothing of what it is made with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel


@pytest.fixture
def debugging(notebook: NotebookKernel) -> Iterator[None]:
    """The user wants to see every log there is."""
    notebook.run("logging.basicConfig(level=logging.DEBUG, format='%(name)s: %(message)s')")
    yield
    notebook.run("logging.root.handlers.clear()\nlogging.root.setLevel(logging.WARNING)")


def test_an_application_prints_and_logs_below_the_cell_that_invoked_it(
    notebook: NotebookKernel,
) -> None:
    """Its double was started by another cell."""
    ran = notebook.run("platform.invoke('log')")

    assert ("the application begins\n", "the application logs\n", "'done'") == (
        ran.stdout,
        ran.stderr,
        ran.text,
    )


def test_an_application_that_fails_shows_its_own_lines(notebook: NotebookKernel) -> None:
    """None of the double's."""
    ran = notebook.run("platform.invoke('fail')")

    assert "in answer\n    raise ValueError" in ran.stderr.replace("        ", "    ")
    assert 1 == ran.stderr.count('  File "')


def test_what_the_double_has_to_say_of_bad_requests_stays_out(notebook: NotebookKernel) -> None:
    """The client is answered; uvicorn's log is nobody's here."""
    ran = notebook.run("doublecheck.connect(platform.url.replace('http', 'https'))")

    assert ("", True) == (ran.stderr, "UnreachableError" in (ran.error or ""))


@pytest.mark.usefixtures("debugging")
def test_libraries_log_nothing_because_of_us(notebook: NotebookKernel) -> None:
    """Neither those of the double nor the client's, whatever level the user has chosen."""
    ran = notebook.run(
        "platform.run_code('1')\n"
        "list(platform.run_sse(platform.create_session('echo'), 'hello'))\n"
        "found = await doublecheck.connect_async(platform.url)\n"
        "await found.ping()\nawait found.aclose()"
    )

    assert (None, "") == (ran.error, ran.stderr)


@pytest.mark.usefixtures("debugging")
def test_what_the_user_asks_libraries_they_log(notebook: NotebookKernel) -> None:
    """From a cell, and from an application in the double."""
    cell = notebook.run("import httpx\nhttpx.get(platform.url + '/ping')").stderr
    application = notebook.run("platform.invoke('fetch')").stderr

    counts = [1, 1]
    assert counts == [output.count("httpx: HTTP Request: GET") for output in (cell, application)]
    assert "/invoke" not in application


@pytest.mark.usefixtures("debugging")
def test_a_log_that_is_asked_for_by_name_shows(notebook: NotebookKernel) -> None:
    """Of a library, or the double's own journal."""
    notebook.run("logging.getLogger('httpx').setLevel('INFO')")
    notebook.run("logging.getLogger('agentdouble.journal.entries').setLevel('INFO')")
    ran = notebook.run("platform.ping()")
    notebook.run("logging.getLogger('httpx').setLevel(0)")
    notebook.run("logging.getLogger('agentdouble.journal.entries').setLevel(0)")

    assert {"httpx", "agentdouble.journal.entries"} == {
        line.partition(":")[0] for line in ran.stderr.splitlines()
    }
