"""Plans how the processes of sessions are forked: their kernel, limits and confinement."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentdouble.errors import KernelStartError, ResourceExhaustedError, SettingsError
from agentdouble.processes import capacity
from agentdouble.processes.fork_server.client import preload_failure
from agentdouble.processes.launcher import ForkPlan, Launcher
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.languages import Language
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.sandbox.session_process import SessionProcess

_NO_NETWORK_OF_ITS_OWN = (
    "network = 'none' needs the measure network, which only kernels of the fork server have that "
    "are held apart: provisioner = 'auto' on Linux, isolation = 'auto'"
)

_HEADERS = 16 * 1024  # bytes of a message in addition to its content, and some reserve
# What Python, and zmq and deno before they abort, say when they cannot start a thread.
_AT_LIMIT = ("can't start new thread", "Resource temporarily unavailable")


class ForkPlanner(Launcher):
    """Launches the processes of sessions, and plans how each is forked."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            "kernels",
            forks=_forks(settings),
            isolates=settings.isolation != "none",
            preload=settings.preload,
        )
        self._settings = settings

    @staticmethod
    def check(settings: Settings) -> None:
        """Raise SettingsError if this machine's kernels could not import a module of ``preload``."""
        if not (settings.preload and _forks(settings) and settings.nodes is None):
            return
        failure = preload_failure(settings.preload, settings.start_timeout_s)
        if failure is not None:
            message = (
                f"{failure[0].upper()}{failure[1:]}. Install it, or remove it from the setting."
            )
            raise SettingsError(message, key="preload", source="the settings")

    def prepare(self, program: Language) -> None:
        """Start the fork server, and start to probe which isolation this machine offers.

        Raises KernelStartError and ResourceExhaustedError.
        """
        try:
            self.begin()
        except OSError as error:
            refusal = capacity.refusal_of(error)
            raise refusal or KernelStartError(program.display_name, str(error)) from error

    async def plan(
        self, language: Language, workspace: Workspace, run: Path, others: Iterable[SessionProcess]
    ) -> ForkPlan | None:
        """Return how to fork a program, or None without a fork server; call ``prepare`` first.

        ``others`` are the session's other processes, and ``run`` is a directory for this one only.
        Raises KernelStartError.
        """
        confinement = await self._confinement(language, workspace, run, others)
        if self.server is None:
            return None
        return ForkPlan(
            server=self.server,
            kernel=language.kernel,
            config=self._config(language),
            limits=self._limits,
            confinement=None if confinement is None else asdict(confinement),
        )

    async def _confinement(
        self, language: Language, workspace: Workspace, run: Path, others: Iterable[SessionProcess]
    ) -> Confinement | None:
        settings, name = self._settings, language.display_name
        try:
            isolation = await self.isolation()
        except OSError as error:
            reason = f"what holds its isolation could not be determined: {error}"
            raise capacity.refusal_of(error) or KernelStartError(name, reason) from error
        if isolation is None:
            if settings.network == "none":
                raise KernelStartError(name, _NO_NETWORK_OF_ITS_OWN)
            return None
        if settings.network == "none" and not isolation.offers("network"):
            measure = isolation.measures["network"]
            reason = f"{measure.why_not}. What would bring it: {measure.remedy}"
            raise KernelStartError(name, f"network = 'none' needs the measure network: {reason}")
        networks = (k.pid for k in others if k.alive and self._network(k.language) == "own")
        limit = settings.process_limit
        if workspace.shares_user:
            limit = capacity.family_limit(limit)
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


def process_limit_refusal(error: BaseException, limit: int | None) -> ResourceExhaustedError | None:
    """Return an error that names ``process_limit``, if that limit made a start fail."""
    named = isinstance(error, ResourceExhaustedError) and error.resource == "processes"
    if limit is None or not (named or any(sign in str(error) for sign in _AT_LIMIT)):
        return None
    reason = f"a session, with its living copies, has process_limit = {limit} of them"
    return ResourceExhaustedError("processes", reason, "raise the setting process_limit")


def _forks(settings: Settings) -> bool:
    return settings.provisioner == "auto" and sys.platform == "linux"
