"""Runtimes created by control-plane clients see nothing outside the sources."""

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
from tests import machine
from tests.agentdouble.calling import act, http
from tests.agentdouble.runtimes.asking import PROGRAM, ask

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines"),
]
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """A double, the directory for clients' runtimes, and a forbidden one."""

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
        visible = self.answer(name, f"os.path.exists({str(path)!r})")
        assert visible in (True, False), visible
        return bool(visible)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    machine.require("files")
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
@pytest.mark.parametrize("name", ["PYTHONPATH", "PATH", "SSL_CERT_FILE"])
def test_variables_make_no_path_visible(place: Place, name: str, python: str | None) -> None:
    """Whatever a variable means to the program."""
    query = {"command": "python asking.py"} | ({} if python is None else {"python": python})

    id_ = place.create(query, {name: str(place.outside)})

    assert not place.sees(id_, place.outside / "secret")


def test_updated_variables_make_no_path_visible(place: Place) -> None:
    """UpdateRuntime changes the variables of a declared runtime."""
    name = f"declared-{next(NUMBERS)}"
    directory = str(place.sources / "app")
    table = {"command": "python asking.py", "directory": directory, "python": sys.executable}
    place.double.runtimes.create(name, **table)
    listed = act(place.double, "ListRuntimes")["AgentKitRuntimes"]
    (id_,) = (runtime["RuntimeId"] for runtime in listed if runtime["Name"] == name)
    variables = [{"Key": "PYTHONPATH", "Value": str(place.outside)}]

    act(place.double, "UpdateRuntime", RuntimeId=id_, Envs=variables, ReleaseEnable=True)
    place.double.runtimes.release(name)

    assert str(place.outside) == ask(place.double, name, "os.environ['PYTHONPATH']")
    assert not place.sees(name, place.outside / "secret")


@pytest.mark.parametrize("kind", ["absolute", "link"])
def test_commands_do_not_make_their_program_visible(place: Place, kind: str) -> None:
    """Programs outside the sources and the system do not exist for the instance."""
    link = place.sources / "app" / f"link-{kind}"
    link.symlink_to(place.outside / "tool")
    command = {"absolute": place.outside / "tool", "link": f"./{link.name}"}[kind]

    id_ = place.create({"command": str(command)}, {"PATH": f"{place.outside}:/usr/bin:/bin"})

    assert "code 127: program" in place.answer(id_, "1")


def test_programs_on_the_double_s_path_may_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's tools, by name; the files beside them stay hidden."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{place.outside}")

    id_ = place.create({"command": "tool"})

    assert 2 == place.answer(id_, "1 + 1")
    assert not place.sees(id_, place.outside / "secret")


def test_directory_replaced_by_an_outside_link_is_refused(place: Place) -> None:
    """The link's target counts when an instance starts."""
    moved = place.sources / "moved"
    shutil.copytree(place.sources / "app", moved, symlinks=True)
    request = place.request("moved", {"command": "python asking.py"}, {})
    request["ArtifactUrl"] = request["ArtifactUrl"].replace("/app?", "/moved?")
    act(place.double, "CreateRuntime", **request)
    shutil.rmtree(moved)
    moved.symlink_to(place.outside)

    assert f"{moved} leads out of the directories in runtime_sources" in place.answer("moved", "1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives instances other users")
def test_closed_directory_of_root_exposes_no_closed_system_file(place: Place) -> None:
    """Its instance runs as the files' owner, who could otherwise read the system's."""
    closed = place.sources / "closed"
    closed.mkdir()
    shutil.copy(PROGRAM, closed)
    closed.chmod(0o700)
    request = place.request("closed", {"command": "python asking.py"}, {})
    request["ArtifactUrl"] = request["ArtifactUrl"].replace("/app?", "/closed?")
    act(place.double, "CreateRuntime", **request)

    assert [0, ""] == place.answer("closed", "os.getuid(), open('/etc/shadow').read()")
    assert "root" == place.answer("closed", "open('/etc/passwd').read(4)")
