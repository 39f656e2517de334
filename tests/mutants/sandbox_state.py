"""Doubles whose sessions share a state, keep one too long, or lose one too early."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from agentdouble.processes import workspace as workspaces
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import Language
from tests.mutants.sandbox_changes import PYTHON, Patched, code

Group = Callable[[Instance], str]


def one_kernel(name: str, *, of: Group = lambda _: "") -> Patched:
    """Share a language's kernel among the instances of a group."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Instance._kernel
        owners: dict[str, Instance] = {}

        async def kernel(self: Instance, language: Language) -> Kernel:
            if language.name != name:
                return await original(self, language)
            owner = owners.get(of(self))
            if owner is None or owner.end_reason is not None:
                owner = owners[of(self)] = self
            return await original(owner, language)

        patch.setattr(Instance, "_kernel", kernel)

    return change


def fresh_kernels(when: Callable[[str, Language], bool]) -> Patched:
    """Start a language anew; it is decided by what ran before, a language or ``bash``."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original, bash = Instance._kernel, Instance.exec_bash
        before: dict[str, str] = {}

        async def kernel(self: Instance, language: Language) -> Kernel:
            old = self._kernels.get(language.name)
            if old is not None and when(before.get(self.id, ""), language):
                del self._kernels[language.name]
                await old.kill("it is started anew")
            before[self.id] = language.name
            return await original(self, language)

        async def exec_bash(self: Instance, *given: Any) -> Any:
            before[self.id] = "bash"
            return await bash(self, *given)

        patch.setattr(Instance, "_kernel", kernel)
        patch.setattr(Instance, "exec_bash", exec_bash)

    return change


def one_directory(kind: Literal["home", "tmp"]) -> Patched:
    """Share the files at home, or the temporary ones, among all sessions."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Workspaces.make

        def make(self: Workspaces, *given: Any) -> Workspace:
            made = original(self, *given)
            shared = self._root / "shared" / kind
            shared.mkdir(mode=0o777, parents=True, exist_ok=True)
            for directory in (made.home, made.tmp, shared):
                directory.chmod(0o777)
            return replace(made, home=shared) if kind == "home" else replace(made, tmp=shared)

        patch.setattr(Workspaces, "make", make)
        patch.setattr(Workspace, "remove", lambda self: workspaces._remove(self.runs.parent))

    return change


def kept_files(patch: pytest.MonkeyPatch) -> None:
    """Give a session that comes back the files that it had before its end."""
    create, end = Instances._create, Instance.end
    kept: dict[Any, Workspace | None] = {}

    async def created(self: Instances, key: Any, *rest: Any) -> Instance:
        instance = await create(self, key, *rest)
        instance._workspace = kept.get(key)
        return instance

    async def ended(self: Instance, reason: str) -> None:
        kept[self.key], self._workspace = self._workspace, None
        await end(self, reason)

    patch.setattr(Instances, "_create", created)
    patch.setattr(Instance, "end", ended)


def recycled(*languages: str, same_session: bool) -> Patched:
    """Give a new instance the kernels of an ended one, of the same session or of any."""

    def change(patch: pytest.MonkeyPatch) -> None:
        create, end = Instances._create, Instance.end
        ended: dict[Any, dict[str, Kernel]] = {}

        async def created(self: Instances, key: Any, *rest: Any) -> Instance:
            instance = await create(self, key, *rest)
            left = ended.pop(key if same_session else "", {})
            instance._kernels.update(left)
            return instance

        async def without_end(self: Instance, reason: str) -> None:
            living = [name for name in languages if name in self._kernels]
            left = {name: self._kernels.pop(name) for name in living}
            ended[self.key if same_session else ""] = left
            if left:
                self._workspace = None  # the kernels go on in its directories
            await end(self, reason)

        patch.setattr(Instances, "_create", created)
        patch.setattr(Instance, "end", without_end)

    return change


_QUIETLY = """
import contextlib as _contextlib, io as _io
with _contextlib.redirect_stdout(_io.StringIO()), _contextlib.suppress(BaseException):
    exec({!r}, {{}})
"""


def replayed(pattern: str) -> Patched:
    """Run the code of other sessions that matches, for what it does beyond its variables."""
    matching: list[tuple[str, str]] = []
    done: dict[str, int] = {}

    def with_others(instance: Instance, code: str, language: str) -> str:
        if language not in PYTHON:
            return code
        new = matching[done.get(instance.id, 0) :]
        if re.search(pattern, code, re.MULTILINE):
            matching.append((instance.id, code))
        done[instance.id] = len(matching)
        others = [_QUIETLY.format(theirs) for id_, theirs in new if id_ != instance.id]
        return "".join(f"exec({one!r}, {{}})\n" for one in others) + code

    return code(with_others)


def own_directory(name: Literal["workbench", "javascript"]) -> Patched:
    """Give the terminal, or the code of a language, a home that no other part of a session sees."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original: Any = KernelPool._start_workbench if name == "workbench" else KernelPool._start
        homes: dict[Path, Workspace] = {}

        async def start(self: KernelPool, *given: Any) -> Any:
            if name == "javascript" and given[0].name != name:
                return await original(self, *given)
            at = 0 if name == "workbench" else 1
            theirs = homes.get(given[at].home) or self.workspace(given[at].variables)
            homes[given[at].home] = theirs
            return await original(self, *given[:at], theirs, *given[at + 1 :])

        patch.setattr(KernelPool, original.__name__, start)

    return change
