"""The address where an application listens for gRPC, checked against its card; needs no grpcio."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from agentdouble import guard, ledger, serving
from agentdouble.admission import Address
from agentdouble.apps.a2a.cards import GRPC, GRPC_VERSION
from agentdouble.errors import CardError, MissingExtraError, NotBuiltError
from agentdouble.journal import Entry
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from a2a.server.request_handlers import RequestHandler
    from a2a.types import AgentInterface

LOOPBACK = "127.0.0.1"
Refuses = Callable[[Address, Address], Awaitable[bool]]
Record = Callable[[Scope], AbstractContextManager[Entry]]
GetHandler = Callable[[], "Awaitable[RequestHandler]"]


@dataclass(frozen=True)
class GrpcBinding:
    """The address for gRPC (port 0 for a free port), and the limits for callers (in bytes).

    If no key is needed, ``refuses`` decides which callers are refused. It gets the address of the
    connection's other end and the local address. ``in_card`` decides whether a made card names the
    address. ``record`` writes a call into the journal, given the scope of a request like it.
    """

    port: int
    host: str = LOOPBACK
    api_key: str | None = field(default=None, repr=False)
    body_limit: int = guard.Policy.body_limit
    refuses: Refuses | None = None
    in_card: bool = True
    record: Record | None = None


class GrpcListener:
    """A gRPC server that listens at an address, ``host:port``, and answers after ``start()``.

    ``in_card`` is that address, or empty if made cards do not name it.
    """

    def __init__(self, server: Any, binding: GrpcBinding, port: int) -> None:
        host = binding.host
        self._server = server
        self._started = False
        self._host = host
        self.port = port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.in_card = self.address if binding.in_card else ""

    async def start(self) -> None:
        """Answer calls from now on, in the caller's context."""
        self._started = True
        await self._server.start()

    async def stop(self) -> None:
        """Accept no more calls; give the running calls as much time to end as HTTP requests get."""
        if not self._started:
            await self.start()  # otherwise gRPC would keep the port
        await self._server.stop(serving.GRACE_S)

    def reaches(self, url: str) -> bool:
        """Return whether a card's URL can be this server's; other machines may use any name."""
        name = guard.host_name(url)
        ours = self._host not in guard.LOOPBACK_NAMES or name in guard.LOOPBACK_NAMES
        return bool(name) and ours and url.rpartition(":")[2] == str(self.port)


async def listen(binding: GrpcBinding, keys: Sequence[str], handler: GetHandler) -> GrpcListener:
    """Listen for gRPC calls and answer them with ``handler``.

    Raises MissingExtraError without grpcio, AddressInUseError, and NotBuiltError if only version
    0.3 is spoken.
    """
    if importlib.util.find_spec("grpc") is None:
        raise MissingExtraError("A2A over gRPC", extra="grpc")
    if ledger.choose("U-A2A-TASK") == "0.3":
        raise NotBuiltError("A2A over gRPC in version 0.3")
    await import_in_thread("agentdouble.apps.a2a.grpc_service")
    from agentdouble.apps.a2a.grpc_service import serve

    server, port = serve(binding, keys, handler)
    return GrpcListener(server, binding, port)


def check_card(interfaces: Iterable[AgentInterface], listener: GrpcListener | None) -> None:
    """Raise CardError if the card promises gRPC at an address where it is not served."""
    for one in interfaces:
        if one.protocol_binding.upper() == GRPC and not _is_served(one, listener):
            where = "nowhere" if listener is None else f"at {listener.address}"
            raise CardError(
                f"The agent card promises gRPC at {one.url!r}, version {one.protocol_version}, "
                f"and it answers {where}, version {GRPC_VERSION}. Leave that interface out, or "
                "give the port: run(grpc_port=...), the setting a2a_grpc_port.",
                fields=["supported_interfaces"],
            )


def _is_served(interface: AgentInterface, listener: GrpcListener | None) -> bool:
    if listener is None or interface.protocol_version != GRPC_VERSION:
        return False
    return listener.reaches(interface.url)
