"""Plans how the processes of sessions are forked: the fork server and the confinement.

A double has one fork server. It starts with the first process, and again if it has died.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentdouble.errors import KernelStartError, ResourceExhaustedError, SettingsError
from agentdouble.processes import capacity, isolation
from agentdouble.processes.fork_server.client import ForkServer, preload_failure
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.languages import Language
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkChannel, ForkedProcess
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.fork_server.protocol import ForkRequest
    from agentdouble.processes.isolation import Isolation
    from agentdouble.sandbox.session_process import SessionProcess

_NO_NETWORK_OF_ITS_OWN = (
    "network = 'none' needs the measure network, which only kernels of the fork server have that "
    "are held apart: provisioner = 'auto' on Linux, isolation = 'auto'"
)

_HEADERS = 16 * 1024  # bytes of a message in addition to its content, and some reserve
_FAMILY = 16  # a session and its copies may together have this many times its process_limit
_SHARE = 8  # a family may have this fraction of the processes that the machine has left
# What Python, and zmq and deno before they abort, say when they cannot start a thread.
_AT_LIMIT = ("can't start new thread", "Resource temporarily unavailable")
_STOPPED = "the double has stopped"


@dataclass(frozen=True)
class ForkPlan:
    """How a process of a session is forked."""

    server: ForkChannel
    kernel: str
    config: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, int]
    confinement: Mapping[str, Any] | None

    async def fork(self, request: ForkRequest, *descriptors: int) -> ForkedProcess:
        """Fork the process; raise ForkServerGoneError or OSError."""
        return await self.server.fork(request, *descriptors)


class ForkPlanner:
    """Plans how a session's processes are forked; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._forks = _forks(settings)
        self._settings = settings
        self._closed = False
        self._fork_server: ForkServer | None = None
        self._isolation: asyncio.Future[Isolation] | None = None

    @staticmethod
    def check(settings: Settings) -> None:
        """Raise SettingsError if this machine's kernels could not import a module of ``preload``."""
        if not (settings.preload and _forks(settings) and settings.nodes is None):
            return
        failure = preload_failure(settings.preload, settings.kernel_start_timeout_s)
        if failure is not None:
            message = (
                f"{failure[0].upper()}{failure[1:]}. Install it, or remove it from the setting."
            )
            raise SettingsError(message, key="preload", source="the settings")

    @property
    def server(self) -> ForkServer | None:
        """The fork server, or None if it has not been started."""
        return self._fork_server

    @property
    def pid(self) -> int | None:
        """The fork server's process id, or None if it has not been started."""
        return None if self._fork_server is None else self._fork_server.pid

    def close(self) -> None:
        """Refuse to prepare any process from now on."""
        self._closed = True

    async def stop(self) -> None:
        """End the fork server and all processes that it has forked."""
        if self._isolation is not None:
            await asyncio.wait({self._isolation})
        if self._fork_server is not None:
            await self._fork_server.stop()
        self._fork_server = None

    def prepare(self, program: Language) -> None:
        """Start the fork server, and start to probe which isolation this machine offers.

        Raises KernelStartError, also when the double has stopped: a process that starts then
        would never be ended.
        """
        if self._closed:
            raise KernelStartError(program.display_name, _STOPPED)
        if not self._forks:
            return
        if self._fork_server is None or self._fork_server.gone.done():
            try:
                self._fork_server = ForkServer(self._settings.preload)
            except OSError as error:
                refusal = capacity.refusal_of(error)
                raise refusal or KernelStartError(program.display_name, str(error)) from error
        if self._settings.isolation != "none" and isolation.is_unknown(self._isolation):
            self._isolation = asyncio.ensure_future(asyncio.to_thread(isolation.find_out))

    async def plan(
        self, language: Language, workspace: Workspace, run: Path, others: Iterable[SessionProcess]
    ) -> ForkPlan | None:
        """Return how to fork a program, or None without a fork server; call ``prepare`` first.

        ``others`` are the session's other processes, and ``run`` is a directory for this one only.
        Raises KernelStartError.
        """
        confinement = await self._confinement(language, workspace, run, others)
        if self._fork_server is None:
            return None
        return ForkPlan(
            server=self._fork_server,
            kernel=language.kernel,
            config=self._config(language),
            limits=self._limits,
            confinement=None if confinement is None else asdict(confinement),
        )

    async def _confinement(
        self, language: Language, workspace: Workspace, run: Path, others: Iterable[SessionProcess]
    ) -> Confinement | None:
        settings, name = self._settings, language.display_name
        if self._isolation is None:
            if settings.network == "none":
                raise KernelStartError(name, _NO_NETWORK_OF_ITS_OWN)
            return None
        try:
            isolation = await asyncio.shield(self._isolation)  # other starts wait for it, too
        except OSError as error:
            reason = f"what holds its isolation could not be determined: {error}"
            raise capacity.refusal_of(error) or KernelStartError(name, reason) from error
        if settings.network == "none" and not isolation.offers("network"):
            measure = isolation.measures["network"]
            reason = f"{measure.why_not}. What would bring it: {measure.remedy}"
            raise KernelStartError(name, f"network = 'none' needs the measure network: {reason}")
        networks = (k.pid for k in others if k.alive and self._network(k.language) == "own")
        limit = settings.process_limit
        if workspace.shares_user:
            limit = family_limit(limit)
        return isolation.confinement_for(
            workspace,
            run,
            network=self._network(language),
            network_of=next(networks, None),
            visible=settings.visible_paths,
            process_limit=limit,
            memory_limit=settings.memory_limit,
        )

    def _network(self, language: Language) -> Literal["shared", "own"]:
        return "own" if self._settings.network == "none" else language.network

    def _config(self, language: Language) -> dict[str, Mapping[str, Any]]:
        config = {
            **language.config,
            "CappedSession": {"limit": self._settings.output_limit + _HEADERS},
        }
        if language.memory == "address space":
            config["SandboxKernel"] = {"memory_limit": self._settings.memory_limit}
        return config

    @property
    def _limits(self) -> dict[str, int]:
        return {
            "open_files": self._settings.open_files_limit,
            # Below the limit of all files: a session lives on if Linux refuses a larger file.
            "file_size": self._settings.workspace_limit // 8 * 7,
        }


def family_limit(process_limit: int) -> int:
    """Return the limit of processes for a session with its copies, which Linux counts together.

    It is far below the machine's free processes, so that no session can use them up.
    """
    available = capacity.processes_available()
    limit = process_limit * _FAMILY
    return limit if available is None else max(process_limit, min(limit, available // _SHARE))


def process_limit_refusal(error: BaseException, limit: int | None) -> ResourceExhaustedError | None:
    """Return an error that names ``process_limit``, if that limit made a start fail."""
    named = isinstance(error, ResourceExhaustedError) and error.resource == "processes"
    if limit is None or not (named or any(sign in str(error) for sign in _AT_LIMIT)):
        return None
    reason = f"a session, with its living copies, has process_limit = {limit} of them"
    return ResourceExhaustedError("processes", reason, "raise the setting process_limit")


def _forks(settings: Settings) -> bool:
    return settings.provisioner == "agentdouble-fork" or (
        settings.provisioner == "auto" and sys.platform == "linux"
    )
