"""A platform beside threads, other magics and nested event loops."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel

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
                "              found.run_sse(await found.create_session('echo'), 'hello')]\n"
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
    module.write_text("def ask(platform):\n    return platform.get_session('echo', 'none')\n")
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
