"""One instance of a runtime: a process with an address, from its start to its end."""

from __future__ import annotations

import asyncio

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes import launching
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.logs import InstanceLog

_POLL_S = 0.005  # a cold start is noticed that much late


class Instance:
    """A process that serves; ``in_flight`` are the requests that it has been given."""

    def __init__(self, name: str, definition: Definition, port: int) -> None:
        self.name = name
        self.definition = definition
        self.port = port
        self.in_flight = 0
        self.log = InstanceLog()
        self._process: launching.Process | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and not self._process.exited.done()

    @property
    def pid(self) -> int | None:
        """The process that it began with, None before."""
        return None if self._process is None else self._process.pid

    @classmethod
    async def start(cls, name: str, definition: Definition) -> Instance:
        """Return an instance that is ready for requests; raise RuntimeStartError."""
        instance = cls(name, definition, launching.free_port())
        patience_s = definition.scaling.start_timeout_s
        try:
            instance._process = await launching.launch(definition, instance.port, instance.log)
            await asyncio.wait_for(instance._ready(), patience_s)
        except asyncio.TimeoutError:
            await instance.end()
            reason = f"it was not ready after {patience_s:g} s"
            raise RuntimeStartError(definition.name, reason) from None
        except OSError as error:
            raise RuntimeStartError(definition.name, str(error)) from error
        except BaseException:
            await instance.end()
            raise
        return instance

    async def end(self) -> None:
        """End its processes; return when they are gone."""
        if self._process is not None:
            await self._process.end(self.definition.scaling.stop_timeout_s)

    async def _ready(self) -> None:
        while True:
            if not self.alive:
                raise RuntimeStartError(self.definition.name, "its process has ended")
            try:
                _, writer = await asyncio.open_connection(launching.HOST, self.port)
            except OSError:
                await asyncio.sleep(_POLL_S)
            else:
                writer.close()
                await writer.wait_closed()
                return
