"""Where an application answers over gRPC, and whether its card says so; known without grpcio."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentdouble import guard, ledger, serving
from agentdouble.admission import Address
from agentdouble.apps.a2a.cards import GRPC, GRPC_VERSION
from agentdouble.errors import CardError, MissingExtraError, NotBuiltError
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.apps.a2a.app import A2AApp

LOOPBACK = "127.0.0.1"
Refuses = Callable[[Address, Address], Awaitable[bool]]


@dataclass(frozen=True)
class Place:
    """Where to listen, 0 for a free port, and who may send how much (bytes).

    ``refuses`` tells, by the address of a connection's other end and ours, who may not call where
    no key is asked for.
    """

    port: int
    host: str = LOOPBACK
    api_key: str | None = field(default=None, repr=False)
    body_limit: int = guard.Policy.body_limit
    refuses: Refuses | None = None


class Listening:
    """A gRPC server that listens at an address, ``host:port``; it answers once it is started."""

    def __init__(self, server: Any, host: str, port: int) -> None:
        self._server = server
        self._started = False
        self._host = host
        self.port = port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        """Answer from now on, in the context of whoever starts it."""
        self._started = True
        await self._server.start()

    async def stop(self) -> None:
        """Take no more calls, and give those that are being answered the time HTTP's have."""
        if not self._started:
            await self.start()  # gRPC lets go of a port only so
        await self._server.stop(serving.GRACE_S)

    def reaches(self, url: str) -> bool:
        """Return whether a card's URL may be this server's: other machines know it by any name."""
        name = guard.host_name(url)
        ours = self._host not in guard.LOOPBACK_NAMES or name in guard.LOOPBACK_NAMES
        return bool(name) and ours and url.rpartition(":")[2] == str(self.port)


async def prepare(app: A2AApp, place: Place | None) -> None:
    """Have an application listen for gRPC, if there is a place for it.

    Raises MissingExtraError without grpcio, AddressInUseError, CardError for a card that
    promises gRPC elsewhere, and NotBuiltError where version 0.3 alone is spoken.
    """
    if place is not None:
        app.grpc = await _listening(app, place)
    try:
        check(app)
    except BaseException:
        await _stop(app)
        raise


def check(app: A2AApp) -> None:
    """Raise CardError if the application's own card promises gRPC where it does not answer."""
    for one in app.interfaces:
        if one.protocol_binding.upper() == GRPC and not _ours(app.grpc, one):
            where = "nowhere" if app.grpc is None else f"at {app.grpc.address}"
            raise CardError(
                f"The agent card promises gRPC at {one.url!r}, version {one.protocol_version}, "
                f"and it answers {where}, version {GRPC_VERSION}. Leave that interface out, or "
                "give the port: run(grpc_port=...), the setting a2a_grpc_port.",
                fields=["supported_interfaces"],
            )


@asynccontextmanager
async def answering(app: A2AApp) -> AsyncIterator[None]:
    """Answer over gRPC inside, if the application listens for it."""
    check(app)
    try:
        if app.grpc is not None:
            await app.grpc.start()
        yield
    finally:
        await _stop(app)


def _ours(listening: Listening | None, interface: Any) -> bool:
    if listening is None or interface.protocol_version != GRPC_VERSION:
        return False
    return listening.reaches(interface.url)


async def _listening(app: A2AApp, place: Place) -> Listening:
    if importlib.util.find_spec("grpc") is None:
        raise MissingExtraError("A2A over gRPC", extra="grpc")
    if ledger.choose("U-A2A-TASK") == "0.3":
        raise NotBuiltError("A2A over gRPC in version 0.3")
    await import_in_thread("agentdouble.apps.a2a.grpc_service")
    from agentdouble.apps.a2a.grpc_service import serve

    server, port = serve(app, place)
    return Listening(server, place.host, port)


async def _stop(app: A2AApp) -> None:
    listening, app.grpc = app.grpc, None
    if listening is not None:
        await listening.stop()
