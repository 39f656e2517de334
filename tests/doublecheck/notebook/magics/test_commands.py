"""``%sandbox`` in the kernel of a notebook."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel


def test_sandbox_without_arguments_shows_the_status(notebook: NotebookKernel) -> None:
    """It shows the platform and the sessions with their remaining time."""
    notebook.run("%%sandbox --session b\n1")

    output = notebook.run("%sandbox").stdout
    assert "Cells run on platform, double at http://127.0.0.1:" in output
    assert "Sessions: agent_anonymous_b (" in output


def test_sessions_are_listed_and_destroyed(notebook: NotebookKernel) -> None:
    """Cells and commands use the same names."""
    notebook.run("%%sandbox --session b\n1")

    assert "1" == notebook.run("found = %sandbox sessions\nlen(found)").text
    assert "Session 'b' was destroyed" in notebook.run("%sandbox destroy b").stdout
    assert "Session 'b' is not active" in notebook.run("%sandbox destroy --session b").stderr
    assert "No active sessions" in notebook.run("%sandbox sessions").stdout


@pytest.mark.needs("files", "pid_namespace")
def test_resume_restores_a_named_snapshot(notebook: NotebookKernel) -> None:
    notebook.run("%%sandbox --session b\nx = [1]")
    output = notebook.run("%sandbox snapshot loaded --session b").stdout
    notebook.run("%%sandbox --session b\nx.append(2)")

    assert "Session 'b' is saved as 'loaded'." in output
    assert "restored to 'loaded'" in notebook.run("%sandbox resume loaded").stdout
    assert "[1]" == notebook.run("%%sandbox --session b\nx").text
    assert "Did you mean loaded?" in notebook.run("%sandbox resume loadd").stderr
    assert "Session 'c' is not active" in notebook.run("%sandbox snapshot d --session c").stderr


def test_the_clock_is_shown_and_advanced(notebook: NotebookKernel) -> None:
    """Sessions expire accordingly."""
    notebook.run("%%sandbox\nkept = 1")

    assert "UTC, 1h ahead" in notebook.run("%sandbox clock advance 30m 1800s").stdout
    assert "UTC, 1h" in notebook.run("%sandbox clock").stdout
    assert "UTC, frozen, 1h" in notebook.run("%sandbox clock freeze").stdout
    assert "frozen" not in notebook.run("%sandbox clock unfreeze").stdout
    assert "NameError" in (notebook.run("%%sandbox\nkept").error or "")


def test_the_log_lists_requests(notebook: NotebookKernel) -> None:
    """``--last`` leaves out older entries."""
    assert "The log is empty" in notebook.run("%sandbox log").stdout
    notebook.run("%%sandbox\n1")
    notebook.run("platform.ping()")

    paths = "[entry.url.partition('?')[0].removeprefix(platform.url) for entry in found]"
    assert "['/', '/ping']" == notebook.run(f"found = %sandbox log\n{paths}").text
    assert "['/ping']" == notebook.run(f"found = %sandbox log --last 1\n{paths}").text


def test_the_log_shows_code_session_and_answer(notebook: NotebookKernel) -> None:
    """Of Python, of commands, of code that raised, and of what was refused."""
    notebook.run("%%sandbox --session b\nx = 41\nprint('hi')\nx + 1")
    notebook.run("%%sandbox --session b --language bash\necho there")
    notebook.run("%%sandbox --session b\n1 / 0")
    notebook.run("platform.run_code('x', user_id='ann', session_id='b')")
    notebook.run("platform.run_code('1', 'cobol')")

    rows = notebook.run("%sandbox log").html.split("<tr")[2:]
    expected = (
        ("agent_anonymous_b", "x = 41", "hi\n42"),
        ("agent_anonymous_b", "$ echo there", ">there<"),
        ("agent_anonymous_b", "1 / 0", "ZeroDivisionError: division by zero"),
        ("agent_ann_b", ">x<", "NameError"),
        (">1<", "400: InvalidParameter: Unknown language"),
    )
    codes = [row for row in rows if "<pre" in row]
    for row, texts in zip(codes, expected, strict=True):
        for text in texts:
            assert text in row


def test_double_only_commands_are_refused_on_a_live_platform(notebook: NotebookKernel) -> None:
    """Cells still run there."""
    ran = notebook.run(
        "import dataclasses\n"
        "target = dataclasses.replace(platform.target, kind='live', name='live')\n"
        "live = doublecheck.Platform(target)"
    )
    assert ran.error is None
    used = notebook.run("%sandbox use live")
    assert "Cells run on live at http://" in used.stdout

    for command in ("sessions", "clock", "clock advance 1h", "log", "reset"):
        error = notebook.run(f"%sandbox {command}").stderr
        assert error.startswith(f"UsageError: %sandbox {command} works only on a double")
    assert "42" == notebook.run("%%sandbox\n6 * 7").text
    notebook.run("live.close()")


@pytest.mark.slow
def test_an_emulator_variable_is_a_platform(notebook: NotebookKernel) -> None:
    notebook.run("from agentdouble import Emulator\nmine = Emulator()\nmine.start()")

    assert "Cells run on mine, double at" in notebook.run("%sandbox use mine").stdout
    assert "42" == notebook.run("%%sandbox\n6 * 7").text
    notebook.run("%sandbox use double")
    notebook.run("%%sandbox\n1")  # starts the double, if no test before has done so
    assert " mine, " in notebook.run("%sandbox").stdout
    notebook.run("mine.stop()")


def test_a_platform_variable_is_looked_up_again(notebook: NotebookKernel) -> None:
    """Running the connecting cell again puts a new platform into it."""
    connect = "mine = doublecheck.Platform(platform.target)"
    notebook.run(f"{connect}\n%sandbox use mine\nmine.close()\n{connect}")

    assert "42" == notebook.run("%%sandbox\n6 * 7").text
    message = notebook.run("mine.close(); del mine\n%sandbox").stderr
    assert "Unknown platform 'mine'. Choose from: double, " in message


def test_loading_twice_is_harmless_and_unloading_ends_the_double(notebook: NotebookKernel) -> None:
    """``%reload_ext`` starts a new double."""
    notebook.run("%sandbox use double\n%%sandbox\n1")
    notebook.run("%%sandbox\n1")
    first = notebook.run("%sandbox").stdout.split()[5].removesuffix(".")
    notebook.run("%load_ext doublecheck")
    assert first in notebook.run("%sandbox").stdout

    notebook.run("%unload_ext doublecheck")
    assert "not found" in notebook.run("%sandbox").stderr
    ran = notebook.run(f"doublecheck.connect('{first}')")
    assert "UnreachableError" in (ran.error or "")

    assert notebook.run("%load_ext doublecheck\n%reload_ext doublecheck").error is None
    assert "platform, double at" in notebook.run("%sandbox").stdout


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%sandbox --se", ["--session"]),
        ("%sandbox cl", ["clock"]),
        ("x = 1\nfound = %sandbox se", ["sessions"]),
    ],
)
def test_options_and_commands_are_completed(
    notebook: NotebookKernel, cell: str, offered: list[str]
) -> None:
    assert offered == notebook.complete(cell)


@pytest.mark.slow
def test_cells_complete_the_names_of_their_session(notebook: NotebookKernel) -> None:
    """Names of the notebook are not offered."""
    notebook.run("%%sandbox --session tabbed\ntabular = {}")
    notebook.run("tabulated = 1")

    cell = "%%sandbox --session tabbed\nx = [\n  tabul\n]"
    assert ["tabular"] == notebook.complete(cell, cell.index("tabul\n") + len("tabul"))
    assert ["tabulated"] == notebook.complete("tabul")


@pytest.mark.slow
@pytest.mark.parametrize("line", ["%%sandbox --session nobody", "%%sandbox --on live"])
def test_cells_without_a_session_offer_nothing(notebook: NotebookKernel, line: str) -> None:
    """Names of the notebook are not offered, either."""
    notebook.run(
        "import dataclasses\ntabulated = 1\n"
        "live = doublecheck.Platform(dataclasses.replace(platform.target, kind='live'))"
    )

    assert [] == notebook.complete(f"{line}\ntabul")
    assert 0 == len(notebook.run("%sandbox sessions").bundles)
