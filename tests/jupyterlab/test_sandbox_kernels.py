"""JupyterLab whose kernels are sessions of a double: ``jupyter lab`` with its gateway."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import run, text
from tests.jupyterlab.conftest import NOTEBOOK
from tests.jupyterlab.pages import OpenNotebook, opened, started
from tests.jupyterlab.server import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.once]


@pytest.fixture
def notebook(browser: Browser, gateway_lab: Lab, emulator: Emulator) -> Iterator[OpenNotebook]:
    """A notebook with a new session as its kernel."""
    emulator.reset()
    with started(browser, gateway_lab) as page, opened(page, NOTEBOOK) as view:
        yield view


def kernels(double: Emulator) -> list[dict[str, Any]]:
    """Return the kernels that the double's Jupyter server lists."""
    headers = {"Authorization": f"token {double.token}"}
    listed: list[dict[str, Any]] = httpx.get(
        f"{double.url}/jupyter/api/kernels", headers=headers
    ).json()
    return listed


def test_cells_run_in_a_session_and_plot(notebook: OpenNotebook, emulator: Emulator) -> None:
    """An agent of the session has the variables of the notebook."""
    assert "42\n" == notebook.run("x = 6 * 7; print(x)")[0]["text"]
    plot = notebook.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert "image/png" in plot[-1]["data"]
    notebook.outputs().last.locator("img").wait_for()

    (kernel,) = kernels(emulator)
    assert "42\n" == text(emulator, "print(x)", kernel["user_session_id"])


def test_a_widget_calls_its_handler(notebook: OpenNotebook) -> None:
    """A click in the page reaches the session, and its output the page."""
    if importlib.util.find_spec("ipywidgets") is None:
        pytest.skip("needs ipywidgets: pip install ipywidgets")
    notebook.run(
        "import ipywidgets as w\n"
        "button, label = w.Button(description='Press'), w.Label('before')\n"
        "button.on_click(lambda _: setattr(label, 'value', 'after'))\n"
        "display(button, label)"
    )

    notebook.page.get_by_role("button", name="Press").click()

    notebook.page.get_by_text("after", exact=True).wait_for()


def test_interrupt_and_restart(notebook: OpenNotebook) -> None:
    notebook.begin("y = 1\nwhile True: pass")
    notebook.page.get_by_text("[*]").last.wait_for()
    notebook.command("notebook:interrupt-kernel")
    assert "KeyboardInterrupt" == notebook.ended()[0]["ename"]

    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    assert "NameError" == notebook.run("y")[0]["ename"]


def test_expiry_is_said_in_the_cell(notebook: OpenNotebook, emulator: Emulator) -> None:
    notebook.run("z = 1")
    emulator.clock.move(dt.timedelta(minutes=31))

    (output,) = notebook.run("z")

    assert "has no such kernel any more: expired at " in output["evalue"]
    notebook.outputs().last.get_by_text("Restart the kernel to get a new one").wait_for()
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    assert "NameError" == notebook.run("z")[0]["ename"]


def test_two_notebooks_on_one_kernel(
    notebook: OpenNotebook, browser: Browser, gateway_lab: Lab
) -> None:
    """A second browser opens the notebook and sees the variables of the first."""
    notebook.run("shared = 'both'")

    with started(browser, gateway_lab) as page:
        page.evaluate(
            """async (path) => {
              const opened = await window.jupyterapp.commands.execute("docmanager:open", {path});
              await opened.sessionContext.ready;
              await opened.sessionContext.session.kernel.info;
            }""",
            NOTEBOOK,
        )
        output = OpenNotebook(page).run("print(shared)")

    assert "both\n" == output[0]["text"]


_NBCLIENT = """
import asyncio
import nbformat
from jupyter_server.gateway.managers import GatewayKernelManager
from nbclient import NotebookClient

sources = ["x = 6 * 7", "for i in range(1000): print(i + x)"]
cells = [nbformat.v4.new_code_cell(source) for source in sources]
notebook = nbformat.v4.new_notebook(cells=cells)
client = NotebookClient(notebook, kernel_manager_class=GatewayKernelManager, timeout=60)
asyncio.run(client.async_execute())
print("".join(output["text"] for output in notebook.cells[1].outputs), end="")
"""


_PAPERMILL = """
import nbformat
import papermill

cells = [nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]})]
cells += [nbformat.v4.new_code_cell("for i in range(1000): print(i + x)")]
metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), "in.ipynb")
manager = "jupyter_server.gateway.managers.GatewayKernelManager"
options = {"kernel_manager_class": manager, "progress_bar": False}
notebook = papermill.execute_notebook("in.ipynb", "out.ipynb", parameters={"x": 42}, **options)
print("".join(output.text for output in notebook.cells[-1].outputs), end="")
"""


@pytest.mark.parametrize("program", [_NBCLIENT, _PAPERMILL], ids=["nbclient", "papermill"])
def test_programs_run_a_notebook_through_the_gateway(
    emulator: Emulator, tmp_path: Path, program: str
) -> None:
    """No line is lost, and its session ends with it."""
    if importlib.util.find_spec("jupyter_server") is None:
        pytest.skip("needs JupyterLab: pip install 'agentdouble[emulator,test,lab]'")
    emulator.reset()
    variables = {**os.environ, **emulator.environment("jupyter")}

    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert 0 == ended.returncode, ended.stderr
    assert [str(i + 42) for i in range(1000)] == ended.stdout.split()
    assert [] == kernels(emulator)


_ATTACH = """async ({url, token, id}) => {
  const lab = window.jupyterapp.serviceManager.kernels;
  const own = {baseUrl: url, wsUrl: url.replace("http", "ws"), token, appendToken: true};
  const manager = new lab.constructor({serverSettings: {...lab.serverSettings, ...own}});
  await manager.refreshRunning();
  const running = [...manager.running()].map(model => model.id);
  const kernel = manager.connectTo({model: {id, name: "python3"}});
  await kernel.info;
  let text = "";
  const future = kernel.requestExecute({code: "print(agents)"});
  future.onIOPub = message => { text += message.content.text ?? ""; };
  await future.done;
  manager.dispose();
  return [running, text];
}"""


def test_the_services_of_jupyterlab_attach_to_the_kernel_of_an_agent(
    notebook: OpenNotebook, emulator: Emulator
) -> None:
    """They do so without a Jupyter server between, as VS Code does."""
    run(emulator, "agents = 'own'", "agent")
    (id_,) = (k["id"] for k in kernels(emulator) if k["user_session_id"] == "agent")
    server = {"url": f"{emulator.url}/jupyter/", "token": emulator.token, "id": id_}

    running, output = notebook.page.evaluate(_ATTACH, server)

    assert id_ in running
    assert "own\n" == output


_BEGIN = """async ({url, token, name}) => {
  const {kernels, sessions} = window.jupyterapp.serviceManager;
  const own = {baseUrl: url, wsUrl: url.replace("http", "ws"), token, appendToken: true};
  const serverSettings = {...kernels.serverSettings, ...own};
  const kernelManager = new kernels.constructor({serverSettings});
  const manager = new sessions.constructor({serverSettings, kernelManager});
  await manager.ready;
  const session = await manager.startNew(
    {path: "from-code.ipynb", name: "from-code", type: "notebook", kernel: {name}});
  let text = "";
  const future = session.kernel.requestExecute({code: "print(agents)"});
  future.onIOPub = message => { text += message.content.text ?? ""; };
  await future.done;
  await manager.refreshRunning();
  const running = [...manager.running()].map(model => model.path);
  await session.shutdown();
  manager.dispose();
  kernelManager.dispose();
  return [running, text];
}"""


def test_the_services_of_jupyterlab_begin_a_session_with_the_kernel_of_an_agent(
    notebook: OpenNotebook, emulator: Emulator
) -> None:
    """So does VS Code for a kernelspec of an "Existing Jupyter Server"."""
    run(emulator, "agents = 'own'", "agent")
    (name,) = (k["name"] for k in kernels(emulator) if k["user_session_id"] == "agent")
    server = {"url": f"{emulator.url}/jupyter/", "token": emulator.token, "name": name}

    running, output = notebook.page.evaluate(_BEGIN, server)

    assert (["from-code.ipynb"], "own\n") == (running, output)
    assert "own\n" == text(emulator, "print(agents)", "agent")


def test_a_program_runs_a_notebook_in_the_session_of_an_agent(
    emulator: Emulator, tmp_path: Path
) -> None:
    """It ends, and the session goes on."""
    emulator.reset()
    run(emulator, "x = 1", "agent")
    (kernel,) = kernels(emulator)
    program = _NBCLIENT.replace("execute()", f"execute(kernel_name={kernel['name']!r})")

    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **emulator.environment("jupyter")},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert 0 == ended.returncode, ended.stderr
    assert "42\n" == text(emulator, "print(x)", "agent")
