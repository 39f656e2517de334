"""The Python that a session finds on PATH: its kernel's, on every surface."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, body_of, call, data_plane, exec_bash, text
from tests.agentdouble.jupyter.notebook_client import JupyterClient
from tests.agentdouble.sandbox.workbench.test_terminals import screen

SCRIPTS = str(Path(sys.executable).parent)
COMMAND = 'python -c "import sys; print(sys.prefix)"'
PATH = "import os; print(os.environ['PATH'])"

IN_CELLS = {
    "python": "import sys; print(sys.prefix)",
    "bang": f"!{COMMAND}",
    "captured": f"lines = !{COMMAND}\nprint(lines[0])",
    "sx": f"print(get_ipython().run_line_magic('sx', '{COMMAND}')[0])",
    "cell magic": f"%%bash\n{COMMAND}",
    "script magic": "%%script python\nimport sys; print(sys.prefix)",
    "system": f"import os; done = os.system('{COMMAND}')",
    "popen": f"import os; print(os.popen('{COMMAND}').read(), end='')",
    "subprocess": "import subprocess, sys\n"
    "print(subprocess.run(['python', '-c', 'import sys; print(sys.prefix)'],"
    " capture_output=True, text=True).stdout, end='')",
    "asyncio": "import asyncio\n"
    f"process = await asyncio.create_subprocess_shell('{COMMAND}', stdout=-1)\n"
    "print((await process.communicate())[0].decode(), end='')",
    "which": "import shutil, pathlib\nprint(pathlib.Path(shutil.which('python')).parent.parent)",
}


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with another ``python``, as in an ordinary user's home."""
    directory = tmp_path_factory.mktemp("home") / "bin"
    directory.mkdir()
    (directory / "python").symlink_to("/bin/false")
    return directory


@pytest.fixture(scope="module", params=["auto", "local-provisioner"])
def inactive(request: pytest.FixtureRequest, hidden: Path) -> Iterator[Emulator]:
    """A double that was started by the path of its Python, with another environment active."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{hidden}:/usr/bin:/bin:")
        patch.setenv("VIRTUAL_ENV", str(hidden.parent))
        with Emulator(provisioner=request.param) as double:
            yield double


@pytest.mark.parametrize("kind", IN_CELLS)
def test_cells(inactive: Emulator, kind: str) -> None:
    assert f"{sys.prefix}\n" == text(inactive, IN_CELLS[kind]).replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command", ["!pip --version", "%pip --version", "!python -m pip --version"]
)
def test_pip_is_that_of_the_kernel(inactive: Emulator, command: str) -> None:
    import pip

    assert str(Path(pip.__file__).parent) in text(inactive, command)


def test_bash(inactive: Emulator) -> None:
    """ExecBash, a bash session and a terminal."""
    plane = data_plane(inactive)

    assert f"{sys.prefix}\n" == exec_bash(inactive, COMMAND)["data"]["stdout"]
    assert f"{sys.prefix}\n" == plane.bash(COMMAND)["stdout"]
    with screen(plane) as terminal:
        terminal.opened()
        terminal.send("input", f"echo =$({COMMAND})=\n")
        assert f"={sys.prefix}=" in terminal.until(f"={sys.prefix}=")


def test_kernels_of_notebooks_and_of_the_data_plane(inactive: Emulator) -> None:
    client = JupyterClient(inactive)
    with client.http, client.attached(client.new_kernel()) as notebook:
        assert f"{sys.prefix}\n" == notebook.text(IN_CELLS["subprocess"])
    plane = data_plane(inactive)
    code = IN_CELLS["subprocess"]
    further = plane.data("/v1/jupyter/execute", code=code, session_id="further")
    assert f"{sys.prefix}\n" == further["outputs"][0]["text"]
    assert (
        f"{sys.prefix}\n" == plane.data("/v1/code/execute", code=code, language="python")["stdout"]
    )


@pytest.mark.needs("files")
def test_every_surface_has_the_same_path_without_hidden_directories(hidden: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{hidden}:/usr/bin:{hidden}:/bin:")
        with Emulator() as double:
            expected = f"{SCRIPTS}:/usr/bin:/bin\n"
            assert expected == text(double, PATH)
            assert expected == exec_bash(double, "echo $PATH")["data"]["stdout"]
            assert expected == data_plane(double).bash("echo $PATH")["stdout"]
        with Emulator(visible_paths=[str(hidden)]) as double:
            assert f"{SCRIPTS}:{hidden}:/usr/bin:/bin\n" == text(double, PATH)


@pytest.mark.parametrize(
    ("own", "expected"),
    [("/home/gem/bin:/bin", f"{SCRIPTS}:/home/gem/bin:/bin"), (f"/x:{SCRIPTS}", f"/x:{SCRIPTS}")],
)
def test_a_tool_can_set_a_path(own: str, expected: str) -> None:
    """It is kept, with the kernel's Python first unless it names that itself."""
    with Emulator() as double:
        envs = [{"Key": "PATH", "Value": own}]
        tool = act(double, "CreateTool", Name="t", ToolType="CodeEnv", Envs=envs)["ToolId"]
        body = {**body_of(double, PATH), "ToolId": tool}
        outputs = json.loads(call(double, body).json()["Result"]["Result"])["data"]["outputs"]
        assert f"{expected}\n" == outputs[0]["text"]
