"""Pass a request on to an instance and its answer back, with the addresses of the gateway in headers and agent cards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

from starlette.types import Message, Receive, Scope, Send

from agentdouble.core import request_cause
from agentdouble.errors import AnswerLostError, InstanceLostError
from agentdouble.runtimes import PREFIX
from agentdouble.runtimes.instance import HOST, RuntimeInstance
from agentdouble.server.exchange import OF_THE_SERVER, OF_THIS_HOP, StreamedExchange
from agentdouble.server.upstream import Connections
from agentdouble.server.upstream_connection import RawHeaders, UpstreamAnswer

_PLACE = PREFIX.strip("/")
_OF_ONE_HOP = OF_THIS_HOP | {b"proxy-authenticate", b"proxy-authorization"}
_SAID_ANEW = frozenset((b"forwarded", b"host", request_cause.RAW_HEADER))
_OF_THE_ORIGIN = frozenset((b"service-worker-allowed",))  # a runtime shares its origin
_BODILESS = (204, 304)
OTHER_RUNTIME = re.compile(rf"{PREFIX}[^/]")
VIA = (b"via", b"1.1 agentdouble")


@dataclass(frozen=True)
class Address:
    """The runtime ``name``, which answers below ``prefix``, and the ``path`` of a request there.

    ``path`` is as the caller wrote it: ``%2F``, ``//`` and the like are left to the application to
    interpret. ``name`` is empty if the request is not for a runtime.
    """

    name: str
    prefix: str
    path: str

    def target(self, query: bytes) -> bytes:
        """Return the request target that is sent to an instance."""
        return self.path.encode("latin-1") + (b"?" + query if query else b"")


def read(scope: Scope) -> Address:
    """Return the runtime and the path that a request is for."""
    root: str = scope.get("root_path", "")
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    raw = raw.partition(b"?")[0]  # some clients in this process leave the query there
    prefix, name, path = (*raw.removeprefix(root.encode())[1:].split(b"/", 2), b"", b"")[:3]
    runtime = unquote(name) if unquote(prefix) == _PLACE else ""
    return Address(runtime, f"{root}{PREFIX}{runtime}", "/" + path.decode("latin-1"))


def value(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the value of the first header with this name, in lower case, or None."""
    return next((value for header, value in headers if header == name), None)


def onward(scope: Scope, address: Address) -> RawHeaders:
    """Return a request's headers for an instance, without Host and the body's length.

    ``X-Forwarded-For``, ``-Proto``, ``-Host`` and ``-Prefix`` report the caller's address and the
    URL that it called; they replace the caller's own headers. Only the double's own server accepts
    ``-For`` and ``-Proto`` from a caller, and only from loopback, where a proxy may stand in front.
    """
    sent = scope["headers"]
    stays = _OF_ONE_HOP | _SAID_ANEW | _named(sent)
    passed = [
        (name, value)
        for name, value in sent
        if name not in stays and not name.startswith(b"x-forwarded-")
    ]
    cause = [(name.encode(), value.encode()) for name, value in request_cause.headers().items()]
    return [*passed, *cause, *_forwarded(scope, address), VIA]


def _forwarded(scope: Scope, address: Address) -> RawHeaders:
    scheme: str = scope["scheme"]
    client = scope.get("client")
    forwarded: dict[bytes, bytes | None] = {
        b"x-forwarded-for": client[0].encode("latin-1") if client else None,
        b"x-forwarded-proto": scheme.encode("latin-1"),
        b"x-forwarded-host": value(scope["headers"], b"host"),
        b"x-forwarded-prefix": address.prefix.encode(),
    }
    return [(name, value) for name, value in forwarded.items() if value]


def back(status: int, sent: RawHeaders, scope: Scope, address: Address) -> RawHeaders:
    """Return an answer's headers for the caller, without a length that is not the body's."""
    stays = _OF_ONE_HOP | OF_THE_SERVER | _OF_THE_ORIGIN | _named(sent)
    if status not in _BODILESS and value(sent, b"transfer-encoding") is None:
        stays -= {b"content-length"}
    return [
        (name, _location(value, scope, address) if name == b"location" else value)
        for name, value in sent
        if name not in stays
    ]


def _named(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Return the headers that ``Connection`` lists as belonging to this hop alone."""
    named = [value.lower().split(b",") for name, value in headers if name == b"connection"]
    return frozenset(name.strip() for names in named for name in names)


def _location(location: bytes, scope: Scope, address: Address) -> bytes:
    """Return the target of a redirect, below the runtime's prefix if the application omitted it."""
    text = location.decode("latin-1")
    host = (value(scope["headers"], b"host") or b"").decode("latin-1")
    origin = f"{scope['scheme']}://{host}"
    before = origin if text.startswith(f"{origin}/") else ""
    path = text.removeprefix(before)
    below = path.removeprefix(scope.get("root_path", ""))
    if not path.startswith("/") or path.startswith("//") or OTHER_RUNTIME.match(below):
        return location
    return f"{before}{address.prefix}{path}".encode("latin-1")


KEPT_S = 1.0  # no common server closes an idle connection earlier


class Proxy:
    """Keeps connections to instances; belongs to one event loop."""

    def __init__(self) -> None:
        self._connections: WeakKeyDictionary[RuntimeInstance, Connections] = WeakKeyDictionary()

    async def close(self) -> None:
        """Close every connection."""
        for connections in self._connections.values():
            connections.close()

    async def pass_on(
        self,
        instance: RuntimeInstance,
        address: Address,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Pass an HTTP request on.

        Raises InstanceLostError if there is no answer or only half of one, and ClientDisconnect if
        the client no longer waits for it.
        """
        try:
            connections = self._connections.get(instance)
            if connections is None:
                connections = Connections(f"http://{HOST}:{instance.port}", KEPT_S)
                self._connections[instance] = connections
            connection = await connections.open()
        except AnswerLostError as error:
            raise _lost(instance, error) from error

        async def headers_back(answer: UpstreamAnswer) -> RawHeaders:
            return back(answer.status, answer.headers, scope, address)

        exchange = StreamedExchange(scope, receive, send, headers_back)
        host = (b"host", value(scope["headers"], b"host") or HOST.encode())
        headers = [host, *onward(scope, address)]
        try:
            await exchange.run(connection, address.target(scope["query_string"]), headers)
        except AnswerLostError as error:
            raise _lost(instance, error, amid=exchange.answered) from error


def _lost(
    instance: RuntimeInstance, error: AnswerLostError, *, amid: bool = False
) -> InstanceLostError:
    runtime, unreached = instance.definition.name, error.unreached
    return InstanceLostError(runtime, instance.name, str(error), unreached=unreached, amid=amid)


LARGEST = 1024 * 1024  # bytes of a card; a larger answer is passed on as it is
_CARDS = re.compile(r"(^|/)(\.well-known/agent(-card)?\.json|extendedAgentCard|v1/card)/?$")
_HERE = rb"https?://(?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1?\]):%d(?![0-9])"


def is_card(scope: Scope, address: Address) -> bool:
    """Return whether a request is for an agent card."""
    return scope["method"] == "GET" and _CARDS.search(address.path) is not None


def uncompressed(scope: Scope) -> Scope:
    """Return a request whose answer comes as it is, because only such a card can be rewritten."""
    headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
    return {**scope, "headers": [*headers, (b"accept-encoding", b"identity")]}


class CardRewriter:
    """A ``send`` that replaces the instance's own address in a card by the gateway's.

    It holds the answer back until it is whole. A card with signatures is passed on as it is,
    because they cover the addresses.
    """

    def __init__(self, scope: Scope, address: Address, port: int, send: Send) -> None:
        host = value(scope["headers"], b"host") or b""
        self._gateway = b"%b://%b%b" % (scope["scheme"].encode(), host, address.prefix.encode())
        self._own = re.compile(_HERE % port)
        self._send = send
        self._head: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._head = message
            return
        if self._head is not None:
            self._body += message.get("body", b"")
            has_more = message.get("more_body", False)
            if has_more and len(self._body) <= LARGEST:
                return
            await self._send_head(self._head, is_complete=len(self._body) <= LARGEST)
            message = {**message, "body": self._body}
            self._head = None
        await self._send(message)

    async def _send_head(self, head: Message, *, is_complete: bool) -> None:
        headers = head["headers"]
        if is_complete and b'"signatures"' not in self._body:
            self._body = self._own.sub(lambda _: self._gateway, self._body)
            length = (b"content-length", str(len(self._body)).encode())
            headers = [*(pair for pair in headers if pair[0] != length[0]), length]
        await self._send({**head, "headers": headers})
