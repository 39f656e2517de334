"""Only the user's own output appears below a cell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel


@pytest.fixture
def debugging(notebook: NotebookKernel) -> Iterator[None]:
    """Log everything at level DEBUG, as a user might."""
    notebook.run("logging.basicConfig(level=logging.DEBUG, format='%(name)s: %(message)s')")
    yield
    notebook.run("logging.root.handlers.clear()\nlogging.root.setLevel(logging.WARNING)")


def test_application_output_appears_below_the_invoking_cell(
    notebook: NotebookKernel,
) -> None:
    """Another cell started the double."""
    ran = notebook.run("platform.invoke('log')")

    assert ("the application begins\n", "the application logs\n", "'done'") == (
        ran.stdout,
        ran.stderr,
        ran.text,
    )


def test_a_failing_application_shows_only_its_own_frames(notebook: NotebookKernel) -> None:
    ran = notebook.run("platform.invoke('fail')")

    assert "in answer\n    raise ValueError" in ran.stderr.replace("        ", "    ")
    assert 1 == ran.stderr.count('  File "')


def test_invalid_requests_are_not_logged(notebook: NotebookKernel) -> None:
    ran = notebook.run("doublecheck.connect(platform.url.replace('http', 'https'))")

    assert ("", True) == (ran.stderr, "UnreachableError" in (ran.error or ""))


@pytest.mark.usefixtures("debugging")
def test_our_requests_do_not_make_libraries_log(notebook: NotebookKernel) -> None:
    ran = notebook.run(
        "platform.run_code('1')\n"
        "list(platform.run_sse(platform.create_session('echo'), 'hello'))\n"
        "found = await doublecheck.connect_async(platform.url)\n"
        "await found.ping()\nawait found.aclose()"
    )

    assert (None, "") == (ran.error, ran.stderr)


@pytest.mark.usefixtures("debugging")
def test_requests_of_the_user_are_logged(notebook: NotebookKernel) -> None:
    """They come from a cell and from an application in the double."""
    cell = notebook.run("import httpx\nhttpx.get(platform.url + '/ping')").stderr
    application = notebook.run("platform.invoke('fetch')").stderr

    counts = [1, 1]
    assert counts == [output.count("httpx: HTTP Request: GET") for output in (cell, application)]
    assert "/invoke" not in application


@pytest.mark.usefixtures("debugging")
def test_loggers_enabled_by_name_are_shown(notebook: NotebookKernel) -> None:
    """These are a library's logger and the double's journal."""
    notebook.run("logging.getLogger('httpx').setLevel('INFO')")
    notebook.run("logging.getLogger('agentdouble.journal.entries').setLevel('INFO')")
    ran = notebook.run("platform.ping()")
    notebook.run("logging.getLogger('httpx').setLevel(0)")
    notebook.run("logging.getLogger('agentdouble.journal.entries').setLevel(0)")

    assert {"httpx", "agentdouble.journal.entries"} == {
        line.partition(":")[0] for line in ran.stderr.splitlines()
    }
