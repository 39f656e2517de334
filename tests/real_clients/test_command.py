"""The command, with clients that run in this interpreter."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.real_clients import __main__ as command
from tests.real_clients.clients import CLIENTS, Client
from tests.real_clients.environments import PROGRAMS, NotMadeError, Npm
from tests.real_clients.expected import PARTS

README = Path(__file__).parents[2] / "emulator" / "docs" / "clients.md"
MCP, A2A = ("mcp-2", "a2a-sdk-1")


@dataclass(frozen=True)
class Here:
    """The environment of the tests."""

    package: str
    code: str = ""

    def make(self, cache: Path) -> None:
        if not self.package:
            raise NotMadeError("There is no network.")

    def command(self, cache: Path) -> Sequence[str]:
        run = ["-c", self.code] if self.code else [str(PROGRAMS / "launch.py")]
        return [sys.executable, "-W", "ignore", *run]

    def version(self, cache: Path) -> str:
        return version(self.package)


def choose(monkeypatch: pytest.MonkeyPatch, *clients: Client) -> None:
    """Limit the command to these clients."""
    monkeypatch.setattr(command, "CLIENTS", clients)


def named(name: str, environment: Here) -> Client:
    """Return a client of the table with another environment."""
    return replace(next(item for item in CLIENTS if item.name == name), environment=environment)


@pytest.mark.slow
def test_real_clients_hold_whole_conversations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The official clients run in processes, in each era and over each binding."""
    choose(monkeypatch, named(MCP, Here("mcp")), named(A2A, Here("a2a-sdk")))

    code = command.main(["--json", "--cache", str(tmp_path)])
    results = json.loads(capsys.readouterr().out)

    assert [(MCP, version("mcp"), []), (A2A, version("a2a-sdk"), [])] == [
        (result["client"], result["version"], result["problems"]) for result in results
    ]
    assert 0 == code
    assert {"with sessions", "without sessions"} == set(results[0]["ran"])
    assert set(results[0]["ran"]["with sessions"]) == set(PARTS["with sessions"])


def test_failures_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clients after a failed one still run."""
    wrong = "import json; json.dump({'keys': {'runtime': 7}}, open('outcome', 'w'))"
    choose(
        monkeypatch,
        Client("wrong", Here("mcp", wrong), "", ("keys", "more")),
        Client("raising", Here("mcp", "raise SystemExit('boom')"), "", ()),
        Client("absent", Here(""), "", ()),
        Client("right", Here("mcp", "open('outcome', 'w').write('{}')"), "", ()),
    )

    code = command.main(["--cache", str(tmp_path)])
    printed, log = capsys.readouterr()

    assert 1 == code
    assert [
        "wrong: more was not run",
        "wrong: keys: runtime is 7 instead of 'hello'",
        "raising: boom",
        "absent: There is no network.",
    ] == [line for line in printed.splitlines() if line and not line.startswith("|")]
    assert ["failed"] * 3 == [row.split(" | ")[-1].rstrip(" |") for row in rows(printed)[:3]]
    assert rows(printed)[3].startswith(f"| right | {version('mcp')} |  | passed")
    assert str(tmp_path) in log


def test_unknown_client_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists the known clients."""
    with pytest.raises(SystemExit, match="2"):
        command.main(["--only", "netscape"])

    assert all(client.name in capsys.readouterr().err for client in CLIENTS[:1])


def test_readme_names_the_clients() -> None:
    packages = {getattr(item.environment, "package", "") for item in CLIENTS} - {"a2a-js-0.3"}

    assert [] == [name for name in packages if f"`{name}`" not in README.read_text("utf-8")]


def test_javascript_clients_are_locked(tmp_path: Path) -> None:
    """They are dependencies of the package whose lock CI installs."""
    locked = json.loads((PROGRAMS.parent / "from_npm" / "package-lock.json").read_text("utf-8"))
    packages = {item.environment.package for item in CLIENTS if isinstance(item.environment, Npm)}

    assert packages <= set(locked["packages"][""]["dependencies"])


def rows(printed: str) -> list[str]:
    """Return the rows of a table."""
    return [line for line in printed.splitlines() if line.startswith("|")][2:]
