"""The runtimes of a double, by name and by id."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.errors import RuntimeNameError, UnknownRuntimeError
from agentdouble.runtimes.definition import Definition, check_name
from agentdouble.runtimes.instance import Launch
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from agentdouble.runtimes.definition import Version
    from agentdouble.runtimes.registry import Managed, RuntimeRegistry
    from agentdouble.runtimes.runtime import Status

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.25
_IDLE_S = 300.0


class Runtimes:
    """Creates, finds and ends runtimes; belongs to one event loop.

    If a runtime does not set its own idle time, ``idle_s`` applies, provided that the ledger lets
    the settings decide. ``taken`` are names that no runtime can have.
    """

    def __init__(
        self,
        clock: Clock,
        monitor: Monitor,
        launch: Launch,
        *,
        idle_s: float = _IDLE_S,
        taken: Collection[str] = (),
    ) -> None:
        self._clock = clock
        self._monitor = monitor
        self._launch = launch
        self._idle_s = idle_s
        self._taken = frozenset(taken)
        self._by_name: dict[str, Runtime] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._open = False

    def all(self) -> tuple[Runtime, ...]:
        """Return the runtimes in the order of their creation."""
        return tuple(self._by_name.values())

    def find(self, name: str) -> Runtime | None:
        """Return the runtime with this name, or None."""
        return self._by_name.get(name)

    def find_by_id(self, id_: str) -> Runtime | None:
        """Return the runtime with this id, or None."""
        return next((one for one in self._by_name.values() if one.id == id_), None)

    async def create(self, definition: Definition, id_: str | None = None) -> Runtime:
        """Create a runtime; raise RuntimeNameError.

        ``id_`` is the id of a runtime that existed before the double was restarted.
        """
        check_name(definition.name, self._taken)
        if definition.name in self._by_name:
            raise RuntimeNameError(definition.name, "there is one of that name")
        runtime = Runtime(
            id_ or f"r-{secrets.token_hex(8)}", definition, self._clock, self._monitor, self._launch
        )
        self._by_name[definition.name] = runtime
        if self._open:
            runtime.ensure_min_instances()
        return runtime

    def ensure_min_instances(self) -> None:
        """Keep the ``min_instances`` of every runtime from now on."""
        self._open = True
        for runtime in self.all():
            runtime.ensure_min_instances()

    async def delete(self, name: str) -> None:
        """End a runtime and its instances; raise UnknownRuntimeError."""
        if name not in self._by_name:
            raise UnknownRuntimeError(name, self._by_name)
        await asyncio.wait({self._end(name, "it was deleted")})

    async def close(self, reason: str = "the double was reset or stopped") -> None:
        """End all runtimes; return when nothing is left, also of those deleted before."""
        for name in list(self._by_name):
            self._end(name, reason)
        if self._closing:
            await asyncio.wait(set(self._closing))

    def begin_shutdown(self) -> None:
        """Turn away waiting requests: the double is about to stop."""
        for runtime in self.all():
            runtime.begin_shutdown()

    def end_idle(self) -> None:
        """End the instances that have been idle for long enough (HST-02, U-SCALE-IDLE)."""
        for runtime in self.all():
            runtime.end_idle(self._unsaid_idle_s())

    async def settle(self) -> None:
        """End idle instances; return when every ending instance has ended."""
        idle_s = self._unsaid_idle_s()
        await asyncio.gather(*(runtime.settle(idle_s) for runtime in self.all()))

    async def reap(self) -> None:
        """End idle instances for ever; it polls, because a move of a frozen clock wakes no task."""
        while True:
            try:
                self.end_idle()
            except Exception:  # an error must not stop the reaper
                _log.exception("The instances that are idle could not be ended.")
            await asyncio.sleep(REAPER_INTERVAL_S)

    def _unsaid_idle_s(self) -> float:
        return self._idle_s if ledger.choose("U-SCALE-IDLE") == "settings" else _IDLE_S

    async def _close(self, runtime: Runtime, reason: str) -> None:
        await runtime.close(reason)
        if self.find(runtime.name) is None:
            self._monitor.forget(runtime.name)

    def _end(self, name: str, reason: str) -> asyncio.Task[None]:
        """Begin to end a runtime in a separate task; from now on it cannot be found."""
        task = asyncio.ensure_future(self._close(self._by_name.pop(name), reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task


T = TypeVar("T")
Call = Callable[[Coroutine[Any, Any, Any]], Any]


class HostedRuntimes:
    """The runtimes, as ``double.runtimes``; callable from any thread but the double's own.

    ::

        with Emulator() as double:
            address = double.runtimes.create("greeter", "greeter:app", directory="apps")
            httpx.post(f"{address}/invoke", json={"prompt": "hello"})
            print(*double.runtimes.logs("greeter"), sep="\\n")

    Further arguments are the keys of a ``[[runtimes]]`` table of the settings. Every method raises
    RuntimeError if the double does not run, and UnknownRuntimeError for an unknown name.
    """

    def __init__(
        self, registry: Callable[[], Awaitable[RuntimeRegistry]], call: Call, url: str
    ) -> None:
        self._registry = registry
        self._call = call
        self._url = url

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all runtimes, including the declared ones."""
        return self._read(lambda registry: tuple(one.name for one in registry.all()))

    def create(self, name: str, application: str | None = None, **settings: Any) -> str:
        """Create a runtime of an application, or of a ``command``, and return its address.

        No instance starts before the first request, unless ``min_instances`` requires it. Raises
        DeclarationError and RuntimeNameError.
        """
        table = {"name": name, "application": application, **settings}
        self._do(lambda registry: registry.create(table))
        return self.address(name)

    def address(self, name: str) -> str:
        """Return the URL below which a runtime answers."""
        return f"{self._url}/runtimes/{self._named(name).name}"

    def status(self, name: str) -> Status:
        """Return the status of a runtime, in the platform's words."""
        return self._read(lambda registry: registry.named(name).runtime.status)

    def versions(self, name: str) -> tuple[Version, ...]:
        """Return the versions of a runtime that are kept, the oldest first."""
        return self._read(lambda registry: registry.named(name).runtime.versions)

    def logs(self, name: str, tail: int = 1000) -> list[str]:
        """Return the last lines that its instances have printed, the oldest first."""
        lines = self._read(lambda registry: registry.named(name).runtime.logs.read(tail=tail))
        return [line.text for line in lines]

    def update(self, name: str, *, release: bool = True, **changes: Any) -> int:
        """Create a new version with these keys changed, and return its number.

        A key with the value None is removed. With ``release``, the call returns when the new
        version is in force; without it, the previous version stays in force. Raises
        DeclarationError, and RuntimeStartError if the new version did not start: then the previous
        version stays in force.
        """
        id_ = self._named(name).id
        version = self._do(lambda registry: registry.update(id_, changes, release=release))
        self._do(lambda registry: registry.get(id_).runtime.deployed())
        return version.number

    def release(self, name: str, version: int | None = None) -> None:
        """Bring a version into force, by default the newest; return when it is in force.

        Raises UnknownVersionError, and RuntimeStartError as ``update()`` does.
        """
        id_ = self._named(name).id
        self._do(lambda registry: registry.release(id_, version))
        self._do(lambda registry: registry.get(id_).runtime.deployed())

    def delete(self, name: str) -> None:
        """End a runtime and its instances."""
        id_ = self._named(name).id
        self._do(lambda registry: registry.delete(id_))

    def _named(self, name: str) -> Managed:
        return self._read(lambda registry: registry.named(name))

    def _read(self, read: Callable[[RuntimeRegistry], T]) -> T:
        async def on_its_loop() -> T:
            return read(await self._registry())

        found: T = self._call(on_its_loop())
        return found

    def _do(self, act: Callable[[RuntimeRegistry], Awaitable[T]]) -> T:
        async def on_its_loop() -> T:
            return await act(await self._registry())

        done: T = self._call(on_its_loop())
        return done
