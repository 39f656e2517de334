"""The runtimes of a running double, for the program that started it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from agentdouble.runtimes.definition import Version
    from agentdouble.runtimes.registry import Managed, RuntimeRegistry
    from agentdouble.runtimes.runtime import Status

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
        return self._read(lambda registry: tuple(managed.name for managed in registry.all()))

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
        managed = self._named(name)
        version = self._do(lambda registry: registry.update(managed.id, changes, release=release))
        self._do(lambda _: managed.runtime.deployed())
        return version.number

    def release(self, name: str, version: int | None = None) -> None:
        """Bring a version into force, by default the newest; return when it is in force.

        Raises UnknownVersionError, and RuntimeStartError as ``update()`` does.
        """
        managed = self._named(name)
        self._do(lambda registry: registry.release(managed.id, version))
        self._do(lambda _: managed.runtime.deployed())

    def delete(self, name: str) -> None:
        """End a runtime and its instances."""
        id_ = self._named(name).id
        self._do(lambda registry: registry.delete(id_))

    def _named(self, name: str) -> Managed:
        return self._read(lambda registry: registry.named(name))

    def _read(self, read: Callable[[RuntimeRegistry], T]) -> T:
        async def read_on_its_loop(registry: RuntimeRegistry) -> T:
            return read(registry)

        return self._do(read_on_its_loop)

    def _do(self, act: Callable[[RuntimeRegistry], Awaitable[T]]) -> T:
        async def on_its_loop() -> T:
            return await act(await self._registry())

        result: T = self._call(on_its_loop())
        return result
