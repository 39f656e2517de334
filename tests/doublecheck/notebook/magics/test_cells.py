"""``%%sandbox`` in the kernel of a notebook."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel

pytestmark = pytest.mark.smoke


@pytest.mark.slow
def test_a_cell_runs_in_the_session(notebook: NotebookKernel) -> None:
    """State stays in the session's kernel, not in the notebook's."""
    notebook.run("%%sandbox\nx = 6 * 7")

    assert "42" == notebook.run("%%sandbox\nx").text
    assert "NameError" in (notebook.run("x").error or "")


def test_outputs_look_like_those_of_a_local_cell(notebook: NotebookKernel) -> None:
    ran = notebook.run(
        "%%sandbox\nimport sys\nprint('said')\nprint('warned', file=sys.stderr)\n"
        "from IPython.display import display, Image\n"
        "display({'a': 1})\n6 * 7"
    )

    assert ("said\n", "warned\n") == (ran.stdout, ran.stderr)
    assert ["{'a': 1}", "42"] == [bundle["text/plain"] for bundle in ran.bundles]
    assert ("execute_result", "42") == (
        ran.messages[-1][0],
        notebook.run("_").text,
    )


def test_code_that_raises_fails_the_cell_with_a_clean_traceback(notebook: NotebookKernel) -> None:
    """No frame of the notebook's process is in it."""
    ran = notebook.run("%%sandbox\ndef f():\n    1 / 0\nf()")

    lines = (ran.error or "").splitlines()
    assert "ZeroDivisionError: division by zero" == lines[-1]
    assert any("----> 3 f()" in line for line in lines)
    assert "run_cell_magic" not in (ran.error or "")


def test_no_raise_error_shows_the_traceback_but_does_not_fail(notebook: NotebookKernel) -> None:
    ran = notebook.run("%%sandbox --no-raise-error --out failed\n1 / 0")

    assert ran.error is None
    assert "ZeroDivisionError" in ran.html
    assert "division by zero" in notebook.run("failed.error.evalue").text


def test_displays_are_updated_and_outputs_cleared(notebook: NotebookKernel) -> None:
    """Display ids do not collide with those of the notebook."""
    ran = notebook.run(
        "%%sandbox\nfrom IPython.display import clear_output, display\n"
        "shown = display('before', display_id='one')\nshown.update('after')\n"
        "clear_output()\nprint('end')"
    )

    kinds = ["display_data", "update_display_data", "clear_output", "stream"]
    assert kinds == [kind for kind, _ in ran.messages]
    ids = [content["transient"]["display_id"] for _, content in ran.messages[:2]]
    assert ["sandbox/agent_anonymous_default/one"] * 2 == ids


def test_an_interrupted_cell_interrupts_its_code(notebook: NotebookKernel) -> None:
    """Earlier output has arrived, the message is short and the session goes on."""
    failed = []
    for kind, content in notebook.running("%%sandbox\nkept = 1\nprint('begun')\nwhile True: pass"):
        if kind == "stream" and "begun" in content["text"]:
            notebook.interrupt()
        if kind == "error":
            failed.append((content["ename"], len(content["traceback"])))

    assert [("InterruptedRunError", 1)] == failed
    assert "1\n" == notebook.run("%%sandbox\nprint(kept)").stdout


def test_out_stores_the_result_in_a_variable(notebook: NotebookKernel) -> None:
    """Failing code still fails the cell, unless ``--no-raise-error`` is given."""
    assert "ZeroDivisionError" in (notebook.run("%%sandbox --out found\n1 / 0").error or "")
    assert "'ZeroDivisionError'" == notebook.run("found.error.ename").text

    ran = notebook.run("%%sandbox --out found --no-raise-error\n1 / 0")
    assert (None, True) == (ran.error, "ZeroDivisionError" in ran.text)


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("bash", "echo said; echo warned >&2", "said\n"),
        ("typescript", "const said: string = 'said'; console.log(said)", "said\n"),
    ],
)
def test_cells_run_other_languages(
    notebook: NotebookKernel, language: str, code: str, expected: str
) -> None:
    """The exit code of a command can fail the cell."""
    assert expected == notebook.run(f"%%sandbox --language {language}\n{code}").stdout
    failed = notebook.run("%%sandbox --language bash\nexit 3").error
    assert "The command ended with exit code 3." == failed


def test_html_is_shown_in_a_frame(notebook: NotebookKernel) -> None:
    ran = notebook.run(
        "%%sandbox\nfrom IPython.display import HTML, display\n"
        "display(HTML('<b onclick=\"alert(1)\">acts</b>'))"
    )

    (html,) = (bundle["text/html"] for bundle in ran.bundles)
    assert "<iframe sandbox=" in html
    assert "<b onclick" not in html


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%sandbox\n  \n", "The cell is empty"),
        ("%%sandbox --language rust\n1", "argument --language: invalid choice: 'rust'"),
        ("%%sandbox --sesion b\n1", "arguments: --sesion b. Did you mean --session?"),
        ("%%sandbox --timeout 1m\n1", "argument --timeout: give a whole number, not '1m'."),
        ("%%sandbox --session 'a b\n1", "Close the quotation mark"),
        (
            "%%sandbox --on nowhere\n1",
            "Unknown platform 'nowhere'. Choose from: double, ",
        ),
        ("%sandbox sesions", "Did you mean sessions?"),
        ("%sandbox clock advance soon", "A duration looks like 90s, 30m, 2h or 1h30m, not 'soon'."),
        ("%sandbox destroy nobody", "Session 'nobody' is not active."),
    ],
)
def test_invalid_usage_is_refused_in_one_line(
    notebook: NotebookKernel, cell: str, message: str
) -> None:
    """The line has the remedy."""
    ran = notebook.run(cell)

    assert None is ran.error
    assert 1 == len(ran.stderr.splitlines())
    assert message in ran.stderr


def test_a_url_selects_the_platform_of_one_cell(notebook: NotebookKernel) -> None:
    notebook.run("with_url = doublecheck.connect()")

    cell = notebook.run("get_ipython().run_cell_magic('sandbox', f'--on {with_url.url}', 'x = 1')")
    served = notebook.run("[len(one.sandboxes()) for one in (with_url, platform)]").text
    notebook.run("with_url.close()\ndel with_url")

    assert (None, "[1, 0]") == (cell.error, served)
    nowhere = notebook.run("%%sandbox --on http://127.0.0.1:1\n1").error or ""
    assert nowhere.startswith("UnreachableError: Nothing answers at http://127.0.0.1:1")


def test_a_closed_async_platform_says_so(notebook: NotebookKernel) -> None:
    notebook.run("closed = await doublecheck.connect_async(platform.url); await closed.aclose()")

    error = notebook.run("%%sandbox --on closed\n1").error or ""

    assert "has been closed" in error, error
    notebook.run("del closed")


def test_automatic_platform_switches_are_announced_once(notebook: NotebookKernel) -> None:
    """Cells run on a private double until the notebook has a platform."""
    notebook.run("%unload_ext doublecheck\n%load_ext doublecheck\nkept = platform\ndel platform")

    outputs = [notebook.run("%%sandbox\nprint(1)").stdout]
    notebook.run("platform = kept\ndel kept")
    outputs += [notebook.run("%%sandbox\nprint(1)").stdout for _ in range(2)]
    url = notebook.run("print(platform.url, end='')").stdout

    moved = f"Cells now run on platform, double at {url}; %sandbox use double switches back.\n"
    assert ["1\n", f"{moved}1\n", "1\n"] == outputs


def test_in_gives_the_session_variables_of_the_notebook(notebook: NotebookKernel) -> None:
    """They are copies, in each language with values; nothing of it is shown."""
    notebook.run("rows, title = [1, 2.5, None], 'ö\"\\'\\n'")

    ran = notebook.run("%%sandbox --in rows --in title\nprint(sum(filter(None, rows)), len(title))")
    script = notebook.run("%%sandbox --language javascript --in rows\nrows.length")

    assert ("3.5 4\n", []) == (ran.stdout, ran.bundles)
    assert "3" == script.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--in nothing_here", "the notebook has no variable of that name"),
        ("--in object", "this type is not a literal of Python"),
        ("--in notebook_name --language bash", "not to bash"),
        ("--in html --language javascript", "this bytes is not JSON"),
    ],
)
def test_what_in_cannot_give_is_refused(notebook: NotebookKernel, line: str, said: str) -> None:
    notebook.run("from builtins import object\nnotebook_name, html = 'n', b''")

    ran = notebook.run(f"%%sandbox {line}\n1")

    assert said in ran.stderr + (ran.error or "")


def test_a_cell_enters_the_session_of_an_agent(notebook: NotebookKernel) -> None:
    """The one in which run_code of an application runs."""
    notebook.run(
        "import json, doublecheck\n"
        "from agentdouble import SimpleApp, run_code\n"
        "app = SimpleApp('my_agent')\n"
        "@app.entrypoint\n"
        "async def answer(payload, headers):\n"
        "    return json.loads(run_code(payload['prompt'], 'python3'))['success']\n"
        "hosting = doublecheck.connect(apps=[app])\n"
        "hosting.invoke('basket = 3', user_id='ann', session_id='s1')"
    )

    ran = notebook.run("%%sandbox --on hosting --agent my_agent --user ann --session s1\nbasket")
    listed = notebook.run("hosting.sandbox('s1', user_id='ann', agent='my_agent').exists()")
    notebook.run("hosting.close()")

    assert ("3", "True") == (ran.text, listed.text)


def test_a_cell_says_that_its_session_is_a_new_one(notebook: NotebookKernel) -> None:
    """Above the error that comes of it; a result that is shown says it, too."""
    notebook.run("%%sandbox\nkept = 1")
    notebook.run("%sandbox clock advance 31m")

    ran = notebook.run("%%sandbox --out found\nkept")
    shown = notebook.run("found")
    again = notebook.run("%%sandbox\n1")

    assert "This is a new instance of the session" in ran.stdout
    assert "NameError" in (ran.error or "")
    assert "This is a new instance of the session" in shown.html
    assert "" == again.stdout
