"""A cell that runs on two platforms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doublecheck import Platform, Target
from doublecheck.magics.platforms import Named
from doublecheck.magics.side_by_side import compare
from doublecheck.results import CodeResult, Output
from doublecheck.values.sandbox import of_outputs
from tests.doublecheck.notebook.kernels import NotebookKernel

pytestmark = pytest.mark.libraries


@pytest.fixture(scope="module", autouse=True)
def _other(notebook: NotebookKernel) -> Iterator[None]:
    """Another platform than the one in the variable ``platform``."""
    assert notebook.run("other = doublecheck.connect()").error is None
    yield
    notebook.run("other.close()\ndel other")


@pytest.fixture(autouse=True)
def _used(notebook: NotebookKernel) -> None:
    """Cells run on the other one, which nobody has used before."""
    assert notebook.run("other.reset(wait=False)\n%sandbox use staging=other").error is None


def test_what_both_say_is_the_same(notebook: NotebookKernel) -> None:
    """Ids, times and how often a kernel had run some aside."""
    notebook.run("%%sandbox --on platform\n1")

    ran = notebook.run("%%sandbox --both --out found\nprint(object())\n6 * 7")
    assert "── platform: double at http://" in ran.text
    assert "── staging: double at http://" in ran.text
    assert "── platform and staging say the same." == ran.text.splitlines()[-1]
    assert "the same</span>" in ran.html
    assert "True" == notebook.run("found.same").text


def test_what_differs_is_named(notebook: NotebookKernel) -> None:
    """With where it is, and what each says."""
    notebook.run("%%sandbox --on platform\nx = 'ours'")
    notebook.run("%%sandbox --on staging\nx = 'theirs'")

    ran = notebook.run("%%sandbox --both\nprint(1)\nx")
    last = ran.text.splitlines()[-2:]
    assert "── platform and staging differ:" == last[0]
    assert 'outputs[1].data["text/plain"]: platform "\'ours\'", staging "\'theirs\'"' == last[1]
    assert "they differ</span>" in ran.html


def test_what_each_says_is_shown_until_both_are_done(notebook: NotebookKernel) -> None:
    """Below the name of its platform; the comparison takes its place."""
    ran = notebook.run("%%sandbox --both\nprint('said', flush=True)\n6 * 7")

    shown = [line for line in ran.stdout.splitlines() if not line.startswith("── ")]
    assert ["said", "said"] == shown
    assert ["42", "42"] == [bundle["text/plain"] for bundle in ran.bundles[:-1]]
    assert [("clear_output", {"wait": True}), "display_data"] == [
        ran.messages[-2],
        ran.messages[-1][0],
    ]


def test_an_interrupted_cell_compares_nothing(notebook: NotebookKernel) -> None:
    """What had been said by then stays, and the code of the first is interrupted."""
    shown = []
    for kind, content in notebook.running("%%sandbox --both\nprint('begun')\nwhile True: pass"):
        shown.append(content.get("ename", kind))
        if kind == "stream" and "begun" in content["text"]:
            notebook.interrupt()

    assert "InterruptedRunError" == shown[-1]
    assert {"stream", "InterruptedRunError"} == set(shown)


def test_images_are_compared_as_well(notebook: NotebookKernel) -> None:
    """They are no ids, though they look as if they were."""
    notebook.run("%%sandbox --on platform\nx = 1")
    notebook.run("%%sandbox --on staging\nx = 2")

    ran = notebook.run(
        "%%sandbox --both --out found\nfrom IPython.display import display\n"
        "image = 'R0lGODlhAQABAIAAAAAAAP' + 'aA'[x == 1] + 'AACH5BAEAAAAALAAAAAABAAEAAAIBRAA7'\n"
        "display({'image/gif': image}, raw=True)"
    )
    assert ran.error is None
    assert (
        "['$.outputs[0].data[\"image/gif\"]']"
        == notebook.run("[one.path for one in found.differences]").text
    )


def test_an_output_without_data_is_compared_too() -> None:
    """A platform may leave out what there is none of."""
    output = Output("display_data")
    result = CodeResult(True, "ok", "it ran", (output,), 1, "s-1", "code")
    with Platform(Target("http://127.0.0.1:1")) as platform:
        both = compare((Named("a", platform), Named("b", platform)), lambda _: result)

    assert both.same
    assert ["<LiveOutput display_data>"] == [repr(one) for one in of_outputs([output])]


def test_a_platform_that_refuses_is_a_column_too(notebook: NotebookKernel) -> None:
    """What the other says is there all the same; the cell goes on."""
    notebook.run("other.faults.fail('InvokeTool', status=503, message='busy')")

    ran = notebook.run("%%sandbox --both\nprint('said')")
    assert None is ran.error
    assert "\nsaid\n" in ran.text
    assert "\nRefusedError: " in ran.text
    told = "status: platform 'ok', staging 'refused: ServiceUnavailable'"
    assert told == ran.text.splitlines()[-1]


def test_the_magics_double_starts_for_it(notebook: NotebookKernel) -> None:
    """Where there is something that it can be compared with."""
    notebook.run("%unload_ext doublecheck\n%load_ext doublecheck\n%sandbox use staging=other")
    notebook.run("%sandbox use double")

    assert "staging and double say the same." in notebook.run("%%sandbox --both\n1").text


def test_a_double_alone_is_refused(notebook: NotebookKernel) -> None:
    """There is nothing to compare it with."""
    notebook.run("%unload_ext doublecheck\n%load_ext doublecheck")

    told = notebook.run("%%sandbox --both\n1").stderr
    assert "--both compares two platforms" in told
