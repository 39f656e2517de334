"""A platform beside the user's logs, threads, other magics and nested event loops."""

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
        "list(platform.agents.run_sse(platform.agents.create('echo'), 'hello'))\n"
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


NESTED = """
try:
    import nest_asyncio
except ImportError:
    import nest_asyncio2 as nest_asyncio
nest_asyncio.apply()

async def ask():
    found = await doublecheck.connect_async()
    try:
        return (await found.run_code("6 * 7", on_output=lambda _: None)).text
    finally:
        await found.aclose()

loop = asyncio.get_event_loop()
platform.run_code("1", on_output=lambda _: None)
asyncio.run(ask()), loop.run_until_complete(asyncio.to_thread(platform.ping))
"""


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("await asyncio.to_thread(platform.ping)", "'pong!'"),
        (
            (
                "from concurrent.futures import ThreadPoolExecutor\n"
                "with ThreadPoolExecutor(4) as pool:\n"
                "    texts = list(pool.map(lambda n: platform.run_code(f'{n}').text, range(4)))\n"
                "texts"
            ),
            "['0', '1', '2', '3']",
        ),
        ("%%time\nplatform.ping()", "'pong!'"),
        (
            (
                "found = await doublecheck.connect_async()\n"
                "async with found:\n"
                "    events = [event async for event in\n"
                "              found.agents.run_sse(await found.agents.create('echo'), 'hello')]\n"
                "events[-1].text"
            ),
            "'hello'",
        ),
    ],
)
def test_threads_timing_and_async_iteration(notebook: NotebookKernel, cell: str, text: str) -> None:
    """No warning is shown."""
    ran = notebook.run(cell)

    assert (None, "", text) == (ran.error, ran.stderr, ran.text)


def test_capture_hides_and_keeps_outputs(notebook: NotebookKernel) -> None:
    result = notebook.run("%%capture kept\nplatform.run_code('6 * 7')\nplatform.ping()")

    assert [] == result.bundles
    assert "'pong!'" in notebook.run("kept.outputs[-1].data['text/plain']").text


def test_a_reloaded_module_keeps_its_platform(
    notebook: NotebookKernel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With ``%autoreload``, the notebook can still catch the errors."""
    module = tmp_path_factory.mktemp("modules") / "asking.py"
    module.write_text("def ask(platform):\n    return platform.agents.get('echo', 'none')\n")
    notebook.run(
        f"%load_ext autoreload\n%autoreload 2\nimport sys\nsys.path[:0] = ['{module.parent}']"
    )
    notebook.run("import asking")

    ran = notebook.run(
        "try:\n    asking.ask(platform)\nexcept doublecheck.errors.RefusedError:\n    print('caught')"
    )
    assert (None, "caught\n") == (ran.error, ran.stdout)


@pytest.mark.slow
def test_nested_event_loops(notebook: NotebookKernel) -> None:
    """nest_asyncio changes ``asyncio.run`` for good, so this test is the last."""
    ran = notebook.run(NESTED)

    assert (None, "", "('42', 'pong!')") == (ran.error, ran.stderr, ran.text)
