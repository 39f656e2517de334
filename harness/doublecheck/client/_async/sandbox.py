"""A sandbox session as an object: code, commands, files, and its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform
    from doublecheck.client._async.protocols import AsyncBrowser
    from doublecheck.values.executions import BashResult, CodeResult, SessionSnapshot


@dataclass(frozen=True)
class AsyncPlatformSandbox:
    """A user's sandbox session. Its instance is created on first use.

    A copy of a snapshot does not belong to a user: its SessionId (``s-...``) in ``instance_id``
    names it. Once it has ended, it raises EndedCopyError, while a session of a user has a new
    instance.
    """

    platform: AsyncPlatform
    user_id: str
    session_id: str
    instance_id: str | None = None

    async def run(
        self,
        code: str,
        language: str = "python3",
        *,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        check: bool = False,
    ) -> CodeResult:
        """Run code and return its result; see ``Platform.run_code()``."""
        with _living(self.instance_id):
            return await self.platform.run_code(
                code, language, timeout_s=timeout_s, ttl_s=ttl_s, check=check, **self._named()
            )

    async def exec_bash(
        self,
        command: str,
        *,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        check: bool = False,
    ) -> BashResult:
        """Run a command in the session's terminal."""
        with _living(self.instance_id):
            return await self.platform.exec_bash(
                command, timeout_s=timeout_s, ttl_s=ttl_s, check=check, **self._named()
            )

    async def upload(self, path: str, content: bytes) -> str:
        """Upload a file to the session and return its path."""
        with _living(self.instance_id):
            return await self.platform.upload(path, content, **self._named())

    async def download(self, path: str) -> bytes:
        """Download a file from the session."""
        with _living(self.instance_id):
            return await self.platform.download(path, **self._named())

    async def browser(self) -> AsyncBrowser:
        """Return the session's browser."""
        with _living(self.instance_id):
            return await self.platform.browser(**self._named())

    async def snapshot(self) -> SessionSnapshot:
        """Take a snapshot. ``platform.sandbox(from_snapshot=...)`` makes copies of the session.

        Raises RefusedError, with the reason, if the platform cannot take it.
        """
        with _living(self.instance_id):
            return await self.platform.snapshot_session(**self._named())

    async def destroy(self) -> bool:
        """End the session's instance. Return whether there was one."""
        return await self.platform.destroy_session(**self._named())

    def _named(self) -> dict[str, Any]:
        """Return the arguments that name the session to the platform."""
        if self.instance_id is not None:
            return {"instance_id": self.instance_id}
        return {"user_id": self.user_id, "session_id": self.session_id}

    def __repr__(self) -> str:
        name = self.instance_id or f"{self.user_id}/{self.session_id}"
        return f"<AsyncPlatformSandbox {name} of {self.platform.url}>"


@contextmanager
def _living(instance_id: str | None) -> Iterator[None]:
    """Raise EndedCopyError for the refusal of a copy that has ended."""
    # slow: 30 ms, and every test run of an environment with the harness imports this module
    from doublecheck.errors import EndedCopyError, RefusedError

    try:
        yield
    except RefusedError as error:
        if instance_id is None or not error.code.startswith("InvalidResource.NotFound"):
            raise
        raise EndedCopyError(instance_id, error) from None
