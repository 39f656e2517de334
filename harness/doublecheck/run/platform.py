"""The classes Platform and AsyncPlatform for users: the clients, with the contract checks.

The checks use the clients, so the clients cannot import them. Therefore ``check()`` is added here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.client._async import platform as async_client
from doublecheck.client._sync import platform as sync_client
from doublecheck.run import checks_process

if TYPE_CHECKING:
    from doublecheck.reports.report import Report


class Platform(sync_client.Platform):
    """A platform, double or live. Use it in a with statement, or call ``close()``.

    It blocks, so it also works inside a running event loop. ``timeout_s`` is the timeout for the
    application; run_code waits as long as its code may run. ``exchanges`` holds the last requests
    with their answers. Every method raises UnreachableError, NoAnswerError, RefusedError if the
    platform refuses, and AnswerError for an answer in another format.
    """

    def check(
        self,
        *,
        only: str | None = None,
        level: str | None = None,
        strict_should: bool = False,
        allow_writes: bool = False,
        examples: int | None = None,
        seed: int | None = None,
    ) -> Report:
        """Run the contract checks on the platform. See ``doublecheck.check``."""
        return checks_process.check_target(
            self.target,
            only=only,
            level=level,
            strict_should=strict_should,
            allow_writes=allow_writes,
            examples=examples,
            seed=seed,
        )


class AsyncPlatform(async_client.AsyncPlatform):
    """Platform for async code, with the same methods as coroutines. Use it in an async with.

    Without ``keep_connections`` each request uses a new connection, no connection stays open
    between two requests, and the platform may be used in several event loops, one after the other.
    """

    async def check(
        self,
        *,
        only: str | None = None,
        level: str | None = None,
        strict_should: bool = False,
        allow_writes: bool = False,
        examples: int | None = None,
        seed: int | None = None,
    ) -> Report:
        """Run the contract checks on the platform. See ``doublecheck.check``.

        Other tasks of the loop continue meanwhile. Cancelling this interrupts the checks.
        """
        return await checks_process.check_target_async(
            self.target,
            only=only,
            level=level,
            strict_should=strict_should,
            allow_writes=allow_writes,
            examples=examples,
            seed=seed,
        )
