"""The measures that this machine offers to isolate kernels; each is tried once.

``Isolation`` lists the measures, with the remedy for each missing one, and makes the confinement of
a session from the available ones.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentdouble.processes import workspace
from agentdouble.processes.fork_server.confinement import Confinement
from agentdouble.processes.workspace import Workspace

_PROBE = "agentdouble.processes.fork_server.probe"
_PROBE_PATIENCE_S = 30
# User ids without an owner: first the range that systemd leaves free above its containers; then
# the range of its dynamic users, for containers with only 65536 users
# (https://systemd.io/UIDS-GIDS/).
_USERS = (range(1_879_048_192, 2_147_352_576), range(61_184, 65_520))

_NAMESPACES = (
    "Linux 5.12, and user namespaces allowed: sysctl kernel.apparmor_restrict_unprivileged_userns=0 "
    "(Ubuntu), sysctl kernel.unprivileged_userns_clone=1 (Debian); in Docker: "
    "--cap-add SYS_ADMIN --security-opt apparmor=unconfined"
)
MEASURES = {  # the effect of each measure, and the remedy if it is missing
    "files": ("a session has its own /home/gem and /tmp, and no others in view", _NAMESPACES),
    "user": ("each session has its own user", "run the double as root"),
    "landlock": (
        "reads and writes end at the session's directories",
        "Linux 5.13, booted with landlock in lsm=",
    ),
    "signals": ("no signal reaches beyond the session", "Linux 6.12 with Landlock, or root"),
    "limits": (
        "no session can end other processes by limiting them",
        "seccomp, on x86_64 or aarch64; not needed with a process namespace",
    ),
    "network": ("a session can have its own loopback device", _NAMESPACES),
    "shared_memory": (
        "System V segments, queues and semaphores are limited",
        f"root, a writable /proc/sys, and {_NAMESPACES}",
    ),
    "pid_namespace": (
        "a session sees and reaches only its own processes, and all of them end at once",
        _NAMESPACES,
    ),
    "processes": ("a fork bomb ends with its session", f"root, or Linux 5.14 and {_NAMESPACES}"),
}


@dataclass(frozen=True)
class Measure:
    """One measure: its effect and, if it is missing, the reason and the remedy."""

    name: str
    effect: str
    why_not: str | None = None
    remedy: str | None = None

    @property
    def available(self) -> bool:
        """Whether this machine offers it."""
        return self.why_not is None


@dataclass(frozen=True)
class Isolation:
    """The measures of this machine, by name."""

    measures: Mapping[str, Measure]

    def offers(self, name: str) -> bool:
        """Return whether a measure is available."""
        return self.measures[name].available

    def confinement_for(
        self,
        workspace: Workspace,
        run: Path,
        *,
        network: Literal["shared", "own"] = "shared",
        network_of: int | None = None,
        visible: tuple[str, ...] = (),
        process_limit: int = 256,
        memory_limit: int = 1 << 30,
    ) -> Confinement | None:
        """Return the tightest available confinement; None if no measure is available.

        ``run`` is the directory for the sockets of this kernel only. If each session can have its
        own user, this method makes one user the owner of the workspace, for all its kernels. If a
        separate network is not available, the shared one is used, so call ``offers`` first.
        ``network_of`` is the pid of a kernel whose network this one joins.
        """
        if not any(self.offers(name) for name in ("files", "landlock", "user")):
            return None
        namespaces: Literal["plain", "user"] = "plain" if os.geteuid() == 0 else "user"
        # then the system itself refuses calls for processes outside the session
        apart = self.offers("pid_namespace") or self.offers("user")
        own_network = network == "own" and self.offers("network")
        return Confinement(
            home=str(workspace.home),
            tmp=str(workspace.tmp),
            run=str(run),
            root=str(workspace.root),
            uid=self._user_of(workspace) if self.offers("user") else None,
            namespaces=namespaces if self.offers("files") else None,
            network="own" if own_network else "shared",
            network_of=network_of if own_network else None,
            processes="own" if self.offers("pid_namespace") else "shared",
            landlock=self.offers("landlock"),
            visible=visible,
            own_limits=self.offers("limits") and not apart,
            process_limit=process_limit if self.offers("processes") else None,
            shared_memory=memory_limit if self.offers("shared_memory") else None,
        )

    def _user_of(self, workspace: Workspace) -> int:
        owner = workspace.home.stat().st_uid
        if owner != os.geteuid():
            return owner
        uid = next(_session_users())
        for directory in (workspace.home, workspace.tmp):
            for path in (directory, *directory.rglob("*")):  # none, or those of an archive
                os.chown(path, uid, uid, follow_symlinks=False)
        if not self.offers("files"):  # the user needs the path to it from the host's root
            for above in (workspace.runs, *workspace.runs.parents[:2]):
                above.chmod(0o711)
        return uid


@functools.cache
def find_out() -> Isolation:
    """Try every measure in a short-lived child process, in about 0.1 s; the result is cached.

    Raises OSError if the child does not start or takes too long. A machine that lacks a resource
    only for a moment must not be reported as one that offers nothing.
    """
    if sys.platform != "linux":
        return _isolation(dict.fromkeys(MEASURES, "requires Linux"))
    command = [sys.executable, "-m", _PROBE, str(next(_session_users()))]
    try:
        answer = subprocess.run(  # noqa: S603 (our own module)
            command,
            env={**os.environ, "TMPDIR": str(workspace.find())},
            capture_output=True,
            check=True,
            text=True,
            timeout=_PROBE_PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"the probe took longer than {_PROBE_PATIENCE_S:g} s") from error
    except subprocess.SubprocessError as error:
        return _isolation(dict.fromkeys(MEASURES, f"the probe failed: {error}"))
    return _isolation(json.loads(answer.stdout))


def is_unknown(finding: asyncio.Future[Isolation] | None) -> bool:
    """Return whether the measures have not been probed yet, or the probe has failed."""
    if finding is None or finding.cancelled():
        return True
    return finding.done() and finding.exception() is not None


def _isolation(reasons: Mapping[str, str | None]) -> Isolation:
    measures = {}
    for name, (effect, remedy) in MEASURES.items():
        why_not = reasons[name]
        measures[name] = Measure(name, effect, why_not, remedy if why_not is not None else None)
    return Isolation(measures)


@functools.cache
def _session_users() -> Iterator[int]:
    """Return unused user ids, from a random one on, because several doubles may run at once."""
    users = next((r for r in _USERS if _is_mapped(r[-1])), _USERS[-1])
    start = secrets.randbelow(len(users))
    return (users[(start + n) % len(users)] for n in itertools.count())


def _is_mapped(uid: int) -> bool:
    """Return whether the user exists in this process's user namespace."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return False
    spans = (tuple(map(int, line.split())) for line in lines)
    return any(first <= uid < first + count for first, _, count in spans)
