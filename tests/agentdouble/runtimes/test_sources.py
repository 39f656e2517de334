"""What a runtime sees that a client of the control plane created: nothing outside the sources."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from agentdouble import Emulator
from agentdouble.processes import isolation
from tests.agentdouble.calling import act, http, refusal
from tests.agentdouble.runtimes.asking import PROGRAM, ask
from tests.agentdouble.runtimes.test_interpreters import make_environment

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines"),
]
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """A double, the directory below which clients name runtimes, and one that none may see."""

    double: Emulator
    sources: Path
    outside: Path

    def create(self, query: Mapping[str, str], variables: Mapping[str, str] | None = None) -> str:
        """Create a runtime over the control plane, and return its name."""
        name = f"asked-{next(NUMBERS)}"
        act(self.double, "CreateRuntime", **self.request(name, query, variables or {}))
        return name

    def request(
        self, name: str, query: Mapping[str, str], variables: Mapping[str, str]
    ) -> dict[str, Any]:
        return {
            "Name": name,
            "RoleName": "r",
            "ArtifactType": "file",
            "ArtifactUrl": f"file://{self.sources}/app?{urlencode(query)}",
            "Envs": [{"Key": key, "Value": value} for key, value in variables.items()],
            "AuthorizerConfiguration": {"KeyAuth": {"ApiKey": "k"}},
        }

    def answer(self, name: str, expression: str) -> Any:
        """Return the status and the value of an expression in a runtime."""
        at = f"{self.double.url}/runtimes/{name}/"
        answer = http.post(at, content=expression, headers={"Authorization": "Bearer k"})
        return answer.json() if answer.status_code == 200 else answer.json()["error"]["message"]

    def sees(self, name: str, path: Path) -> bool:
        seen = self.answer(name, f"os.path.exists({str(path)!r})")
        assert seen in (True, False), seen
        return bool(seen)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    missing = isolation.find_out().measures["files"].why_not
    if missing is not None:
        pytest.skip(f"this machine has no view of the file system: {missing}")
    base = tmp_path_factory.mktemp("machine")
    sources, outside = base / "sources", base / "outside"
    (sources / "app").mkdir(parents=True)
    outside.mkdir()
    shutil.copy(PROGRAM, sources / "app")
    (outside / "secret").write_text("of the operator")
    (outside / "tool").write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} asking.py\n")
    (outside / "tool").chmod(0o755)
    with Emulator(runtime_sources=(sources,)) as double:
        yield Place(double, sources, outside)


@pytest.mark.parametrize("python", [sys.executable, None], ids=["python", "command"])
@pytest.mark.parametrize(
    "name",
    [
        *("PYTHONPATH", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "LD_LIBRARY_PATH"),
        *("VIRTUAL_ENV", "NODE_PATH", "PATH", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
    ],
)
def test_no_variable_shows_a_path(place: Place, name: str, python: str | None) -> None:
    """Whatever a variable means to the program, it makes nothing visible."""
    query = {"command": "python asking.py"} | ({} if python is None else {"python": python})

    made = place.create(query, {name: str(place.outside)})

    assert not place.sees(made, place.outside / "secret")


def test_a_later_variable_shows_no_path_of_a_declared_runtime(place: Place) -> None:
    """UpdateRuntime changes the variables of what the operator declared."""
    name = f"declared-{next(NUMBERS)}"
    directory = str(place.sources / "app")
    table = {"command": "python asking.py", "directory": directory, "python": sys.executable}
    place.double.runtimes.create(name, **table)
    listed = act(place.double, "ListRuntimes")["AgentKitRuntimes"]
    (id_,) = (one["RuntimeId"] for one in listed if one["Name"] == name)
    variables = [{"Key": "PYTHONPATH", "Value": str(place.outside)}]

    act(place.double, "UpdateRuntime", RuntimeId=id_, Envs=variables, ReleaseEnable=True)
    place.double.runtimes.release(name)

    assert str(place.outside) == ask(place.double, name, "os.environ['PYTHONPATH']")
    assert not place.sees(name, place.outside / "secret")


@pytest.mark.parametrize("kind", ["absolute", "on PATH", "link"])
def test_no_command_shows_its_program(place: Place, kind: str) -> None:
    """A program outside the sources and the system is not there for the instance."""
    tool = place.outside / "tool"
    link = place.sources / "app" / "tool-link"
    link.unlink(missing_ok=True)
    link.symlink_to(tool)
    command = {"absolute": str(tool), "on PATH": "tool", "link": "./tool-link"}[kind]

    made = place.create({"command": command}, {"PATH": f"{place.outside}:/usr/bin:/bin"})

    assert "code 127: there is no program" in place.answer(made, "1")


def test_programs_on_the_path_of_the_double_may_be_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's tools, by their names; of what lies beside them, nothing is shown."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{place.outside}")

    made = place.create({"command": "tool"})

    assert 2 == place.answer(made, "1 + 1")
    assert not place.sees(made, place.outside / "secret")


@pytest.mark.parametrize("where", ["absolute", "up", "on PATH", "argument"])
def test_an_error_does_not_tell_whether_a_path_exists(place: Place, where: str) -> None:
    """The same words for what is there and for what is not."""
    told = []
    for name in ("tool", "none"):
        path = str(place.outside / name)
        command = {
            "absolute": path,
            "up": f"../../outside/{name}",
            "on PATH": name,
            "argument": shlex.join(["sh", "-c", f"exec {path} x"]),
        }[where]
        made = place.create({"command": command}, {"PATH": f"{place.outside}:/usr/bin:/bin"})
        told.append(place.answer(made, "1").replace(made, "NAME").replace(f"/{name}", "/IT"))

    assert told[0].replace("'tool'", "'none'") == told[1]


def test_the_error_names_what_an_instance_does_not_see(place: Place) -> None:
    """With the setting that shows it, which is the operator's."""
    made = place.create({"command": f"{place.outside}/tool x"})

    assert (
        f"; isolation does not show {place.outside}/tool, which its command names: list what it "
        "needs in visible_paths"
    ) in place.answer(made, "1")


def test_what_names_no_path_is_told_without_one(place: Place) -> None:
    """An address is none, and PATH is the double's."""
    made = place.create({"command": "no-program http://127.0.0.1:1/x"})

    assert "code 127: there is no program 'no-program'. What" in place.answer(made, "1")


@pytest.mark.parametrize("place_of", ["absolute", "up"])
def test_a_module_is_named_without_a_path(place: Place, place_of: str) -> None:
    """A path in place of a module would tell whether it exists."""
    told = []
    for name in ("secret", "none"):
        path = f"{place.outside}/{name}" if place_of == "absolute" else f"../../outside/{name}"
        asked = place.request("x", {"application": f"{path}:app"}, {})
        told.append(refusal(place.double, "CreateRuntime", **asked))

    assert told[0][:2] == told[1][:2] == (400, "InvalidParameter")
    assert told[0][2].replace("secret", "none") == told[1][2]


@pytest.mark.parametrize("kind", ["program", "sitecustomize", "pth"])
def test_an_interpreter_of_a_client_runs_confined_alone(place: Place, kind: str) -> None:
    """The double does not execute it to learn what it is: that would be outside the confinement."""
    mark = place.outside / f"written-by-{kind}"
    environment = make_environment(place.sources / "app" / f"venv-{kind}", "1.0")
    packages = next(environment.directory.glob("lib/python*/site-packages"))
    write = f"import os; os.path.isdir({str(mark.parent)!r}) and open({str(mark)!r}, 'w').close()"
    if kind == "program":
        environment.python.unlink()
        environment.python.write_text(f"#!/bin/sh\necho > {mark}\nexec {sys.executable} $@\n")
        environment.python.chmod(0o755)
    elif kind == "sitecustomize":
        (packages / "sitecustomize.py").write_text(write)
    else:
        (packages / "mark.pth").write_text(f"{write}\n")

    made = place.create({"command": "python asking.py", "python": str(environment.python)})

    assert 2 == place.answer(made, "1 + 1")
    assert not mark.exists()


def test_an_environment_below_the_sources_has_its_libraries(place: Place) -> None:
    """Also where its interpreter is a link to an installation elsewhere."""
    environment = make_environment(place.sources / "libraries" / ".venv", "3.0")

    made = place.create({"command": "python asking.py", "python": str(environment.python)})

    seen = "__import__('pinnedlib').version, sys.prefix"
    assert ["3.0", str(environment.directory)] == place.answer(made, seen)


@pytest.mark.parametrize("kind", ["pth", "pyvenv.cfg", "part", "link", "parent", "installation"])
def test_no_file_of_an_environment_shows_a_path(place: Place, kind: str) -> None:
    """A list of paths, the home of an environment, a link, or the directory above the sources.

    Of a directory into which Python was installed, only Python is shown.
    """
    directory = place.sources / "app" / f"shows-{kind}"
    environment = make_environment(directory, "1.0")
    python = environment.python
    if kind == "pth":
        packages = next(directory.glob("lib/python*/site-packages"))
        (packages / "more.pth").write_text(f"{place.outside}\n")
    elif kind == "pyvenv.cfg":
        (place.outside / "bin").mkdir(exist_ok=True)
        (directory / "pyvenv.cfg").write_text(f"home = {place.outside}/bin\n")
    elif kind == "part":
        next(directory.glob("lib/python*")).joinpath("os.py").touch()
        (directory / "share").symlink_to(place.outside)
    elif kind in ("link", "installation"):
        (place.outside / "bin").mkdir(exist_ok=True)
        shutil.copy(os.path.realpath(sys.executable), place.outside / "bin" / "python")
        python.unlink()
        python.symlink_to(place.outside / "bin" / "python")
        if kind == "installation":
            library = place.outside / "lib" / "python3.99"
            library.mkdir(parents=True)
            (library / "os.py").touch()
    else:
        python = place.sources / "python"
        python.symlink_to(sys.executable)
        (place.sources.parent / "pyvenv.cfg").write_text(f"home = {sys.prefix}/bin\n")

    made = place.create({"command": "/usr/bin/env python3 asking.py", "python": str(python)})

    shown = place.answer(made, f"os.path.exists({str(place.outside / 'secret')!r})")
    assert shown is not True, shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives instances other users")
def test_a_closed_file_in_a_command_changes_no_user(place: Place) -> None:
    """An instance that runs as root without rights would still read root's own files."""
    closed = place.outside / "closed"
    closed.write_text("")
    closed.chmod(0o600)

    made = place.create({"command": f"python asking.py {closed} /etc/shadow"})

    assert 0 != place.answer(made, "os.getuid()")
    assert "PermissionError" == place.answer(made, "open('/etc/shadow').read(1)")


def test_a_directory_that_became_a_link_is_followed_and_refused(place: Place) -> None:
    """What counts is where it leads when an instance starts."""
    moved = place.sources / "moved"
    shutil.copytree(place.sources / "app", moved, symlinks=True)
    asked = place.request("moved", {"command": "python asking.py"}, {})
    asked["ArtifactUrl"] = asked["ArtifactUrl"].replace("/app?", "/moved?")
    act(place.double, "CreateRuntime", **asked)
    shutil.rmtree(moved)
    moved.symlink_to(place.outside)

    assert f"{moved} leads out of the directories in runtime_sources" in place.answer("moved", "1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives instances other users")
def test_a_closed_directory_of_root_shows_no_closed_file_of_the_system(place: Place) -> None:
    """Its instance runs as the owner of the files, whom the system would let read its own."""
    closed = place.sources / "closed"
    closed.mkdir()
    shutil.copy(PROGRAM, closed)
    closed.chmod(0o700)
    asked = place.request("closed", {"command": "python asking.py"}, {})
    asked["ArtifactUrl"] = asked["ArtifactUrl"].replace("/app?", "/closed?")
    act(place.double, "CreateRuntime", **asked)

    assert [0, ""] == place.answer("closed", "os.getuid(), open('/etc/shadow').read()")
    assert "root" == place.answer("closed", "open('/etc/passwd').read(4)")
